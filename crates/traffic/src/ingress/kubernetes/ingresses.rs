use k8s_openapi::api::core::v1::Secret;
use k8s_openapi::api::networking::v1::{
    Ingress, IngressBackend, IngressRule, IngressSpec, IngressTLS,
};
use objects::Key;

use super::managed_by::{ManagedBy, add_recorded};
use super::names::{ingress_name, secret_name, service_name};
use super::objects::{Objects, backend_objects, non_blank};
use super::routes::all_routes;
use super::scheme::ingress_scheme;
use crate::ingress::{Cached, ControllerName, Desired, TlsSecret};

/// The factory of the objects of a gateway cluster with an ingress controller.
#[derive(Clone, Debug)]
pub struct Ingresses {
    managed_by: ManagedBy,
    class: Option<String>,
}

impl Ingresses {
    /// Creates a factory for `controller`. The gateway cluster's ingress `class`, or its default class, serves the
    /// objects.
    pub fn new(controller: &ControllerName, class: Option<String>) -> Self {
        Self {
            managed_by: ManagedBy::new(controller),
            class,
        }
    }

    /// Returns the label of the objects.
    pub fn managed_by(&self) -> &ManagedBy {
        &self.managed_by
    }

    /// Returns the objects that serve `desired`.
    pub fn objects(&self, desired: &Desired) -> Objects<Ingress> {
        let secrets = desired.secrets.iter();
        Objects {
            secrets: secrets
                .filter_map(|secret| self.secret(&desired.key, secret))
                .collect(),
            // An Ingress needs a rule or a default backend.
            routes: Some(self.ingress(desired).into_iter().collect()),
            ..backend_objects(&self.managed_by, desired)
        }
    }

    /// Returns the copy of a Secret. Each ingress has one of its own, which goes with it.
    fn secret(&self, ingress: &Key, secret: &TlsSecret) -> Option<Secret> {
        let Cached::Present(source) = &secret.source else {
            return None;
        };
        Some(Secret {
            metadata: self
                .managed_by
                .metadata(ingress, secret_name(ingress, &secret.name)),
            data: source.data.clone(),
            type_: source.type_.clone(),
            ..Secret::default()
        })
    }

    fn ingress(&self, desired: &Desired) -> Option<Ingress> {
        let key = &desired.key;
        let routes = &desired.routes;
        let (default_backend, rules) = all_routes(routes);
        let spec = IngressSpec {
            default_backend: default_backend.map(|backend| renamed(key, backend)),
            ingress_class_name: self.class.clone(),
            rules: non_empty(rules.into_iter().map(|r| renamed_rule(key, r)).collect()),
            tls: non_empty(
                routes
                    .tls
                    .iter()
                    .flatten()
                    .map(|t| tls(desired, t))
                    .collect(),
            ),
        };
        let routes_anything = spec.default_backend.is_some() || spec.rules.is_some();
        routes_anything.then(|| {
            let mut metadata = self.managed_by.metadata(key, ingress_name(key));
            let mut annotations = ingress_scheme(desired);
            // The user's word goes before the default of a port.
            annotations.extend(desired.annotations.clone());
            add_recorded(&mut metadata, annotations);
            Ingress {
                metadata,
                spec: Some(spec),
                status: None,
            }
        })
    }
}

/// Replaces an empty list by none, as an API server does: the desired object must equal the stored one.
fn non_empty<T>(list: Vec<T>) -> Option<Vec<T>> {
    Some(list).filter(|list| !list.is_empty())
}

/// Returns the TLS with the gateway's copy of its Secret, or with the Secret of that name which the user may have put there.
fn tls(desired: &Desired, tls: &IngressTLS) -> IngressTLS {
    let name = non_blank(tls.secret_name.clone());
    let copied = desired
        .secrets
        .iter()
        .find(|secret| Some(&secret.name) == name.as_ref() && secret.source != Cached::Absent);
    IngressTLS {
        hosts: tls.hosts.clone().and_then(non_empty),
        secret_name: match copied {
            Some(secret) => Some(secret_name(&desired.key, &secret.name)),
            None => name,
        },
    }
}

fn renamed_rule(ingress: &Key, mut rule: IngressRule) -> IngressRule {
    rule.host = non_blank(rule.host);
    for path in rule.http.iter_mut().flat_map(|http| &mut http.paths) {
        path.path = non_blank(path.path.take());
        path.backend = renamed(ingress, std::mem::take(&mut path.backend));
    }
    rule
}

/// Replaces the Service of a backend by the gateway's.
fn renamed(ingress: &Key, mut backend: IngressBackend) -> IngressBackend {
    if let Some(service) = &mut backend.service {
        service.name = service_name(ingress, &service.name);
        if let Some(port) = &mut service.port {
            port.name = non_blank(port.name.take());
            port.number = port.number.filter(|&number| number != 0);
        }
    }
    backend
}
