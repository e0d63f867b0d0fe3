//! The scheme in which a proxy speaks to the endpoints of a Service, as its port's `appProtocol` says. Proxies of Ingresses
//! do not read that; each has an annotation of its own.

use std::collections::{BTreeMap, BTreeSet};

use k8s_openapi::api::core::v1::ServicePort;
use k8s_openapi::api::networking::v1::IngressSpec;

use crate::ingress::locations::backends;
use crate::ingress::problem::is_port;
use crate::ingress::{Backend, Cached, Desired};

/// Traefik's, on a Service. Without it, port 443 and names that begin with `https` mean TLS.
const OF_SERVICE: &str = "traefik.ingress.kubernetes.io/service.serversscheme";
/// That of ingress-nginx, on an Ingress. Without it, no port means TLS.
const OF_INGRESS: &str = "nginx.ingress.kubernetes.io/backend-protocol";

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Scheme {
    Http,
    Https,
    H2c,
}

/// Returns the annotation of a gateway Service, if all ports that `routes` name have one scheme.
pub(super) fn service_scheme(routes: &IngressSpec, backend: &Backend) -> BTreeMap<String, String> {
    let scheme = only(schemes(routes, backend));
    let value = scheme.map(|scheme| match scheme {
        Scheme::Http => "http",
        Scheme::Https => "https",
        Scheme::H2c => "h2c",
    });
    annotation(OF_SERVICE, value)
}

/// Returns the annotation of a gateway Ingress, if all its backends have one scheme.
pub(super) fn ingress_scheme(desired: &Desired) -> BTreeMap<String, String> {
    let backends = desired.backends.iter();
    let scheme = only(backends.flat_map(|backend| schemes(&desired.routes, backend)));
    // HTTP is the default there, and h2c is to be had for gRPC alone.
    let value = (scheme == Some(Scheme::Https)).then_some("HTTPS");
    annotation(OF_INGRESS, value)
}

fn annotation(key: &str, value: Option<&str>) -> BTreeMap<String, String> {
    value
        .map(|value| (key.to_owned(), value.to_owned()))
        .into_iter()
        .collect()
}

/// Returns the scheme that all have, if there is one.
fn only(schemes: impl IntoIterator<Item = Option<Scheme>>) -> Option<Scheme> {
    let schemes: BTreeSet<Option<Scheme>> = schemes.into_iter().collect();
    let mut schemes = schemes.into_iter();
    match (schemes.next(), schemes.next()) {
        (Some(only), None) => only,
        _ => None,
    }
}

/// Returns the scheme of each port of `backend` that `routes` name, as far as it is told.
fn schemes(routes: &IngressSpec, backend: &Backend) -> Vec<Option<Scheme>> {
    let Cached::Present(ports) = &backend.ports else {
        return Vec::new();
    };
    let named = backends(routes).filter_map(|route| route.service.as_ref());
    let named = named.filter(|named| named.name == backend.service);
    let named = named.filter_map(|named| named.port.as_ref());
    named
        .flat_map(|named| ports.iter().filter(move |port| is_port(named, port)))
        .map(scheme)
        .collect()
}

/// Returns the scheme that a port's `appProtocol` stands for (Kubernetes, "Application protocol").
fn scheme(port: &ServicePort) -> Option<Scheme> {
    let protocol = port.app_protocol.as_deref()?.to_ascii_lowercase();
    match protocol.strip_prefix("kubernetes.io/").unwrap_or(&protocol) {
        "http" | "ws" => Some(Scheme::Http),
        "https" | "wss" => Some(Scheme::Https),
        "h2c" => Some(Scheme::H2c),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use objects::Key;
    use serde_json::{Value, from_value, json};

    use super::*;
    use crate::ingress::BackendAddresses;
    use crate::ingress::fixtures::{Fixture, template};

    /// Returns the annotations of the Service and of the Ingress with routes to these ports of it.
    fn annotations(ports: &Value, routes: &[&Value]) -> (Value, Value) {
        let mut service = template("s", &[]);
        service.spec.as_mut().unwrap().ports = from_value(ports.clone()).unwrap();
        let fixture = Fixture::default().with_template(service);
        let paths = routes.iter().map(|port| {
            let backend = json!({ "service": { "name": "s", "port": port } });
            json!({ "path": "/", "pathType": "Prefix", "backend": backend })
        });
        let paths: Vec<Value> = paths.collect();
        let routes = from_value(json!({ "rules": [{ "http": { "paths": paths } }] })).unwrap();
        let status = karmada_api::MultiClusterIngressStatus::default();
        let (key, addresses) = (Key::new("ns", "i"), BackendAddresses::Endpoints);
        let desired = Desired::new(key, &routes, &status, addresses, &fixture);
        let of_service = service_scheme(&desired.routes, &desired.backends[0]);
        (json!(of_service), json!(ingress_scheme(&desired)))
    }

    /// The protocol of the ports that routes name is said in the words of each proxy.
    #[test]
    fn protocol_becomes_annotations() {
        let (web, tls) = (json!({ "name": "web" }), json!({ "number": 443 }));
        let [https, http, h2c] = ["https", "http", "h2c"].map(|value| json!({ OF_SERVICE: value }));
        let (nothing, nginx) = (json!({}), json!({ OF_INGRESS: "HTTPS" }));
        for (protocol, of_service, of_ingress) in [
            ("https", &https, &nginx),
            ("HTTPS", &https, &nginx),
            ("kubernetes.io/wss", &https, &nginx),
            ("http", &http, &nothing),
            ("kubernetes.io/ws", &http, &nothing),
            ("kubernetes.io/h2c", &h2c, &nothing),
            ("example.com/own", &nothing, &nothing),
        ] {
            let ports = json!([
                { "name": "web", "port": 443, "appProtocol": protocol },
                { "name": "metrics", "port": 9000 },
            ]);
            let (service, ingress) = annotations(&ports, &[&web, &tls]);
            assert_eq!((&service, &ingress), (of_service, of_ingress), "{protocol}");
        }
        let plain = json!([{ "name": "web", "port": 443 }]);
        assert_eq!(
            annotations(&plain, &[&web]),
            (nothing.clone(), nothing.clone())
        );
        let mixed = json!([
            { "name": "web", "port": 80, "appProtocol": "http" },
            { "name": "tls", "port": 443, "appProtocol": "https" },
        ]);
        assert_eq!(
            annotations(&mixed, &[&web, &tls]),
            (nothing.clone(), nothing)
        );
        assert_eq!(annotations(&mixed, &[&tls]), (https, nginx));
    }
}
