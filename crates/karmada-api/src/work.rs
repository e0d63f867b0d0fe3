//! The unit of dispatch to one member cluster.

use objects::condition::find;
use objects::lenient;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::Condition;
use objects::resource::kind;
use objects::schema;

/// The condition of a Work: False while nothing is created or changed in the member.
pub const DISPATCHING: &str = "Dispatching";
/// The condition of a Work: True if its manifests are in the member.
pub const APPLIED: &str = "Applied";
/// The condition of a Work: True while `EndpointSlice`s of blocked clusters among its manifests are kept out of the member.
pub const WITHHELD: &str = "Withheld";

kind! {
    /// Manifests for one member cluster, in the namespace of that cluster.
    Work, "Work", "work.karmada.io", "v1alpha1", "works", NamespaceResourceScope,
    {
        /// The manifests, and their treatment.
        spec: WorkSpec,
        /// The state in the member.
        #[serde(skip_serializing_if = "Option::is_none")]
        status: Option<WorkStatus>,
    }
}

/// The manifests for a member, and what to do with them.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase", default)]
pub struct WorkSpec {
    /// The manifests.
    #[serde(deserialize_with = "lenient::nullable")]
    pub workload: Workload,
    /// True if nothing is created or changed in the member.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub suspend_dispatching: Option<bool>,
    /// True if the objects stay in the member when the Work is deleted.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub preserve_resources_on_deletion: Option<bool>,
}

/// Manifests.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize, Serialize, JsonSchema)]
#[serde(default)]
pub struct Workload {
    /// The objects as they shall be in the member.
    #[serde(deserialize_with = "lenient::nullable")]
    #[schemars(schema_with = "schema::manifests")]
    pub manifests: Vec<Value>,
}

/// The state of a Work's manifests in the member.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase", default)]
pub struct WorkStatus {
    /// The conditions.
    #[serde(
        deserialize_with = "lenient::nullable",
        skip_serializing_if = "Vec::is_empty"
    )]
    pub conditions: Vec<Condition>,
    /// The state of each manifest that was applied.
    #[serde(
        deserialize_with = "lenient::nullable",
        skip_serializing_if = "Vec::is_empty"
    )]
    pub manifest_statuses: Vec<ManifestStatus>,
}

/// The state of one manifest in the member.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase", default)]
pub struct ManifestStatus {
    /// The manifest.
    #[serde(deserialize_with = "lenient::nullable")]
    pub identifier: ManifestIdentifier,
    /// The object's status, as its kind reflects it.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(schema_with = "schema::object")]
    pub status: Option<Value>,
    /// `Healthy`, `Unhealthy` or `Unknown`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub health: Option<String>,
}

/// The identity of a manifest in a Work.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase", default)]
pub struct ManifestIdentifier {
    /// Its place in the list.
    pub ordinal: i64,
    /// The API group; absent for the core group.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub group: String,
    /// The version.
    pub version: String,
    /// The kind.
    pub kind: String,
    /// Always empty: Karmada does not fill it in.
    pub resource: String,
    /// The namespace; absent for a cluster-scoped object.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub namespace: String,
    /// The name.
    pub name: String,
}

impl Work {
    /// Returns `true` if nothing is created or changed in the member.
    pub fn is_suspended(&self) -> bool {
        self.spec.suspend_dispatching == Some(true)
    }

    /// Returns the condition of type `kind`.
    pub fn condition(&self, kind: &str) -> Option<&Condition> {
        find(&self.status.as_ref()?.conditions, kind)
    }
}
