mod parent;
mod routes;

use karmada_api::MultiClusterIngressStatus;
use karmada_api::gateway_api::HttpRoute;
use objects::Key;
use serde_json::{Value, from_value, json};

use super::*;
use crate::ingress::fixtures::{Fixture, binding, cluster, slice, template};
use crate::ingress::{BackendAddresses, Desired};

fn factory() -> HttpRoutes {
    HttpRoutes::new(&"example.com/ours".parse().unwrap(), gateway_key())
}

fn gateway_key() -> Key {
    Key::new("infra", "web")
}

/// Returns the facts of the Services `s`, with the ports `web` and 81, and `t`.
fn fixture() -> Fixture {
    Fixture::default()
        .with_cluster(cluster("m1"))
        .with_binding("s", binding("s", &["m1"]))
        .with_template(template("s", &[("web", 80), ("more", 81)]))
        .with_template(template("t", &[("", 80)]))
        .with_slices(&[slice("s", "m1", "x", &["10.0.0.1"])])
}

/// Returns the desired state of the ingress `name` with these routes.
fn desired(name: &str, routes: &Value, fixture: &Fixture) -> Desired {
    let spec = from_value(routes.clone()).unwrap();
    let status = MultiClusterIngressStatus::default();
    let addresses = BackendAddresses::Endpoints;
    Desired::new(Key::new("ns", name), &spec, &status, addresses, fixture)
}

/// Returns a rule with these paths, each with its type and its Service.
fn rule(host: &str, paths: &[(&str, &str, &str)]) -> Value {
    let paths = paths.iter().map(|(path, kind, service)| {
        let backend = json!({ "service": { "name": service, "port": { "number": 80 } } });
        json!({ "path": path, "pathType": kind, "backend": backend })
    });
    json!({ "host": host, "http": { "paths": paths.collect::<Vec<_>>() } })
}

/// Returns the objects where nobody else has a route.
fn alone(desired: &Desired) -> Routed {
    factory().objects(desired, |_| Claims::default())
}

fn routes(routed: Routed) -> Vec<HttpRoute> {
    routed.objects.routes.unwrap()
}

fn shown(problems: &std::collections::BTreeSet<RouteProblem>) -> Vec<String> {
    problems.iter().map(RouteProblem::to_string).collect()
}
