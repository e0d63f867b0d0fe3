//! The object of this agent's cluster, a `Cluster` or a `MemberCluster`, with its conditions as the server stores them.

use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use karmada_api::Condition;
use karmada_api::condition::{OWNED, is_declared};
use kube::Resource;
use kube::api::DynamicObject;
use objects::condition::{AnyCondition, find, retain_patch, upsert_patch};
use objects::resource::names_of;
use serde::Deserialize;
use serde_json::Value;

/// A cluster of which only the conditions are read. They stay raw: those of others go back as they were, down to
/// fractions of a second, which a typed condition loses.
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

    /// Returns the conditions that this agent owns, and then those of other types, among them the ones of declared signals.
    pub(super) fn conditions(&self) -> Vec<Condition> {
        let elements = self.elements().iter();
        let others = elements.filter(|element| !OWNED.contains(&element.kind()));
        let mut conditions = self.ours();
        conditions.extend(others.map(read));
        conditions
    }

    pub(super) fn is_deleting(&self) -> bool {
        self.metadata.deletion_timestamp.is_some()
    }

    /// Returns the merge patch that brings `condition` into the list.
    pub(super) fn change_to(&self, condition: &Condition) -> serde_json::Result<Value> {
        let condition = serde_json::to_value(condition)?;
        Ok(upsert_patch(self.elements(), condition, self.version()))
    }

    /// Returns the merge patch that removes the condition of type `kind` of a declared signal.
    pub(super) fn change_without(&self, kind: &str) -> Value {
        retain_patch(
            self.elements(),
            |element| element.kind() != kind || !is_declared(&read(element)),
            self.version(),
        )
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

/// Returns a condition of another. Of one that cannot be read the type is enough: it is not ours to overwrite.
fn read(element: &Value) -> Condition {
    let read = serde_json::from_value(element.clone());
    read.unwrap_or_else(|_| Condition {
        type_: element.kind().to_owned(),
        ..Condition::default()
    })
}

impl Resource for RawCluster {
    names_of!(DynamicObject);

    fn meta(&self) -> &ObjectMeta {
        &self.metadata
    }

    fn meta_mut(&mut self) -> &mut ObjectMeta {
        &mut self.metadata
    }
}
