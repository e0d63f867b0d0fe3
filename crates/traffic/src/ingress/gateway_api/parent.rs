use std::collections::BTreeSet;

use k8s_openapi::api::networking::v1::{
    IngressLoadBalancerIngress, IngressLoadBalancerStatus, IngressSpec,
};
use karmada_api::Condition;
use karmada_api::gateway_api::{Gateway, GatewayClass, HttpRoute, Listener};
use objects::condition::{FALSE, TRUE, find};
use objects::{Key, Metadata};

use super::claims::refers_to;
use super::path::is_host;
use super::problem::RouteProblem;

/// Returns the problems of an ingress with `routes` that the Gateway itself has. TLS is a matter of its listeners.
pub fn gateway_problems(routes: &IngressSpec, gateway: &Gateway) -> BTreeSet<RouteProblem> {
    let tls = routes.tls.iter().flatten();
    let hosts = tls.flat_map(|tls| match tls.hosts.as_deref() {
        None | Some([]) => all_hosts(routes),
        Some(hosts) => hosts.iter().map(String::as_str).collect(),
    });
    let hosts: BTreeSet<&str> = hosts.filter(|host| is_host(host)).collect();
    let unserved = hosts
        .into_iter()
        .filter(|host| !serves_with_tls(gateway, host));
    unserved
        .map(|host| RouteProblem::NoTls {
            gateway: Key::of(gateway),
            host: host.to_owned(),
        })
        .collect()
}

/// Returns the objections of the controller of `gateway` to one of our routes as it is now.
pub fn route_problems(
    route: &HttpRoute,
    gateway: &Gateway,
    class: Option<&GatewayClass>,
) -> BTreeSet<RouteProblem> {
    let conditions = conditions(route, gateway, class).filter(|condition| {
        let observed = condition.observed_generation;
        observed.is_none() || observed == route.metadata.generation
    });
    let conditions: Vec<&Condition> = conditions.collect();
    let gateway_key = Key::of(gateway);
    if conditions.is_empty() {
        let said = not_programmed(gateway).map(said);
        return said
            .map(|said| RouteProblem::NotProgrammed {
                gateway: gateway_key,
                said,
            })
            .into_iter()
            .collect();
    }
    let wrong = conditions
        .into_iter()
        .filter(|condition| match condition.type_.as_str() {
            "Accepted" | "ResolvedRefs" => condition.status == FALSE,
            "PartiallyInvalid" => condition.status == TRUE,
            _ => false,
        });
    wrong
        .map(|condition| RouteProblem::Refused {
            gateway: gateway_key.clone(),
            route: Key::of(route),
            said: said(condition),
        })
        .collect()
}

/// Returns the addresses of `gateway`, if it serves one of our `routes`, or served it before its last change: an ingress must not
/// lose its addresses for each.
pub fn addresses<'a>(
    routes: impl IntoIterator<Item = &'a HttpRoute>,
    gateway: &Gateway,
    class: Option<&GatewayClass>,
) -> IngressLoadBalancerStatus {
    let mut routes = routes.into_iter();
    let is_served = routes.any(|route| {
        let conditions = conditions(route, gateway, class);
        find(conditions, "Accepted").is_some_and(|condition| condition.status == TRUE)
    });
    if !is_served {
        return IngressLoadBalancerStatus::default();
    }
    let addresses = gateway.status.iter().flat_map(|status| &status.addresses);
    let addresses = addresses.filter_map(|address| {
        let value = Some(address.value.clone()).filter(|value| !value.is_empty());
        let (ip, hostname) = match address.type_.as_deref().unwrap_or("IPAddress") {
            "IPAddress" => (value, None),
            "Hostname" => (None, value),
            _ => return None,
        };
        Some(IngressLoadBalancerIngress {
            ip,
            hostname,
            ports: None,
        })
    });
    IngressLoadBalancerStatus {
        ingress: Some(addresses.collect()),
    }
}

/// Returns the conditions of a route that the controller of `gateway` has set for this Gateway as a whole. Others are left
/// over, or somebody else's.
fn conditions<'a>(
    route: &'a HttpRoute,
    gateway: &Gateway,
    class: Option<&GatewayClass>,
) -> impl Iterator<Item = &'a Condition> {
    let (namespace, gateway) = (route.metadata.namespace(), Key::of(gateway));
    let controller = class.map(|class| class.spec.controller_name.clone());
    let parents = route.status.iter().flat_map(|status| &status.parents);
    let counted = parents.filter(move |entry| {
        let parent = &entry.parent_ref;
        let is_whole = parent.section_name.is_none() && parent.port.is_none();
        is_whole
            && refers_to(parent, namespace, &gateway)
            && Some(&entry.controller_name) == controller.as_ref()
    });
    counted.flat_map(|entry| &entry.conditions)
}

/// Returns the condition that says that a Gateway is not in service. One that says nothing may be.
fn not_programmed(gateway: &Gateway) -> Option<&Condition> {
    let conditions = &gateway.status.as_ref()?.conditions;
    let kinds = ["Accepted", "Programmed"].into_iter();
    let mut found = kinds.filter_map(|kind| find(conditions, kind));
    found.find(|condition| condition.status != TRUE)
}

fn said(condition: &Condition) -> String {
    let Condition {
        reason, message, ..
    } = condition;
    match (reason.as_str(), message.as_str()) {
        ("", "") => format!("{} is {}", condition.type_, condition.status),
        (reason, "") => reason.to_owned(),
        ("", message) => message.to_owned(),
        (reason, message) => format!("{reason}: {message}"),
    }
}

/// Returns the hosts of the rules; an empty one for all.
fn all_hosts(routes: &IngressSpec) -> Vec<&str> {
    let rules = routes.rules.iter().flatten();
    rules
        .map(|rule| rule.host.as_deref().unwrap_or_default())
        .collect()
}

fn serves_with_tls(gateway: &Gateway, host: &str) -> bool {
    let listeners = gateway.spec.listeners.iter();
    let mut listeners = listeners.filter(|listener| listener.protocol == "HTTPS");
    listeners.any(|listener| covers(listener, host) && is_in_service(gateway, listener))
}

/// Returns `true` if a listener is for all requests to a host.
fn covers(listener: &Listener, host: &str) -> bool {
    is_host_within(host, listener.hostname.as_deref().unwrap_or_default())
}

/// Returns `true` if `pattern`, which may begin with `*.`, has all names that `host` has. An empty one has all that there are.
pub(in crate::ingress) fn is_host_within(host: &str, pattern: &str) -> bool {
    pattern.is_empty()
        || pattern == host
        || pattern
            .strip_prefix('*')
            .is_some_and(|end| host.ends_with(end))
}

/// Returns `false` if the controller of the Gateway says that a listener cannot serve, as one without its certificate.
fn is_in_service(gateway: &Gateway, listener: &Listener) -> bool {
    let statuses = gateway.status.iter().flat_map(|status| &status.listeners);
    let mut own = statuses.filter(|status| status.name == listener.name);
    !own.any(|status| {
        let kinds = ["Accepted", "ResolvedRefs", "Programmed"];
        let mut found = kinds
            .iter()
            .filter_map(|kind| find(&status.conditions, kind));
        found.any(|condition| condition.status == FALSE)
    })
}
