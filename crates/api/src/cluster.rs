use k8s_openapi::apimachinery::pkg::apis::meta::v1::Condition;
use kube::CustomResource;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// The spec of a member cluster. karmada-rs uses none of its fields.
#[derive(
    CustomResource, Clone, Debug, Default, PartialEq, Eq, Deserialize, Serialize, JsonSchema,
)]
#[kube(
    group = "cluster.karmada.io",
    version = "v1alpha1",
    kind = "Cluster",
    plural = "clusters",
    category = "karmada-io",
    status = "ClusterStatus",
    derive = "Default",
    derive = "PartialEq",
    doc = "A member cluster, with the fields karmada-rs uses. On a Karmada this kind is served by its aggregated API: install this definition on a plain API server only."
)]
#[schemars(extend("x-kubernetes-preserve-unknown-fields" = true))]
pub struct ClusterSpec {}

/// The status of a member cluster.
#[derive(Clone, Debug, Default, PartialEq, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
#[schemars(extend("x-kubernetes-preserve-unknown-fields" = true))]
pub struct ClusterStatus {
    /// Conditions of several clients, one of each type. The list is atomic: each client must patch its own element only.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub conditions: Option<Vec<Condition>>,
    /// The actions that the matching remedies require, sorted and unique; absent rather than empty.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub remedy_actions: Option<Vec<String>>,
}

impl Cluster {
    /// Returns all conditions, of every client.
    pub fn conditions(&self) -> &[Condition] {
        self.status
            .as_ref()
            .and_then(|status| status.conditions.as_deref())
            .unwrap_or_default()
    }

    /// Returns the condition of type `kind`.
    pub fn condition(&self, kind: &str) -> Option<&Condition> {
        self.conditions().iter().find(|c| c.type_ == kind)
    }

    /// Returns the actions that remedies require on this cluster.
    pub fn remedy_actions(&self) -> &[String] {
        self.status
            .as_ref()
            .and_then(|status| status.remedy_actions.as_deref())
            .unwrap_or_default()
    }
}
