//! This agent's `Cluster` object, with its conditions as the server has them.

use std::borrow::Cow;

use json_patch::jsonptr::PointerBuf;
use json_patch::{PatchOperation, ReplaceOperation, TestOperation};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::{Condition, ObjectMeta};
use karmada_api::Cluster;
use karmada_api::condition::OWNED;
use karmada_rules::condition::ConditionPatch;
use kube::Resource;
use kube::api::Patch;
use serde::Deserialize;
use serde_json::{Value, json};

/// A `Cluster`, of which nothing is read but the conditions. These stay raw: a patch tests that one
/// of them is unchanged, to the fraction of a second that a typed one would lose.
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
    /// The version that the whole list, if it is sent, was read at.
    resource_version: Option<String>,
}

impl RawCluster {
    /// Our conditions. One that cannot be read is as good as none: it will be overwritten.
    pub(super) fn ours(&self) -> Vec<Condition> {
        let ours = OWNED.into_iter().filter_map(|kind| {
            let element = self
                .elements()
                .iter()
                .find(|element| element["type"] == kind)?;
            serde_json::from_value(element.clone()).ok()
        });
        ours.collect()
    }

    /// Whether the object is being deleted.
    pub(super) fn is_going(&self) -> bool {
        self.metadata.deletion_timestamp.is_some()
    }

    /// What brings `condition` into the list.
    pub(super) fn change_to(&self, condition: &Condition) -> serde_json::Result<Change> {
        let patch =
            karmada_rules::condition::upsert(self.elements(), serde_json::to_value(condition)?);
        let resource_version = match patch {
            ConditionPatch::Replace { .. } => None,
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
    /// The change as the API server takes it. It is refused, as invalid or for a conflict, when the
    /// list is no longer as it was read in what matters here.
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
