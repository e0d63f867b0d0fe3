use std::collections::BTreeSet;

use k8s_openapi::api::networking::v1::{
    HTTPIngressPath, IngressBackend, IngressServiceBackend, ServiceBackendPort,
};
use karmada_api::gateway_api::{BackendReference, HttpRoute, HttpRouteMatch, HttpRouteRule};
use objects::Metadata;

use super::refusal::Refusal;
use crate::ingress::gateway_api::RoutePath;

/// Returns the paths of a route with their Services. Of two with one path, the first of the route is served, as a Gateway
/// does.
///
/// Which of several paths a request takes is no matter of their order: for both an exact one counts first, and then the
/// longest.
pub(super) fn paths(route: &HttpRoute) -> Result<Vec<HTTPIngressPath>, Refusal> {
    let (mut known, mut paths) = (BTreeSet::new(), Vec::new());
    for (number, rule) in (1..).zip(&route.spec.rules) {
        reject_features(number, rule)?;
        let backend = backend(number, rule, route.metadata.namespace())?;
        for path in matched(number, rule)? {
            if known.insert(path.clone()) {
                paths.push(path.to_ingress(backend.clone()));
            }
        }
    }
    if paths.is_empty() {
        let message = "the route has no rule; add one with backendRefs".to_owned();
        return Err(Refusal::unsupported(message));
    }
    Ok(paths)
}

/// Rejects a rule with a filter or match that would change a request, or its destination.
fn reject_features(number: u32, rule: &HttpRouteRule) -> Result<(), Refusal> {
    let in_backends = rule
        .backend_refs
        .iter()
        .any(|backend| !backend.filters.is_empty());
    let features = [
        ("filters", !rule.filters.is_empty() || in_backends),
        ("timeouts", rule.timeouts.is_some()),
        ("retry", rule.retry.is_some()),
        ("sessionPersistence", rule.session_persistence.is_some()),
    ];
    match features.into_iter().find(|(_, is_set)| *is_set) {
        Some((feature, _)) => Err(Refusal::unsupported(format!(
            "rule {number} has {feature}, which is not served; remove it"
        ))),
        None => Ok(()),
    }
}

/// Returns the paths of a rule. A rule without matches is for all requests.
fn matched(number: u32, rule: &HttpRouteRule) -> Result<Vec<RoutePath>, Refusal> {
    let any = HttpRouteMatch::default();
    let matches = match rule.matches.as_slice() {
        [] => std::slice::from_ref(&any),
        matches => matches,
    };
    matches.iter().map(|one| path(number, one)).collect()
}

fn path(number: u32, one: &HttpRouteMatch) -> Result<RoutePath, Refusal> {
    let field = if !one.headers.is_empty() {
        "headers"
    } else if !one.query_params.is_empty() {
        "queryParams"
    } else if one.method.is_some() {
        "method"
    } else if let Some(path) = RoutePath::of_route(one.path.as_ref()) {
        return Ok(path);
    } else {
        "a type of path"
    };
    Err(Refusal::unsupported(format!(
        "rule {number} matches by {field}, which is not served; match by Exact or PathPrefix alone"
    )))
}

/// Returns the one Service that gets the requests of a rule. A reference of weight 0 gets none.
fn backend(number: u32, rule: &HttpRouteRule, namespace: &str) -> Result<IngressBackend, Refusal> {
    let references = rule.backend_refs.iter();
    let served = references.filter(|reference| reference.weight != Some(0));
    let served: Vec<&BackendReference> = served.collect();
    for reference in &served {
        check_service(number, reference, namespace)?;
    }
    let Some(first) = served.first() else {
        return Err(Refusal::unsupported(format!(
            "rule {number} leads to no Service, and its requests would fail; add a backendRef"
        )));
    };
    let mut all = served.iter();
    if all.any(|other| (&other.name, other.port) != (&first.name, first.port)) {
        return Err(Refusal::unsupported(format!(
            "rule {number} divides its requests among several Services, which is not served; leave one backendRef"
        )));
    }
    Ok(IngressBackend {
        service: Some(IngressServiceBackend {
            name: first.name.clone(),
            port: Some(ServiceBackendPort {
                number: first.port,
                name: None,
            }),
        }),
        resource: None,
    })
}

/// Rejects a reference that is to no port of a Service in `namespace`.
fn check_service(
    number: u32,
    reference: &BackendReference,
    namespace: &str,
) -> Result<(), Refusal> {
    let kind = reference.kind.as_deref().unwrap_or("Service");
    let group = reference.group.as_deref().unwrap_or_default();
    if !group.is_empty() || kind != "Service" {
        let shown = if group.is_empty() {
            kind.to_owned()
        } else {
            format!("{group}/{kind}")
        };
        return Err(Refusal::of_backend(
            "InvalidKind",
            format!("rule {number} leads to a {shown}, and only Services are served"),
        ));
    }
    let of = reference.namespace.as_deref().unwrap_or(namespace);
    if of != namespace {
        return Err(Refusal::of_backend(
            "RefNotPermitted",
            format!(
                "rule {number} leads to namespace {of}, and only Services of the route's own are served"
            ),
        ));
    }
    if reference.port.is_none() {
        return Err(Refusal::of_backend(
            "UnsupportedValue",
            format!(
                "rule {number} names no port of Service {}; add it",
                reference.name
            ),
        ));
    }
    Ok(())
}
