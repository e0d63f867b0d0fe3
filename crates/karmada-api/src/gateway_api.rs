//! The Gateway API (`gateway.networking.k8s.io/v1`), with the fields that karmada-rs uses. Whoever installs the controller
//! of a Gateway installs its definitions.
//!
//! Fields that an API server fills in are optional here, and all are written: an object is stored as it was sent. Of the
//! rest of a rule only the fields that would change the way of a request are read.

use objects::lenient;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::Condition;
use objects::resource::kind;

/// The group of the Gateway API.
pub const GROUP: &str = "gateway.networking.k8s.io";

kind! {
    /// Rules by which Gateways route HTTP requests.
    HttpRoute, "HTTPRoute", "gateway.networking.k8s.io", "v1", "httproutes", NamespaceResourceScope, {
        /// The rules, and the Gateways.
        #[serde(deserialize_with = "lenient::nullable")]
        spec: HttpRouteSpec,
        /// The report of the controllers of the Gateways.
        #[serde(deserialize_with = "lenient::option", skip_serializing_if = "Option::is_none")]
        status: Option<HttpRouteStatus>,
    }
}

kind! {
    /// A load balancer with its listeners.
    Gateway, "Gateway", "gateway.networking.k8s.io", "v1", "gateways", NamespaceResourceScope, {
        /// The class and the listeners.
        #[serde(deserialize_with = "lenient::nullable")]
        spec: GatewaySpec,
        /// The report of its controller.
        #[serde(deserialize_with = "lenient::option", skip_serializing_if = "Option::is_none")]
        status: Option<GatewayStatus>,
    }
}

kind! {
    /// A class of Gateways.
    GatewayClass, "GatewayClass", "gateway.networking.k8s.io", "v1", "gatewayclasses", ClusterResourceScope, {
        /// The controller.
        #[serde(deserialize_with = "lenient::nullable")]
        spec: GatewayClassSpec,
        /// The report of its controller.
        #[serde(deserialize_with = "lenient::option", skip_serializing_if = "Option::is_none")]
        status: Option<GatewayClassStatus>,
    }
}

/// The spec of an [`HttpRoute`].
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize, Serialize)]
#[serde(rename_all = "camelCase", default)]
pub struct HttpRouteSpec {
    /// The Gateways to which it is attached.
    #[serde(deserialize_with = "lenient::nullable")]
    pub parent_refs: Vec<ParentReference>,
    /// The hosts; all that its listeners have if there are none.
    #[serde(
        deserialize_with = "lenient::nullable",
        skip_serializing_if = "Vec::is_empty"
    )]
    pub hostnames: Vec<String>,
    /// The rules. One with several matches applies where any of them does.
    #[serde(deserialize_with = "lenient::nullable")]
    pub rules: Vec<HttpRouteRule>,
}

/// A reference to a Gateway, or to one of its listeners.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize, Serialize)]
#[serde(rename_all = "camelCase", default)]
pub struct ParentReference {
    /// The group; that of this API if absent.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub group: Option<String>,
    /// The kind; `Gateway` if absent.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub kind: Option<String>,
    /// The namespace; that of the route if absent.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub namespace: Option<String>,
    /// The name.
    #[serde(deserialize_with = "lenient::nullable")]
    pub name: String,
    /// The listener; all of them if absent.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub section_name: Option<String>,
    /// The port of the listeners; any if absent.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub port: Option<i32>,
}

/// A rule of an [`HttpRoute`].
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize, Serialize)]
#[serde(rename_all = "camelCase", default)]
pub struct HttpRouteRule {
    /// The requests; all of them if there are none.
    #[serde(deserialize_with = "lenient::nullable")]
    pub matches: Vec<HttpRouteMatch>,
    /// The Services.
    #[serde(
        deserialize_with = "lenient::nullable",
        skip_serializing_if = "Vec::is_empty"
    )]
    pub backend_refs: Vec<BackendReference>,
    /// Changes to requests and responses.
    #[serde(
        deserialize_with = "lenient::nullable",
        skip_serializing_if = "Vec::is_empty"
    )]
    pub filters: Vec<Value>,
    /// Limits in time.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub timeouts: Option<Value>,
    /// The failures after which a request is sent again.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub retry: Option<Value>,
    /// The setting that keeps the requests of a client at one endpoint.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub session_persistence: Option<Value>,
}

