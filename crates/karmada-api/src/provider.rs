//! The messages between the ingress-controller and a load balancer's own program over HTTP: the provider `webhook`.
//!
//! ```text
//! PUT    URL/NAMESPACE/NAME   ProviderIngress   → IngressReport, or nothing
//! GET    URL/NAMESPACE/NAME                     → ProviderIngress, or 404
//! DELETE URL/NAMESPACE/NAME                     → nothing, also if there is none
//! GET    URL/                                   → HeldIngresses
//! ```
//!
//! Both sides ignore fields that they do not know.

use std::collections::BTreeMap;

use k8s_openapi::api::networking::v1::IngressLoadBalancerStatus;
use objects::{Key, lenient};
use schemars::JsonSchema;
use schemars::generate::SchemaSettings;
use serde::{Deserialize, Serialize};
use serde_json::Value;

/// The version of this protocol.
pub const API_VERSION: &str = "provider.karmada-rs.io/v1";

/// The desired state of one MultiClusterIngress, whole: what it does not have is to be served no more.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ProviderIngress {
    /// `provider.karmada-rs.io/v1`. Another version has other fields.
    pub api_version: String,
    /// The `--ingress-class-controller` that owns the ingress. A PUT over an ingress of another one must be answered with 409.
    pub controller: String,
    /// Its namespace.
    pub namespace: String,
    /// Its name.
    pub name: String,
    /// A text that differs with all the rest, for the provider to store and to return in the list.
    pub revision: String,
    /// The annotations of the MultiClusterIngress that are meant for the load balancer.
    #[serde(default, deserialize_with = "lenient::nullable")]
    pub annotations: BTreeMap<String, String>,
    /// Where requests go, by their host and path. The longest path that matches counts, as in an Ingress.
    pub routes: Vec<Route>,
    /// The hosts that are served by TLS.
    #[serde(default, deserialize_with = "lenient::nullable")]
    pub tls: Vec<RouteTls>,
    /// Every backend that a route names, sorted, each once.
    pub backends: Vec<RouteBackend>,
}

impl ProviderIngress {
    /// Returns the ingress that it is of.
    pub fn key(&self) -> Key {
        Key::new(&self.namespace, &self.name)
    }
}

/// The requests for a host and a path, and where they go.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Route {
    /// The host, which may begin with `*.`; empty for every host.
    #[serde(default, deserialize_with = "lenient::nullable")]
    pub host: String,
    /// The path.
    pub path: String,
    /// `Exact`, `Prefix` or `ImplementationSpecific`, as in an Ingress.
    pub path_type: String,
    /// The backend.
    pub backend: BackendReference,
}

/// A Service and one of its ports.
#[derive(
    Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Deserialize, Serialize, JsonSchema,
)]
#[serde(rename_all = "camelCase")]
pub struct BackendReference {
    /// The name of the Service.
    pub service: String,
    /// The name or the number of its port, as the MultiClusterIngress has it.
    pub port: String,
}

/// Hosts that are served by TLS.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct RouteTls {
    /// The hosts; empty for those of all routes.
    #[serde(default, deserialize_with = "lenient::nullable")]
    pub hosts: Vec<String>,
    /// The name of the Secret with the certificate, which is not sent; empty if none is named.
    #[serde(default, deserialize_with = "lenient::nullable")]
    pub secret_name: String,
}

/// A backend and the addresses behind it, in all clusters that may serve.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct RouteBackend {
    /// The Service and its port.
    #[serde(flatten)]
    pub reference: BackendReference,
    /// The protocol of the port, as `appProtocol` of the Service has it; empty if it is not told.
    #[serde(default, deserialize_with = "lenient::nullable")]
    pub app_protocol: String,
    /// The addresses, each with its port once. Without any, the answer to a request is 503.
    pub endpoints: Vec<RouteEndpoint>,
}

