//! The request to schedule workloads anew.

use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use objects::lenient;
use objects::resource::kind;

kind! {
    /// A request to schedule workloads anew, as if nothing ran: made once, when it is created.
    WorkloadRebalancer, "WorkloadRebalancer", "apps.karmada.io", "v1alpha1", "workloadrebalancers", ClusterResourceScope,
    {
        /// The workloads.
        #[serde(deserialize_with = "lenient::or_default")]
        spec: WorkloadRebalancerSpec,
        /// The outcome of the request for each.
        #[serde(deserialize_with = "lenient::or_default")]
        status: WorkloadRebalancerStatus,
    }
}

/// The workloads to schedule anew.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase", default)]
#[schemars(extend("required" = ["workloads"]))]
pub struct WorkloadRebalancerSpec {
    /// The workloads. More may be added later.
    #[serde(deserialize_with = "lenient::or_default")]
    #[schemars(length(min = 1))]
    pub workloads: Vec<RebalancedWorkload>,
    /// The seconds after its end at which the request is deleted; absent if it stays.
    #[serde(
        deserialize_with = "lenient::option",
        skip_serializing_if = "Option::is_none"
    )]
    pub ttl_seconds_after_finished: Option<i64>,
}

/// A workload to schedule anew.
#[derive(
    Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Deserialize, Serialize, JsonSchema,
)]
#[serde(rename_all = "camelCase", default)]
#[schemars(extend("required" = ["apiVersion", "kind", "name"]))]
pub struct RebalancedWorkload {
    /// Its API group and version.
    pub api_version: String,
    /// Its kind.
    pub kind: String,
    /// Its namespace; empty for a cluster-scoped one.
    #[serde(
        deserialize_with = "lenient::or_default",
        skip_serializing_if = "String::is_empty"
    )]
    pub namespace: String,
    /// Its name.
    pub name: String,
}

/// The outcome of a request.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase", default)]
pub struct WorkloadRebalancerStatus {
    /// The generation of the request that was served.
    #[serde(
        deserialize_with = "lenient::option",
        skip_serializing_if = "Option::is_none"
    )]
    pub observed_generation: Option<i64>,
    /// The outcome for each workload.
    #[serde(deserialize_with = "lenient::or_default")]
    pub observed_workloads: Vec<ObservedWorkload>,
    /// The time at which all of it was done.
    #[serde(
        deserialize_with = "lenient::option",
        skip_serializing_if = "Option::is_none"
    )]
    pub finish_time: Option<Time>,
}

/// The outcome of the request for a workload.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase", default)]
pub struct ObservedWorkload {
    /// The workload.
    pub workload: RebalancedWorkload,
    /// [`SUCCESSFUL`] or [`FAILED`]; absent while it is not done.
    #[serde(
        deserialize_with = "lenient::option",
        skip_serializing_if = "Option::is_none"
    )]
    pub result: Option<String>,
    /// The reason of a failure, in CamelCase.
    #[serde(
        deserialize_with = "lenient::option",
        skip_serializing_if = "Option::is_none"
    )]
    pub reason: Option<String>,
}

/// The result of a workload whose binding is to be scheduled anew.
pub const SUCCESSFUL: &str = "Successful";
/// The result of a workload that cannot be scheduled.
pub const FAILED: &str = "Failed";
/// The reason of a workload that has no binding.
pub const BINDING_NOT_FOUND: &str = "ReferencedBindingNotFound";