/// The requests that a rule is for.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize, Serialize)]
#[serde(rename_all = "camelCase", default)]
pub struct HttpRouteMatch {
    /// The path; any if absent.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub path: Option<HttpPathMatch>,
    /// The headers that they must have.
    #[serde(
        deserialize_with = "lenient::nullable",
        skip_serializing_if = "Vec::is_empty"
    )]
    pub headers: Vec<Value>,
    /// The parameters that they must have.
    #[serde(
        deserialize_with = "lenient::nullable",
        skip_serializing_if = "Vec::is_empty"
    )]
    pub query_params: Vec<Value>,
    /// The method that they must have.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub method: Option<String>,
}

/// A match of a path.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize, Serialize)]
#[serde(default)]
pub struct HttpPathMatch {
    /// `Exact`, `PathPrefix`, which is meant if absent, or `RegularExpression`.
    #[serde(rename = "type", skip_serializing_if = "Option::is_none")]
    pub type_: Option<String>,
    /// The path; `/` if absent.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub value: Option<String>,
}

/// A reference to a Service in the route's namespace, or to something else.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize, Serialize)]
#[serde(rename_all = "camelCase", default)]
pub struct BackendReference {
    /// The group; empty, as absent, for a Service.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub group: Option<String>,
    /// The kind; `Service` if absent.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub kind: Option<String>,
    /// The namespace; that of the route if absent.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub namespace: Option<String>,
    /// The name.
    #[serde(deserialize_with = "lenient::nullable")]
    pub name: String,
    /// The Service's port.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub port: Option<i32>,
    /// Its share of the requests; 1 if absent.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub weight: Option<i32>,
    /// Changes to requests and responses.
    #[serde(
        deserialize_with = "lenient::nullable",
        skip_serializing_if = "Vec::is_empty"
    )]
    pub filters: Vec<Value>,
}

/// The status of an [`HttpRoute`]. Each controller writes its own entries, and may leave those of a Gateway that the route
/// has left.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize, Serialize)]
#[serde(default)]
pub struct HttpRouteStatus {
    /// An entry for each parent and controller.
    #[serde(deserialize_with = "lenient::nullable")]
    pub parents: Vec<RouteParentStatus>,
}

/// A controller's report on a route at one of its parents.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize, Serialize)]
#[serde(rename_all = "camelCase", default)]
pub struct RouteParentStatus {
    /// The controller.
    #[serde(deserialize_with = "lenient::nullable")]
    pub controller_name: String,
    /// The parent, as the route names it.
    #[serde(deserialize_with = "lenient::nullable")]
    pub parent_ref: ParentReference,
    /// `Accepted`, `ResolvedRefs` and others.
    #[serde(deserialize_with = "lenient::nullable")]
    pub conditions: Vec<Condition>,
}

/// The spec of a [`Gateway`].
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize, Serialize)]
#[serde(rename_all = "camelCase", default)]
pub struct GatewaySpec {
    /// The name of its [`GatewayClass`].
    #[serde(deserialize_with = "lenient::nullable")]
    pub gateway_class_name: String,
    /// The listeners.
    #[serde(deserialize_with = "lenient::nullable")]
    pub listeners: Vec<Listener>,
}

/// A listener of a [`Gateway`].
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize, Serialize)]
#[serde(rename_all = "camelCase", default)]
pub struct Listener {
    /// Its name.
    #[serde(deserialize_with = "lenient::nullable")]
    pub name: String,
    /// The host, which may begin with `*.`; all if absent.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub hostname: Option<String>,
    /// `HTTP`, `HTTPS` or another.
    #[serde(deserialize_with = "lenient::nullable")]
    pub protocol: String,
    /// Its port.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub port: Option<i32>,
    /// The certificates, and the treatment of TLS.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub tls: Option<ListenerTls>,
    /// The routes that may be attached to it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub allowed_routes: Option<AllowedRoutes>,
}

/// The TLS of a [`Listener`].
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize, Serialize)]
#[serde(rename_all = "camelCase", default)]
pub struct ListenerTls {
    /// `Terminate`, which is meant if absent, or `Passthrough`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub mode: Option<String>,
    /// The Secrets.
    #[serde(
        deserialize_with = "lenient::nullable",
        skip_serializing_if = "Vec::is_empty"
    )]
    pub certificate_refs: Vec<CertificateReference>,
}

/// A reference to a Secret with a certificate, or to something else.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize, Serialize)]
#[serde(default)]
pub struct CertificateReference {
    /// The group; empty, as absent, for a Secret.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub group: Option<String>,
    /// The kind; `Secret` if absent.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub kind: Option<String>,
    /// The namespace; that of the Gateway if absent.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub namespace: Option<String>,
    /// The name.
    #[serde(deserialize_with = "lenient::nullable")]
    pub name: String,
}

