use std::collections::BTreeMap;

use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;
use kube::CustomResource;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::{Component, Condition, Suspension, TargetComponent};
use objects::lenient;
use objects::resource::kind;
use objects::schema;

kind! {
    /// The clusters to which a cluster-scoped resource template was scheduled.
    ClusterResourceBinding, "ClusterResourceBinding", "work.karmada.io", "v1alpha2", "clusterresourcebindings",
    ClusterResourceScope,
    {
        /// The template and its clusters.
        spec: ResourceBindingSpec,
        /// The state of scheduling and in the clusters.
        #[serde(skip_serializing_if = "Option::is_none")]
        status: Option<ResourceBindingStatus>,
    }
}

/// The clusters to which a resource template was scheduled.
#[derive(
    CustomResource, Clone, Debug, Default, PartialEq, Eq, Deserialize, Serialize, JsonSchema,
)]
#[kube(
    group = "work.karmada.io",
    version = "v1alpha2",
    kind = "ResourceBinding",
    plural = "resourcebindings",
    shortname = "rb",
    category = "karmada-io",
    namespaced,
    status = "ResourceBindingStatus",
    derive = "Default",
    derive = "PartialEq",
    printcolumn = r#"{"name": "Scheduled", "type": "string", "jsonPath": ".status.conditions[?(@.type==\"Scheduled\")].status"}"#,
    printcolumn = r#"{"name": "FullyApplied", "type": "string", "jsonPath": ".status.conditions[?(@.type==\"FullyApplied\")].status"}"#,
    printcolumn = r#"{"name": "Age", "type": "date", "jsonPath": ".metadata.creationTimestamp"}"#,
    doc = "The clusters that a resource was scheduled to, with the fields karmada-rs uses. Karmada has its own definition of this kind: install this one on a plain API server only."
)]
#[serde(rename_all = "camelCase")]
#[schemars(extend("x-kubernetes-preserve-unknown-fields" = true))]
pub struct ResourceBindingSpec {
    /// The resource that is bound.
    pub resource: ObjectReference,
    /// The clusters to which it was scheduled.
    #[serde(
        default,
        deserialize_with = "lenient::list",
        skip_serializing_if = "Option::is_none"
    )]
    pub clusters: Option<Vec<TargetCluster>>,
    /// The bindings of other resources that depend on it, with their clusters.
    #[serde(
        default,
        deserialize_with = "lenient::list",
        skip_serializing_if = "Option::is_none"
    )]
    pub required_by: Option<Vec<BindingSnapshot>>,
    /// The placement of the policy, as the user wrote it. Absent: not to be scheduled.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(schema_with = "schema::object")]
    pub placement: Option<Value>,
    /// The replicas of the template.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub replicas: Option<i32>,
    /// The needs of one replica.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(schema_with = "schema::object")]
    pub replica_requirements: Option<Value>,
    /// The parts of a template whose Pods differ; such a template has neither replicas nor needs of one.
    #[serde(
        default,
        deserialize_with = "lenient::list",
        skip_serializing_if = "Option::is_none"
    )]
    pub components: Option<Vec<Component>>,
    /// The priority among bindings that wait to be scheduled.
    #[serde(
        default,
        deserialize_with = "lenient::option",
        skip_serializing_if = "Option::is_none"
    )]
    pub schedule_priority: Option<BindingPriority>,
    /// The groups of workloads that it belongs to.
    #[serde(
        default,
        deserialize_with = "lenient::option",
        skip_serializing_if = "Option::is_none"
    )]
    pub workload_affinity_groups: Option<WorkloadAffinityGroups>,
    /// True if what the template refers to follows it.
    #[serde(
        default,
        deserialize_with = "lenient::option",
        skip_serializing_if = "Option::is_none"
    )]
    pub propagate_deps: Option<bool>,
    /// The scheduler.
    #[serde(
        default,
        deserialize_with = "lenient::option",
        skip_serializing_if = "Option::is_none"
    )]
    pub scheduler_name: Option<String>,
    /// The reaction to failures, as the user wrote it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(schema_with = "schema::object")]
    pub failover: Option<Value>,
    /// The fate of an object in a member that is not ours: it is left alone, or taken over.
    #[serde(
        default,
        deserialize_with = "lenient::option",
        skip_serializing_if = "Option::is_none"
    )]
    pub conflict_resolution: Option<String>,
    /// True if objects in members stay when their template is deleted.
    #[serde(
        default,
        deserialize_with = "lenient::option",
        skip_serializing_if = "Option::is_none"
    )]
    pub preserve_resources_on_deletion: Option<bool>,
    /// The pause of dispatching, and of scheduling.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub suspension: Option<BindingSuspension>,
    /// The clusters that the template is leaving.
    #[serde(
        default,
        deserialize_with = "lenient::list",
        skip_serializing_if = "Option::is_none"
    )]
    pub graceful_eviction_tasks: Option<Vec<GracefulEvictionTask>>,
    /// The time at which scheduling anew was asked for.
    #[serde(
        default,
        deserialize_with = "lenient::option",
        skip_serializing_if = "Option::is_none"
    )]
    pub reschedule_triggered_at: Option<Time>,
}

