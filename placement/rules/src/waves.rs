//! The order in which the manifests of a Work are applied.

use objects::group_kind;
use serde_json::Value;

/// A group of kinds; those of an earlier one are applied before those that may need them.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Wave {
    /// Where the others live, and how important they are.
    Namespaces,
    /// Their limits, and the objects that they read.
    Configuration,
    /// Permissions.
    Roles,
    /// Who may do it.
    RoleBindings,
    /// Workloads, and the ways to reach them.
    Workloads,
    /// Objects that change or answer the requests of others.
    ApiExtensions,
    /// Kinds that nobody here knows.
    Others,
}

/// Returns the wave of a manifest.
pub fn wave(manifest: &Value) -> Wave {
    match group_kind(manifest) {
        ("", "Namespace") | ("scheduling.k8s.io", "PriorityClass") => Wave::Namespaces,
        (
            "",
            "ResourceQuota"
            | "LimitRange"
            | "ServiceAccount"
            | "Secret"
            | "ConfigMap"
            | "PersistentVolume"
            | "PersistentVolumeClaim",
        )
        | ("networking.k8s.io", "NetworkPolicy" | "IngressClass")
        | ("policy", "PodDisruptionBudget")
        | ("storage.k8s.io", "StorageClass")
        | ("apiextensions.k8s.io", "CustomResourceDefinition") => Wave::Configuration,
        ("rbac.authorization.k8s.io", "ClusterRole" | "Role") => Wave::Roles,
        ("rbac.authorization.k8s.io", "ClusterRoleBinding" | "RoleBinding") => Wave::RoleBindings,
        ("", "Service" | "Pod" | "ReplicationController")
        | ("apps", "DaemonSet" | "ReplicaSet" | "Deployment" | "StatefulSet")
        | ("autoscaling", "HorizontalPodAutoscaler")
        | ("batch", "Job" | "CronJob")
        | ("networking.k8s.io", "Ingress") => Wave::Workloads,
        ("apiregistration.k8s.io", "APIService")
        | (
            "admissionregistration.k8s.io",
            "MutatingWebhookConfiguration" | "ValidatingWebhookConfiguration",
        ) => Wave::ApiExtensions,
        _ => Wave::Others,
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::super::fixtures::fixture;
    use super::*;

    #[test]
    fn recorded_manifests_have_their_waves() {
        let work = fixture("crp-1-work");
        let manifests = work["spec"]["workload"]["manifests"].as_array().unwrap();
        let waves: Vec<_> = manifests.iter().map(wave).collect();
        let expected = [
            Wave::Namespaces,
            Wave::Configuration,
            Wave::Configuration,
            Wave::Configuration,
            Wave::Workloads,
            Wave::Workloads,
            Wave::Workloads,
        ];
        assert_eq!(waves, expected);
    }

    fn of(api_version: &str, kind: &str) -> Wave {
        wave(&json!({ "apiVersion": api_version, "kind": kind }))
    }

    /// Case F39.
    #[test]
    fn groups_tell_kinds_apart() {
        assert_eq!(of("rbac.authorization.k8s.io/v1", "Role"), Wave::Roles);
        assert_eq!(
            of("rbac.authorization.k8s.io/v1", "RoleBinding"),
            Wave::RoleBindings
        );
        assert_eq!(
            of("apiregistration.k8s.io/v1", "APIService"),
            Wave::ApiExtensions
        );
        assert_eq!(of("example.com/v1", "Service"), Wave::Others);
    }
}