/// The routes that may be attached to a [`Listener`].
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize, Serialize)]
#[serde(default)]
pub struct AllowedRoutes {
    /// The namespaces that they may be in; that of the Gateway if absent.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub namespaces: Option<RouteNamespaces>,
    /// The kinds; those of the listener's protocol if there are none.
    #[serde(
        deserialize_with = "lenient::nullable",
        skip_serializing_if = "Vec::is_empty"
    )]
    pub kinds: Vec<RouteGroupKind>,
}

/// The namespaces of [`AllowedRoutes`].
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize, Serialize)]
#[serde(default)]
pub struct RouteNamespaces {
    /// `Same`, which is meant if absent, `All`, `Selector` or `None`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub from: Option<String>,
}

/// A kind of routes.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize, Serialize)]
#[serde(default)]
pub struct RouteGroupKind {
    /// The group; that of this API if absent.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub group: Option<String>,
    /// The kind's name.
    #[serde(deserialize_with = "lenient::nullable")]
    pub kind: String,
}

/// The status of a [`Gateway`].
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize, Serialize)]
#[serde(default)]
pub struct GatewayStatus {
    /// The addresses at which it serves.
    #[serde(deserialize_with = "lenient::nullable")]
    pub addresses: Vec<GatewayAddress>,
    /// `Accepted`, `Programmed` and others.
    #[serde(deserialize_with = "lenient::nullable")]
    pub conditions: Vec<Condition>,
    /// The listeners.
    #[serde(deserialize_with = "lenient::nullable")]
    pub listeners: Vec<ListenerStatus>,
}

/// An address of a [`Gateway`].
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize, Serialize)]
#[serde(default)]
pub struct GatewayAddress {
    /// `IPAddress`, which is meant if absent, `Hostname`, or one of its controller's own.
    #[serde(rename = "type", skip_serializing_if = "Option::is_none")]
    pub type_: Option<String>,
    /// The address.
    #[serde(deserialize_with = "lenient::nullable")]
    pub value: String,
}

/// A controller's report on a listener.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize, Serialize)]
#[serde(rename_all = "camelCase", default)]
pub struct ListenerStatus {
    /// The listener's name.
    #[serde(deserialize_with = "lenient::nullable")]
    pub name: String,
    /// The kinds of routes that it takes.
    #[serde(deserialize_with = "lenient::nullable")]
    pub supported_kinds: Vec<RouteGroupKind>,
    /// The number of routes that are attached to it and accepted.
    #[serde(deserialize_with = "lenient::nullable")]
    pub attached_routes: i32,
    /// `Accepted`, `Programmed`, `ResolvedRefs` and others.
    #[serde(deserialize_with = "lenient::nullable")]
    pub conditions: Vec<Condition>,
}

/// The spec of a [`GatewayClass`].
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize, Serialize)]
#[serde(rename_all = "camelCase", default)]
pub struct GatewayClassSpec {
    /// The name by which the controller writes statuses.
    #[serde(deserialize_with = "lenient::nullable")]
    pub controller_name: String,
}

/// The status of a [`GatewayClass`].
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize, Serialize)]
#[serde(default)]
pub struct GatewayClassStatus {
    /// `Accepted` and others; absent if there never were any.
    #[serde(
        deserialize_with = "lenient::list",
        skip_serializing_if = "Option::is_none"
    )]
    pub conditions: Option<Vec<Condition>>,
}

#[cfg(test)]
mod tests {
    use serde_json::{from_value, json};

    use super::*;

    /// Nulls, gaps and fields of newer versions do not keep a route from being read.
    #[test]
    fn odd_route_is_read() {
        let odd = json!({
            "metadata": { "name": "r" },
            "spec": { "parentRefs": null, "hostnames": null, "rules": [
                { "name": "new", "matches": null, "backendRefs": [{ "name": "s", "weight": null }] },
            ] },
            "status": { "parents": [{ "controllerName": null, "conditions": [{}] }] },
        });
        let route: HttpRoute = from_value(odd).unwrap();
        assert_eq!(route.spec.rules[0].backend_refs[0].name, "s");
        assert_eq!(route.status.unwrap().parents.len(), 1);
        let bare: HttpRoute = from_value(json!({ "spec": null, "status": 7 })).unwrap();
        assert_eq!(bare, HttpRoute::default());
        assert_eq!(
            from_value::<Gateway>(json!({})).unwrap(),
            Gateway::default()
        );
    }
}