/// An address behind a backend.
#[derive(
    Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Deserialize, Serialize, JsonSchema,
)]
#[serde(rename_all = "camelCase")]
pub struct RouteEndpoint {
    /// An IPv4 or IPv6 address.
    pub address: String,
    /// The port there.
    pub port: u16,
    /// False for one that finishes the requests it has and gets no new one.
    pub ready: bool,
    /// The member cluster.
    pub cluster: String,
    /// What the address was read from, for our use alone.
    pub source: String,
}

/// What a provider holds: of every ingress that was PUT and not deleted since.
#[derive(Clone, Debug, Default, PartialEq, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct HeldIngresses {
    /// The ingresses, in any order.
    pub ingresses: Vec<HeldIngress>,
}

/// An ingress that a provider holds.
#[derive(Clone, Debug, Default, PartialEq, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct HeldIngress {
    /// The `controller` of the last PUT.
    pub controller: String,
    /// The namespace.
    pub namespace: String,
    /// The name.
    pub name: String,
    /// The `revision` of the last PUT.
    #[serde(default, deserialize_with = "lenient::nullable")]
    pub revision: String,
    /// How it is served.
    #[serde(flatten)]
    pub report: IngressReport,
}

/// What a provider says of an ingress that it holds.
#[derive(Clone, Debug, Default, PartialEq, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct IngressReport {
    /// The addresses at which it is served, for the status of the MultiClusterIngress. Absent: they are not known, and the status is left alone.
    #[serde(
        default,
        deserialize_with = "lenient::option",
        skip_serializing_if = "Option::is_none"
    )]
    pub load_balancer: Option<IngressLoadBalancerStatus>,
    /// Why it is not served as desired, in one sentence for its owner. Absent or empty: it is.
    #[serde(
        default,
        deserialize_with = "lenient::option",
        skip_serializing_if = "Option::is_none"
    )]
    pub problem: Option<String>,
}

/// Returns the JSON Schema of the body of a PUT, with that of its answer (`#/$defs/IngressReport`) and that of the list
/// (`#/$defs/HeldIngresses`).
pub fn schema() -> Value {
    let mut generator = SchemaSettings::draft2020_12().into_generator();
    // Named by the schema, and part of no PUT.
    generator.subschema_for::<HeldIngresses>();
    generator.subschema_for::<IngressReport>();
    let mut schema = generator
        .into_root_schema_for::<ProviderIngress>()
        .to_value();
    schema["$id"] = "https://karmada-rs.io/schemas/provider/v1".into();
    schema
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    /// A provider may leave out, null and add any field beyond the names, and no part of its answer hides the rest.
    #[test]
    fn answers_are_read_leniently() {
        let list = json!({ "ingresses": [
            { "controller": "c", "namespace": "ns", "name": "a", "revision": null, "since": 3,
              "loadBalancer": { "ingress": "none" }, "problem": { "code": 1 } },
            { "controller": "c", "namespace": "ns", "name": "b", "revision": "r",
              "loadBalancer": { "ingress": [{ "ip": "192.0.2.1" }] }, "problem": "no quota" },
        ], "total": 2 });
        let read: HeldIngresses = serde_json::from_value(list).unwrap();
        assert_eq!(read.ingresses[0].report, IngressReport::default());
        let second = &read.ingresses[1];
        assert_eq!(second.report.problem.as_deref(), Some("no quota"));
        assert!(second.report.load_balancer.is_some() && second.revision == "r");
        for nonsense in [json!({}), json!([]), json!({ "ingresses": {} })] {
            serde_json::from_value::<HeldIngresses>(nonsense).unwrap_err();
        }
        let empty: IngressReport = serde_json::from_value(json!({ "ok": true })).unwrap();
        assert_eq!(empty, IngressReport::default());
    }

    /// The schema has all three bodies.
    #[test]
    fn schema_has_every_body() {
        let schema = schema();
        for pointer in [
            "/properties/backends",
            "/$defs/HeldIngresses",
            "/$defs/IngressReport",
        ] {
            assert!(schema.pointer(pointer).is_some(), "{pointer}");
        }
    }
}
