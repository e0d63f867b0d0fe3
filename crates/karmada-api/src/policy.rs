//! The policies that propagate resource templates.

use k8s_openapi::apimachinery::pkg::apis::meta::v1::LabelSelector;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::placement::Placement;
use objects::lenient;
use objects::resource::kind;
use objects::schema;

kind! {
    /// A policy that propagates resource templates of its namespace to member clusters.
    PropagationPolicy, "PropagationPolicy", "policy.karmada.io", "v1alpha1", "propagationpolicies", NamespaceResourceScope,
    {
        /// The templates, the clusters, and how they get there.
        spec: PropagationSpec,
    }
}

kind! {
    /// A policy that propagates resource templates of any namespace, or of none, to member clusters.
    ClusterPropagationPolicy, "ClusterPropagationPolicy", "policy.karmada.io", "v1alpha1", "clusterpropagationpolicies",
    ClusterResourceScope,
    {
        /// The templates, the clusters, and how they get there.
        spec: PropagationSpec,
    }
}

/// The templates that a policy selects, the clusters to which it propagates them, and how they get there.
#[derive(Clone, Debug, Default, PartialEq, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase", default)]
#[schemars(extend("required" = ["resourceSelectors"]))]
pub struct PropagationSpec {
    /// The templates.
    #[serde(deserialize_with = "lenient::nullable")]
    #[schemars(length(min = 1))]
    pub resource_selectors: Vec<ResourceSelector>,
    /// True if what the templates refer to follows them.
    #[serde(
        deserialize_with = "lenient::nullable",
        skip_serializing_if = "std::ops::Not::not"
    )]
    pub propagate_deps: bool,
    /// The clusters and the division of replicas among them.
    // Raw, for [`Placement`] to read: a binding gets fields of a later version, too.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Option<Placement>")]
    pub placement: Option<Value>,
    /// Of several policies that select a template, the one with the highest priority has it. 0 if absent.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub priority: Option<i32>,
    /// The priority of the templates among those that wait to be scheduled.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub schedule_priority: Option<SchedulePriority>,
    /// `Always` if the policy takes templates from policies of lower priority.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(extend("enum" = ["Always", "Never"]))]
    pub preemption: Option<String>,
    /// The override policies that must exist before a template is propagated.
    #[serde(
        deserialize_with = "lenient::nullable",
        skip_serializing_if = "Vec::is_empty"
    )]
    pub dependent_overrides: Vec<String>,
    /// The scheduler; `default-scheduler` if absent.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub scheduler_name: Option<String>,
    /// The reaction to failures.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(schema_with = "schema::object")]
    pub failover: Option<Value>,
    /// `Overwrite` to take over an object of a member that is not ours; `Abort`, the default, to leave it alone.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(extend("enum" = ["Abort", "Overwrite"]))]
    pub conflict_resolution: Option<String>,
    /// `Lazy` if a change of the policy waits until the template changes next.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(extend("enum" = ["Lazy"]))]
    pub activation_preference: Option<String>,
    /// The pause of propagation.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub suspension: Option<Suspension>,
    /// True if objects in members stay when their template is deleted.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub preserve_resources_on_deletion: Option<bool>,
}

/// The source of a priority among templates that wait to be scheduled.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase", default)]
#[schemars(extend("required" = ["priorityClassName", "priorityClassSource"]))]
pub struct SchedulePriority {
    /// `KubePriorityClass`: a PriorityClass of the control plane.
    #[schemars(extend("enum" = [KUBE_PRIORITY_CLASS]))]
    pub priority_class_source: String,
    /// Its name.
    pub priority_class_name: String,
}

/// The value of `priorityClassSource` for a PriorityClass of the control plane.
pub const KUBE_PRIORITY_CLASS: &str = "KubePriorityClass";
/// The value of `preemption` that takes templates from other policies.
pub const PREEMPTION_ALWAYS: &str = "Always";
/// The scheduler of a policy that names none.
pub const DEFAULT_SCHEDULER: &str = "default-scheduler";
/// The value of `conflictResolution` with which an object that is not ours is left alone.
pub const CONFLICT_ABORT: &str = "Abort";
/// The value of `conflictResolution` with which an object that is not ours is taken over.
pub const CONFLICT_OVERWRITE: &str = "Overwrite";
/// The value of `activationPreference` with which a policy waits for the template.
pub const ACTIVATION_LAZY: &str = "Lazy";

impl PropagationSpec {
    /// Returns the priority, with its default.
    pub fn priority(&self) -> i32 {
        self.priority.unwrap_or_default()
    }

    /// Returns `true` if the policy takes templates from policies of lower priority.
    pub fn preempts(&self) -> bool {
        self.preemption.as_deref() == Some(PREEMPTION_ALWAYS)
    }

    /// Returns `true` if a change of the policy waits until the template changes next.
    pub fn is_lazy(&self) -> bool {
        self.activation_preference.as_deref() == Some(ACTIVATION_LAZY)
    }
}

/// A selection of resource templates of one kind: by name, by labels, or all.
#[derive(Clone, Debug, Default, PartialEq, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase", default)]
#[schemars(extend("required" = ["apiVersion", "kind"]))]
pub struct ResourceSelector {
    /// The templates' API group and version.
    pub api_version: String,
    /// The templates' kind.
    pub kind: String,
    /// The templates' namespace; absent or empty for any.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub namespace: Option<String>,
    /// The template's name; absent or empty for any.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub name: Option<String>,
    /// The templates' labels. Not regarded if there is a name.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub label_selector: Option<LabelSelector>,
}

/// A pause of propagation: nothing is created or changed in the clusters, while deletion proceeds.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase", default)]
pub struct Suspension {
    /// True for a pause on every cluster.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub dispatching: Option<bool>,
    /// The clusters with a pause.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub dispatching_on_clusters: Option<SuspendedClusters>,
}

/// Clusters with a pause.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase", default)]
pub struct SuspendedClusters {
    /// Their names.
    #[serde(deserialize_with = "lenient::nullable")]
    pub cluster_names: Vec<String>,
}

impl Suspension {
    /// Returns the names of the clusters with a pause of their own.
    pub fn clusters(&self) -> impl Iterator<Item = &str> {
        let paused = self.dispatching_on_clusters.iter();
        paused.flat_map(|paused| paused.cluster_names.iter().map(String::as_str))
    }

    /// Returns `true` if dispatching to the cluster is paused.
    pub fn suspends(&self, cluster: &str) -> bool {
        self.dispatching == Some(true) || self.clusters().any(|name| name == cluster)
    }
}
