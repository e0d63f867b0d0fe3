use k8s_openapi::api::networking::v1::{IngressLoadBalancerStatus, IngressSpec};
use kube::CustomResource;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// The finalizer of Karmada's own ingress controllers on a `MultiClusterIngress`.
pub const KARMADA_INGRESS_FINALIZER: &str = "karmada.io/multi-cluster-ingress-controller";

/// The routes of external traffic to Services that run in several clusters: the spec of a
/// networking.k8s.io/v1 Ingress.
#[derive(CustomResource, Clone, Debug, Default, PartialEq, Deserialize, Serialize, JsonSchema)]
#[kube(
    group = "networking.karmada.io",
    version = "v1alpha1",
    kind = "MultiClusterIngress",
    plural = "multiclusteringresses",
    shortname = "mci",
    category = "karmada-io",
    namespaced,
    status = "MultiClusterIngressStatus",
    derive = "Default",
    derive = "PartialEq",
    doc = "An Ingress whose backend Services run in several member clusters.",
    printcolumn = r#"{"name":"Class", "type":"string", "jsonPath":".spec.ingressClassName"}"#,
    printcolumn = r#"{"name":"Hosts", "type":"string", "jsonPath":".spec.rules[*].host"}"#,
    printcolumn = r#"{"name":"Blocked", "type":"string", "jsonPath":".status.trafficBlockClusters"}"#,
    printcolumn = r#"{"name":"Address", "type":"string", "jsonPath":".status.loadBalancer.ingress[*]['ip','hostname']"}"#,
    printcolumn = r#"{"name":"Age", "type":"date", "jsonPath":".metadata.creationTimestamp"}"#
)]
pub struct MultiClusterIngressSpec {
    /// Rules, TLS, default backend and class, as in an Ingress.
    #[serde(flatten)]
    pub ingress: IngressSpec,
}

/// The locations of the backends, the blocked clusters, and the addresses of the load balancer.
#[derive(Clone, Debug, Default, PartialEq, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct MultiClusterIngressStatus {
    /// The addresses at which the load balancer serves this ingress.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub load_balancer: Option<IngressLoadBalancerStatus>,
    /// The clusters among the service locations whose traffic a Remedy blocks, sorted and unique; absent rather than empty.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub traffic_block_clusters: Option<Vec<String>>,
    /// The clusters of each Service that the spec names, sorted by the Services' names.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub service_locations: Option<Vec<ServiceLocation>>,
}

/// The clusters in which a Service runs.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize, Serialize, JsonSchema)]
pub struct ServiceLocation {
    /// The Service's name, in the namespace of the ingress.
    pub name: String,
    /// The clusters' names, sorted and unique.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub clusters: Option<Vec<String>>,
}
