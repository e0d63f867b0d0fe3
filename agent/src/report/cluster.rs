//! This agent's `Cluster` object, with its conditions as the server stores them.

use std::borrow::Cow;

use json_patch::jsonptr::PointerBuf;
use json_patch::{PatchOperation, ReplaceOperation, TestOperation};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use karmada_api::condition::OWNED;
use karmada_api::{Cluster, Condition};
use karmada_rules::condition::ConditionPatch;
use kube::Resource;
use kube::api::Patch;
use serde::Deserialize;
use serde_json::{Value, json};

/// A `Cluster` of which only the conditions are read. They stay raw: the patch tests that one of them is
/// unchanged, down to fractions of a second, which a typed condition loses.
#[derive(Clone, Debug, Deserialize)]
pub(super) struct RawCluster {
    #[serde(default)]
    metadata: ObjectMeta,
    #[serde(default)]
    status: Option<RawStatus>,
}

#[derive(Clone, Debug, Default, Deserialize)]
struct RawStatus {
    #[serde(default)]
    conditions: Option<Vec<Value>>,
}

/// A write of one condition.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Change {
    patch: ConditionPatch,
    /// The version at which the list was read, if the patch sends the whole list.
    resource_version: Option<String>,
}

impl RawCluster {
    /// Returns the conditions that this agent owns. One whose status cannot be read counts as absent and
    /// is overwritten.
    pub(super) fn ours(&self) -> Vec<Condition> {
        let ours = OWNED.into_iter().filter_map(|kind| {
            let element = self
                .elements()
                .iter()
                .find(|element| element["type"] == kind)?;
            let condition: Condition = serde_json::from_value(element.clone()).ok()?;
            (!condition.unclear).then_some(condition)
        });
        ours.collect()
    }

    pub(super) fn is_deleting(&self) -> bool {
        self.metadata.deletion_timestamp.is_some()
    }

    /// Returns the change that brings `condition` into the list.
    pub(super) fn change_to(&self, condition: &Condition) -> serde_json::Result<Change> {
        let patch =
            karmada_rules::condition::upsert(self.elements(), serde_json::to_value(condition)?);
        let resource_version = match patch {
            // The `test` guards the one element; a change of any other must not fail the patch.
            ConditionPatch::Replace { .. } => None,
            // The whole list is sent, so it must be the one that was read.
            ConditionPatch::Insert { .. } => self.metadata.resource_version.clone(),
        };
        Ok(Change {
            patch,
            resource_version,
        })
    }

    fn elements(&self) -> &[Value] {
        let conditions = self
            .status
            .as_ref()
            .and_then(|status| status.conditions.as_deref());
        conditions.unwrap_or_default()
    }
}

impl Change {
    /// Converts the change to a patch that fails if its base has changed since it was read: a failed
    /// `test` is 422 Invalid, a stale resourceVersion 409 Conflict.
    ///
    /// The list is atomic for the API server, so a patch without such a guard would erase the
    /// conditions that others have written meanwhile.
    pub(super) fn to_patch(&self) -> Patch<Value> {
        match self.patch.clone() {
            ConditionPatch::Replace { index, old, new } => {
                let path = PointerBuf::from_tokens(["status", "conditions", &index.to_string()]);
                let test = TestOperation {
                    path: path.clone(),
                    value: old,
                };
                let replace = ReplaceOperation { path, value: new };
                Patch::Json(json_patch::Patch(vec![
                    PatchOperation::Test(test),
                    PatchOperation::Replace(replace),
                ]))
            }
            ConditionPatch::Insert { list } => Patch::Merge(json!({
                "metadata": { "resourceVersion": self.resource_version },
                "status": { "conditions": list },
            })),
        }
    }
}

// The same kind as `Cluster`, so that both are at the same URL.
impl Resource for RawCluster {
    type DynamicType = ();
    type Scope = <Cluster as Resource>::Scope;

    fn kind((): &()) -> Cow<'_, str> {
        Cluster::kind(&())
    }

    fn group((): &()) -> Cow<'_, str> {
        Cluster::group(&())
    }

    fn version((): &()) -> Cow<'_, str> {
        Cluster::version(&())
    }

    fn plural((): &()) -> Cow<'_, str> {
        Cluster::plural(&())
    }

    fn meta(&self) -> &ObjectMeta {
        &self.metadata
    }

    fn meta_mut(&mut self) -> &mut ObjectMeta {
        &mut self.metadata
    }
}