impl ResourceBindingSpec {
    /// Iterates over the clusters that need the template: those of the bindings that require it, then its own.
    pub fn all_targets(&self) -> impl Iterator<Item = &TargetCluster> {
        let required = self.required_by.iter().flatten();
        required
            .flat_map(|snapshot| snapshot.clusters.iter().flatten())
            .chain(self.clusters.iter().flatten())
    }
}

/// The priority of a binding among those that wait to be scheduled.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize, Serialize, JsonSchema)]
#[serde(default)]
#[schemars(extend("x-kubernetes-preserve-unknown-fields" = true))]
pub struct BindingPriority {
    /// The priority; the highest is scheduled first.
    #[serde(deserialize_with = "lenient::or_default")]
    pub priority: i32,
}

/// The groups of workloads that a template belongs to, each as the `key=value` of its label.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase", default)]
#[schemars(extend("x-kubernetes-preserve-unknown-fields" = true))]
pub struct WorkloadAffinityGroups {
    /// The group whose workloads are in the same clusters; empty for none.
    #[serde(
        deserialize_with = "lenient::or_default",
        skip_serializing_if = "String::is_empty"
    )]
    pub affinity_group: String,
    /// The group whose workloads are in different clusters; empty for none.
    #[serde(
        deserialize_with = "lenient::or_default",
        skip_serializing_if = "String::is_empty"
    )]
    pub anti_affinity_group: String,
}

/// The pause of a binding: its policy's, and a pause of scheduling, which belongs to third parties.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase", default)]
#[schemars(extend("x-kubernetes-preserve-unknown-fields" = true))]
pub struct BindingSuspension {
    /// The pause of dispatching.
    #[serde(flatten)]
    pub dispatching: Suspension,
    /// True if the binding is not scheduled.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub scheduling: Option<bool>,
}

/// The removal of a template from one cluster, once it runs elsewhere.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase", default)]
#[schemars(extend("x-kubernetes-preserve-unknown-fields" = true))]
pub struct GracefulEvictionTask {
    /// The cluster.
    pub from_cluster: String,
    /// `Directly`, `Gracefully` or `Never`.
    #[serde(deserialize_with = "lenient::nullable")]
    pub purge_mode: String,
    /// The replicas that the cluster had.
    #[serde(
        deserialize_with = "lenient::option",
        skip_serializing_if = "Option::is_none"
    )]
    pub replicas: Option<i32>,
    /// The reason, in CamelCase.
    #[serde(
        deserialize_with = "lenient::option",
        skip_serializing_if = "Option::is_none"
    )]
    pub reason: Option<String>,
    /// The reason in words.
    #[serde(
        deserialize_with = "lenient::option",
        skip_serializing_if = "Option::is_none"
    )]
    pub message: Option<String>,
    /// The one who wants it.
    #[serde(
        deserialize_with = "lenient::option",
        skip_serializing_if = "Option::is_none"
    )]
    pub producer: Option<String>,
    /// The seconds after which it ends in any case.
    #[serde(
        deserialize_with = "lenient::option",
        skip_serializing_if = "Option::is_none"
    )]
    pub grace_period_seconds: Option<i64>,
    /// True if it does not end by itself, and false if it has to.
    #[serde(
        deserialize_with = "lenient::option",
        skip_serializing_if = "Option::is_none"
    )]
    pub suppress_deletion: Option<bool>,
    /// The labels that an application which left for good has in its next cluster.
    #[serde(
        deserialize_with = "lenient::option",
        skip_serializing_if = "Option::is_none"
    )]
    pub preserved_label_state: Option<BTreeMap<String, String>>,
    /// The clusters that the application ran in when it left.
    #[serde(
        deserialize_with = "lenient::option",
        skip_serializing_if = "Option::is_none"
    )]
    pub clusters_before_failover: Option<Vec<String>>,
    /// The time at which it began.
    #[serde(
        deserialize_with = "lenient::option",
        skip_serializing_if = "Option::is_none"
    )]
    pub creation_timestamp: Option<Time>,
}

impl GracefulEvictionTask {
    /// Returns `true` if the template leaves the cluster before it comes to another.
    pub fn purges_directly(&self) -> bool {
        // The second is how older versions of Karmada write the first.
        ["Directly", "Immediately"].contains(&self.purge_mode.as_str())
    }
}

