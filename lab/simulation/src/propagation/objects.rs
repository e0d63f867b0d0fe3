//! The objects of the users: their names, paths and contents.

use serde_json::{Value, json};

use crate::harness::clusters;
use crate::harness::value::name;

/// The namespace of the users' objects.
pub(crate) const NAMESPACE: &str = "shop";

/// The namespace of the Secrets with which members are reached.
pub(crate) const SECRETS: &str = "karmada-cluster";

/// A template, of which there are few, so that random steps often concern the same.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
#[expect(missing_docs, reason = "each is a kind and a name")]
pub enum Template {
    ConfigMapA,
    ConfigMapB,
    Deployment,
    ClusterRole,
}

impl Template {
    /// Every template.
    pub const ALL: [Self; 4] = [
        Self::ConfigMapA,
        Self::ConfigMapB,
        Self::Deployment,
        Self::ClusterRole,
    ];

    pub(crate) fn api_version(self) -> &'static str {
        match self {
            Self::ConfigMapA | Self::ConfigMapB => "v1",
            Self::Deployment => "apps/v1",
            Self::ClusterRole => "rbac.authorization.k8s.io/v1",
        }
    }

    pub(crate) fn kind(self) -> &'static str {
        match self {
            Self::ConfigMapA | Self::ConfigMapB => "ConfigMap",
            Self::Deployment => "Deployment",
            Self::ClusterRole => "ClusterRole",
        }
    }

    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::ConfigMapA => "a",
            Self::ConfigMapB => "b",
            Self::Deployment => "web",
            Self::ClusterRole => "viewer",
        }
    }

    /// The value of its label `tier`.
    pub(crate) fn tier(self) -> &'static str {
        match self {
            Self::ConfigMapA | Self::Deployment => "x",
            Self::ConfigMapB | Self::ClusterRole => "y",
        }
    }

    pub(crate) fn is_namespaced(self) -> bool {
        self != Self::ClusterRole
    }

    /// Returns `true` if `object` is this one, or a copy of it.
    pub(crate) fn is_of(self, object: &Value) -> bool {
        object["kind"] == self.kind() && name(object) == self.name()
    }

    pub(crate) fn collection(self) -> String {
        match self {
            Self::ConfigMapA | Self::ConfigMapB => {
                format!("/api/v1/namespaces/{NAMESPACE}/configmaps")
            }
            Self::Deployment => format!("/apis/apps/v1/namespaces/{NAMESPACE}/deployments"),
            Self::ClusterRole => "/apis/rbac.authorization.k8s.io/v1/clusterroles".to_owned(),
        }
    }

    pub(crate) fn path(self) -> String {
        format!("{}/{}", self.collection(), self.name())
    }

    /// Returns the path of its binding.
    pub(crate) fn binding(self) -> String {
        let name = format!("{}-{}", self.name(), self.kind().to_lowercase());
        let group = "/apis/work.karmada.io/v1alpha2";
        if self.is_namespaced() {
            format!("{group}/namespaces/{NAMESPACE}/resourcebindings/{name}")
        } else {
            format!("{group}/clusterresourcebindings/{name}")
        }
    }

    /// Returns the object as a user writes it.
    pub(crate) fn object(self, version: u8) -> Value {
        let mut object = json!({
            "apiVersion": self.api_version(), "kind": self.kind(),
            "metadata": { "name": self.name(), "labels": { "tier": self.tier() } },
        });
        match self {
            Self::ConfigMapA | Self::ConfigMapB => {
                object["data"] = json!({ "version": format!("v{version}") });
            }
            Self::Deployment => {
                let labels = json!({ "app": "web" });
                let mut container =
                    json!({ "name": "web", "image": format!("example.com/web:{version}") });
                if let Some(name) = [None, Some("a"), Some("b")][usize::from(version % 3)] {
                    container["envFrom"] = json!([{ "configMapRef": { "name": name } }]);
                }
                object["spec"] = json!({
                    "replicas": 1 + version % 4, "selector": { "matchLabels": labels },
                    "template": {
                        "metadata": { "labels": labels }, "spec": { "containers": [container] },
                    },
                });
            }
            Self::ClusterRole => {
                object["rules"] = json!([{
                    "apiGroups": [""], "resources": ["pods"], "verbs": [format!("v{version}")],
                }]);
            }
        }
        object
    }

    /// Returns the part of an object that a step edits, without replicas.
    pub(crate) fn content(self, object: &Value) -> &Value {
        let pointer = match self {
            Self::ConfigMapA | Self::ConfigMapB => "/data",
            Self::Deployment => "/spec/template/spec/containers/0/image",
            Self::ClusterRole => "/rules",
        };
        object.pointer(pointer).unwrap_or(&Value::Null)
    }

    /// Returns `true` if `object`, a Deployment, refers to this one.
    pub(crate) fn is_dependency_of(self, object: &Value) -> bool {
        let named = "/spec/template/spec/containers/0/envFrom/0/configMapRef/name";
        let named = object.pointer(named).and_then(Value::as_str);
        self.kind() == "ConfigMap" && named == Some(self.name())
    }

    /// Returns a patch with which somebody in a member changes our fields.
    pub(crate) fn drift(self) -> Value {
        match self {
            Self::ConfigMapA | Self::ConfigMapB => json!({ "data": { "version": "drift" } }),
            Self::Deployment => json!({ "spec": { "replicas": 9 } }),
            Self::ClusterRole => json!({ "rules": [] }),
        }
    }
}

/// The number of policies: the first three are of the namespace, the others of the cluster.
pub(crate) const POLICIES: u8 = 5;

/// Returns the collection and the name of a policy.
pub(crate) fn policy(nth: u8) -> (String, String) {
    let group = "/apis/policy.karmada.io/v1alpha1";
    match nth {
        0..3 => (
            format!("{group}/namespaces/{NAMESPACE}/propagationpolicies"),
            format!("p{nth}"),
        ),
        _ => (
            format!("{group}/clusterpropagationpolicies"),
            format!("c{nth}"),
        ),
    }
}

/// Returns the kind of a policy.
pub(crate) fn policy_kind(nth: u8) -> &'static str {
    match nth {
        0..3 => "PropagationPolicy",
        _ => "ClusterPropagationPolicy",
    }
}

/// Returns the kind of override policies of the namespace, or of the cluster.
pub(crate) fn override_kind(of_cluster: bool) -> &'static str {
    if of_cluster {
        "ClusterOverridePolicy"
    } else {
        "OverridePolicy"
    }
}

/// Returns the collection of override policies of the namespace, or of the cluster.
pub(crate) fn overrides(of_cluster: bool) -> String {
    let group = "/apis/policy.karmada.io/v1alpha1";
    if of_cluster {
        format!("{group}/clusteroverridepolicies")
    } else {
        format!("{group}/namespaces/{NAMESPACE}/overridepolicies")
    }
}

/// The path of the Clusters.
pub(crate) const CLUSTERS: &str = "/apis/cluster.karmada.io/v1alpha1/clusters";

/// Returns the path of a cluster.
pub(crate) fn cluster_path(nth: u8) -> String {
    format!("{CLUSTERS}/{}", clusters::name(nth))
}

/// Returns the path of the Works of a cluster.
pub(crate) fn works(cluster: &str) -> String {
    format!("/apis/work.karmada.io/v1alpha1/namespaces/karmada-es-{cluster}/works")
}
