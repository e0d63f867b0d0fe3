//! This agent's `Cluster` object, with its conditions as the server stores them.

use std::borrow::Cow;

use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use karmada_api::condition::OWNED;
use karmada_api::{Cluster, Condition};
use kube::Resource;
use kube::api::Patch;
use objects::condition::{find, upsert_patch};
use objects::patch;
use serde::Deserialize;
use serde_json::Value;

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
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Change(patch::Patch);

impl RawCluster {
    /// Returns the conditions that this agent owns. One whose status cannot be read counts as absent and
    /// is overwritten.
    pub(super) fn ours(&self) -> Vec<Condition> {
        let ours = OWNED.into_iter().filter_map(|kind| {
            let element = find(self.elements(), kind)?;
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
        let condition = serde_json::to_value(condition)?;
        Ok(Change(upsert_patch(
            self.elements(),
            condition,
            self.version(),
        )))
    }

    pub(super) fn version(&self) -> Option<&str> {
        self.metadata.resource_version.as_deref()
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
    pub(super) fn to_patch(&self) -> Patch<Value> {
        self.0.clone().into()
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