/// The resource that a binding refers to.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
#[schemars(extend("x-kubernetes-preserve-unknown-fields" = true))]
pub struct ObjectReference {
    /// Its API group and version.
    pub api_version: String,
    /// Its kind.
    pub kind: String,
    /// Its namespace; absent for a cluster-scoped resource.
    #[serde(
        default,
        deserialize_with = "lenient::option",
        skip_serializing_if = "Option::is_none"
    )]
    pub namespace: Option<String>,
    /// Its name.
    pub name: String,
    /// Its uid.
    #[serde(
        default,
        deserialize_with = "lenient::option",
        skip_serializing_if = "Option::is_none"
    )]
    pub uid: Option<String>,
    /// The version of it that was bound.
    #[serde(
        default,
        deserialize_with = "lenient::option",
        skip_serializing_if = "Option::is_none"
    )]
    pub resource_version: Option<String>,
}

/// A cluster to which a resource was scheduled.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize, Serialize, JsonSchema)]
#[schemars(extend("x-kubernetes-preserve-unknown-fields" = true))]
pub struct TargetCluster {
    /// The cluster's name.
    pub name: String,
    /// The replicas there; absent for a template without replicas.
    #[serde(
        default,
        deserialize_with = "lenient::option",
        skip_serializing_if = "Option::is_none"
    )]
    pub replicas: Option<i32>,
    /// The parts of the template there; absent unless the cluster was chosen by its room for all of them.
    #[serde(
        default,
        deserialize_with = "lenient::list",
        skip_serializing_if = "Option::is_none"
    )]
    pub components: Option<Vec<TargetComponent>>,
}

/// The clusters of another binding that depends on this one.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize, Serialize, JsonSchema)]
#[schemars(extend("x-kubernetes-preserve-unknown-fields" = true))]
pub struct BindingSnapshot {
    /// The namespace of the other binding's template.
    #[serde(
        default,
        deserialize_with = "lenient::option",
        skip_serializing_if = "Option::is_none"
    )]
    pub namespace: Option<String>,
    /// The name of the other binding.
    #[serde(
        default,
        deserialize_with = "lenient::option",
        skip_serializing_if = "Option::is_none"
    )]
    pub name: Option<String>,
    /// The clusters it was scheduled to.
    #[serde(
        default,
        deserialize_with = "lenient::list",
        skip_serializing_if = "Option::is_none"
    )]
    pub clusters: Option<Vec<TargetCluster>>,
}

/// The state of scheduling, and of the template in each cluster.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
#[schemars(extend("x-kubernetes-preserve-unknown-fields" = true))]
pub struct ResourceBindingStatus {
    /// The generation of the binding that was scheduled last.
    #[serde(
        default,
        deserialize_with = "lenient::option",
        skip_serializing_if = "Option::is_none"
    )]
    pub scheduler_observed_generation: Option<i64>,
    /// The name of the group of clusters that was used last.
    #[serde(
        default,
        rename = "schedulerObservingAffinityName",
        deserialize_with = "lenient::option",
        skip_serializing_if = "Option::is_none"
    )]
    pub scheduler_observed_affinity_name: Option<String>,
    /// The time of the last scheduling.
    #[serde(
        default,
        deserialize_with = "lenient::option",
        skip_serializing_if = "Option::is_none"
    )]
    pub last_scheduled_time: Option<Time>,
    /// The conditions.
    #[serde(
        default,
        deserialize_with = "lenient::list",
        skip_serializing_if = "Option::is_none"
    )]
    pub conditions: Option<Vec<Condition>>,
    /// One element for each cluster that has the resource, or from which it is being removed.
    #[serde(
        default,
        deserialize_with = "lenient::list",
        skip_serializing_if = "Option::is_none"
    )]
    pub aggregated_status: Option<Vec<AggregatedStatusItem>>,
}

/// The state of the binding in one cluster.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
#[schemars(extend("x-kubernetes-preserve-unknown-fields" = true))]
pub struct AggregatedStatusItem {
    /// The cluster's name.
    pub cluster_name: String,
    /// True if the resource was written to the cluster.
    #[serde(
        default,
        deserialize_with = "lenient::option",
        skip_serializing_if = "Option::is_none"
    )]
    pub applied: Option<bool>,
    /// The error, if it was not written.
    #[serde(
        default,
        deserialize_with = "lenient::option",
        skip_serializing_if = "Option::is_none"
    )]
    pub applied_message: Option<String>,
    /// `Healthy`, `Unhealthy` or `Unknown`.
    #[serde(
        default,
        deserialize_with = "lenient::option",
        skip_serializing_if = "Option::is_none"
    )]
    pub health: Option<String>,
    /// The status of the resource there, as its kind reflects it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(schema_with = "schema::object")]
    pub status: Option<Value>,
}
