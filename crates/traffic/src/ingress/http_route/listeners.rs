use std::collections::BTreeSet;

use k8s_openapi::api::networking::v1::IngressTLS;
use karmada_api::gateway_api::{CertificateReference, GROUP, HttpRoute, Listener, RouteGroupKind};
use objects::{Key, Metadata};

use super::attachment::Parent;
use super::refusal::Refusal;
use crate::ingress::gateway_api::is_host_within;

/// The refusal of routes whose namespaces a listener selects by label.
pub(super) const SELECTS: &str =
    "selects namespaces by label, which is not served; write Same or All";

/// The hosts and certificates that listeners give a route.
#[derive(Debug, Default)]
pub(super) struct Served {
    /// The hosts; an empty one is every host.
    pub(super) hosts: BTreeSet<String>,
    pub(super) tls: Vec<IngressTLS>,
}

impl Served {
    /// Adds the hosts and refusals of a parent to `route`.
    pub(super) fn add(&mut self, route: &HttpRoute, parent: &Parent<'_>) -> Result<(), Refusal> {
        let namespace = route.metadata.namespace();
        let mut hosts = BTreeSet::new();
        for listener in listeners(parent, namespace)? {
            let common = common_hosts(&route.spec.hostnames, listener.hostname.as_deref());
            if !common.is_empty() {
                let tls = tls(listener, &common, &parent.key, namespace)?;
                self.tls.extend(tls);
            }
            hosts.extend(common);
        }
        if hosts.is_empty() {
            return Err(Refusal::of_parent(
                "NoMatchingListenerHostname",
                format!(
                    "no listener of Gateway {} has a host of this route; its hostnames must be within those of a listener",
                    parent.key
                ),
            ));
        }
        self.hosts.extend(hosts);
        Ok(())
    }
}

/// Returns the names of the listeners at which a parent has hosts of `route`.
pub(super) fn attached<'a>(route: &HttpRoute, parent: &Parent<'a>) -> Vec<&'a str> {
    let taking = listeners(parent, route.metadata.namespace()).unwrap_or_default();
    let attached = taking.into_iter().filter(|listener| {
        let common = common_hosts(&route.spec.hostnames, listener.hostname.as_deref());
        !common.is_empty()
    });
    attached.map(|listener| listener.name.as_str()).collect()
}

/// Returns the listeners that a parent names and that take routes of `namespace`.
fn listeners<'a>(parent: &Parent<'a>, namespace: &str) -> Result<Vec<&'a Listener>, Refusal> {
    let (key, reference) = (&parent.key, parent.reference);
    let Some(gateway) = parent.gateway else {
        return Err(Refusal::of_parent(
            "NoMatchingParent",
            format!("Gateway {key} does not exist; create it, or remove it from parentRefs"),
        ));
    };
    let named = gateway.spec.listeners.iter().filter(|listener| {
        let name = reference.section_name.as_ref();
        name.is_none_or(|name| *name == listener.name)
            && reference
                .port
                .is_none_or(|port| Some(port) == listener.port)
    });
    let named: Vec<&Listener> = named.collect();
    if named.is_empty() {
        return Err(Refusal::of_parent(
            "NoMatchingParent",
            format!(
                "Gateway {key} has no listener of the sectionName and port that parentRefs names"
            ),
        ));
    }
    let is_here = namespace == key.namespace;
    let taking = named.iter().copied();
    let taking: Vec<&Listener> = taking.filter(|listener| takes(listener, is_here)).collect();
    if !taking.is_empty() {
        return Ok(taking);
    }
    let selects = named.iter().any(|listener| selects(listener));
    Err(Refusal::of_parent(
        "NotAllowedByListeners",
        if selects {
            format!("allowedRoutes of Gateway {key} {SELECTS}")
        } else {
            format!("no listener of Gateway {key} takes HTTPRoutes of namespace {namespace}")
        },
    ))
}

/// Returns `true` if a listener takes routes: of the Gateway's namespace if the route `is_here`, and else of another.
fn takes(listener: &Listener, is_here: bool) -> bool {
    let is_namespace = match from(listener) {
        "All" => true,
        "Same" => is_here,
        _ => false,
    };
    takes_routes(listener) && is_namespace
}

/// Returns `true` if a listener takes `HTTPRoute`s.
pub(super) fn takes_routes(listener: &Listener) -> bool {
    let mut kinds = kinds(listener).peekable();
    let is_kind = kinds.peek().is_none() || kinds.any(is_route);
    speaks_http(listener) && !passes_tls(listener) && is_kind
}

pub(super) fn speaks_http(listener: &Listener) -> bool {
    matches!(listener.protocol.as_str(), "HTTP" | "HTTPS")
}

/// Returns `true` if TLS ends elsewhere, so that no request can be read.
pub(super) fn passes_tls(listener: &Listener) -> bool {
    let tls = listener
        .tls
        .as_ref()
        .filter(|_| listener.protocol == "HTTPS");
    tls.is_some_and(|tls| tls.mode.as_deref() == Some("Passthrough"))
}

/// Returns `true` if a listener selects namespaces by label.
pub(super) fn selects(listener: &Listener) -> bool {
    from(listener) == "Selector"
}

/// Returns the kinds of routes that a listener names.
pub(super) fn kinds(listener: &Listener) -> impl Iterator<Item = &RouteGroupKind> {
    let allowed = listener.allowed_routes.iter();
    allowed.flat_map(|allowed| &allowed.kinds)
}

/// Returns `true` if `kind` is that of `HTTPRoute`s.
pub(super) fn is_route(kind: &RouteGroupKind) -> bool {
    kind.kind == "HTTPRoute" && kind.group.as_deref().unwrap_or(GROUP) == GROUP
}

/// Returns the certificates of a listener.
pub(super) fn certificates(listener: &Listener) -> impl Iterator<Item = &CertificateReference> {
    let tls = listener.tls.iter();
    let tls = tls.filter(move |_| listener.protocol == "HTTPS");
    tls.flat_map(|tls| &tls.certificate_refs)
}

/// Returns `true` if a certificate is in a Secret.
pub(super) fn is_secret(certificate: &CertificateReference) -> bool {
    certificate.group.as_deref().unwrap_or_default().is_empty()
        && certificate.kind.as_deref().unwrap_or("Secret") == "Secret"
}

fn from(listener: &Listener) -> &str {
    let allowed = listener.allowed_routes.as_ref();
    let namespaces = allowed.and_then(|allowed| allowed.namespaces.as_ref());
    namespaces
        .and_then(|namespaces| namespaces.from.as_deref())
        .unwrap_or("Same")
}

/// Returns the hosts that both a route and a listener have. An empty one is every host.
fn common_hosts(route: &[String], listener: Option<&str>) -> BTreeSet<String> {
    let listener = listener.unwrap_or_default();
    if route.is_empty() {
        return [listener.to_owned()].into();
    }
    let common = route.iter().filter_map(|host| {
        if is_host_within(host, listener) {
            Some(host.clone())
        } else {
            is_host_within(listener, host).then(|| listener.to_owned())
        }
    });
    common.collect()
}

/// Returns the TLS of `hosts` at a listener of `gateway`. The Secret that an ingress names is in its own namespace.
fn tls(
    listener: &Listener,
    hosts: &BTreeSet<String>,
    gateway: &Key,
    namespace: &str,
) -> Result<Vec<IngressTLS>, Refusal> {
    if listener.protocol != "HTTPS" {
        return Ok(Vec::new());
    }
    let mut secrets = Vec::new();
    for certificate in certificates(listener) {
        let of = certificate.namespace.as_ref().unwrap_or(&gateway.namespace);
        if !is_secret(certificate) || of != namespace {
            return Err(Refusal::unsupported(format!(
                "listener {} of Gateway {gateway} has a certificate that is no Secret in namespace {namespace}; attach the route to another listener by sectionName, or to a Gateway of its namespace",
                listener.name
            )));
        }
        secrets.push(Some(certificate.name.clone()));
    }
    if secrets.is_empty() {
        secrets.push(None);
    }
    let names = hosts.iter().filter(|host| !host.is_empty());
    let names: Vec<String> = names.cloned().collect();
    let hosts = Some(names).filter(|names| !names.is_empty());
    let tls = secrets.into_iter().map(|secret_name| IngressTLS {
        hosts: hosts.clone(),
        secret_name,
    });
    Ok(tls.collect())
}
