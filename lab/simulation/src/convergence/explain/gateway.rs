//! The writes to the gateway.

use serde_json::{Value, json};

use crate::convergence::kinds::{Kind, Side};
use crate::convergence::model::{self, INGRESS_ANNOTATION, SERVICE_LABEL, original};
use crate::harness::oracle::{Check, Facts, check};
use crate::harness::value::{items, name, text};

const SOURCE_ANNOTATION: &str = "/metadata/annotations/karmada-rs.io~1collected-endpoint-slice";
const CLUSTER_LABEL: &str = "/metadata/labels/karmada-rs.io~1cluster";

/// Returns the rules, TLS and default backend of an Ingress, with the users' names of the Services.
fn routes(served: &Value) -> Option<[Value; 3]> {
    let ingress = text(served, INGRESS_ANNOTATION);
    let mut spec = served["spec"].clone();
    let rules = spec["rules"].as_array_mut().into_iter().flatten();
    let paths = rules.flat_map(|rule| rule["http"]["paths"].as_array_mut().into_iter().flatten());
    for path in paths {
        rename(&mut path["backend"], ingress)?;
    }
    if spec["defaultBackend"].is_object() {
        rename(&mut spec["defaultBackend"], ingress)?;
    }
    Some(parts(&spec))
}

fn rename(backend: &mut Value, ingress: &str) -> Option<()> {
    let name = original(text(&*backend, "/service/name"), ingress)?.to_owned();
    backend["service"]["name"] = name.into();
    Some(())
}

fn parts(spec: &Value) -> [Value; 3] {
    let mut spec = spec.clone();
    // The hosts of this simulation have a path for everything, so a default backend beside them is for the other hosts.
    if items(&spec, "/rules").next().is_some() && spec["defaultBackend"].is_object() {
        let backend = spec["defaultBackend"].take();
        let path = json!({ "path": "/", "pathType": "Prefix", "backend": backend });
        let rule = json!({ "http": { "paths": [path] } });
        spec["rules"]
            .as_array_mut()
            .into_iter()
            .for_each(|rules| rules.push(rule.clone()));
    }
    ["rules", "tls", "defaultBackend"].map(|part| spec[part].clone())
}

impl Facts<'_> {
    /// Checks an object at the gateway as a write leaves it.
    pub(super) fn placement(&self, kind: Kind, object: &Value) -> Check {
        check(kind.side() == Side::Gateway, || {
            "no rule explains such a write".to_owned()
        })?;
        let ingress = text(object, INGRESS_ANNOTATION);
        let served = self.served(ingress);
        check(!served.is_empty(), || {
            format!("in no version the ingress {ingress:?} is ours to serve")
        })?;
        match kind {
            Kind::GatewayService => self.service(&served, ingress, object),
            Kind::GatewaySlice => self.admission(&served, ingress, object),
            _ => routing(&served, ingress, object),
        }
    }

    /// Checks that a Service is a backend of the ingress with the ports of some version of its template.
    fn service(&self, served: &[&Value], ingress: &str, object: &Value) -> Check {
        let service = original(name(object), ingress).unwrap_or_default();
        names(served, service)?;
        let written = model::ports(object);
        let explained = self
            .present(Kind::Service, service)
            .any(|template| model::ports(template) == written && !written.is_empty());
        check(explained, || {
            format!("no version of {service:?} has the ports {written:?}")
        })
    }

    /// Checks that a slice leads into a cluster with an admitted version, in which some version of the
    /// binding places the Service, and to the endpoints of some version of the slice collected from there.
    fn admission(&self, served: &[&Value], ingress: &str, slice: &Value) -> Check {
        let cluster = text(slice, CLUSTER_LABEL);
        let service = original(text(slice, SERVICE_LABEL), ingress).unwrap_or_default();
        names(served, service)?;
        let admitted = self.present(Kind::Cluster, cluster).any(model::is_admitted);
        check(admitted || self.may_be_readmitted(service, cluster), || {
            format!("{cluster} was never known as admitted")
        })?;
        let located = self
            .versions(Kind::Binding, &model::binding_name(service))
            .into_iter()
            .any(|binding| {
                binding.is_some_and(|b| !model::is_readable(Kind::Binding, b))
                    || model::located(service, binding).is_some_and(|all| all.contains(cluster))
            });
        check(located, || {
            format!("{service:?} was never known to be located in {cluster}")
        })?;
        let written = model::endpoints(slice);
        let source = text(slice, SOURCE_ANNOTATION);
        let ports: Vec<_> = self
            .present(Kind::Service, service)
            .map(model::ports)
            .collect();
        check(ports.iter().any(|ports| !ports.is_empty()), || {
            format!("{service:?} never had ports")
        })?;
        let collected = self.present(Kind::EndpointSlice, source).any(|source| {
            let mut ports = ports.iter();
            model::collected_for(source) == Some(service)
                && model::collected_from(source) == Some(cluster)
                && ports.any(|ports| model::served_endpoints(source, ports) == written)
        });
        check(collected && !written.is_empty(), || {
            format!("{written:?} were never collected in {source:?} for {service:?} from {cluster}")
        })
    }

    /// Returns `true` if in some versions no person blocked a cluster, and no cluster in which a Service
    /// runs is admitted and has endpoints of it. A binding that cannot be read may place it in that cluster alone.
    fn may_be_readmitted(&self, service: &str, cluster: &str) -> bool {
        let none_serves = self
            .present(Kind::Binding, &model::binding_name(service))
            .filter_map(|binding| {
                if model::is_readable(Kind::Binding, binding) {
                    model::located(service, Some(binding))
                } else {
                    Some([cluster.to_owned()].into())
                }
            })
            .any(|located| {
                located.iter().all(|one| {
                    let versions = self.versions(Kind::Cluster, one);
                    let mut versions = versions.iter();
                    versions.any(|version| !version.is_some_and(model::is_admitted))
                        || self.may_lack_endpoints(service, one)
                })
            });
        let undecided = |object: &&Value| {
            self.names(Kind::Remedy).into_iter().all(|name| {
                let versions = self.versions(Kind::Remedy, name);
                let mut versions = versions.iter();
                versions.any(|remedy| {
                    let is_blocked_manually =
                        |now| remedy.is_some_and(|r| model::is_blocked_manually(r, object, now));
                    self.times.map(is_blocked_manually).contains(&false)
                })
            })
        };
        let readmissible =
            |object: &&Value| model::is_readmissible(object, std::iter::empty(), self.times[0]);
        let mut clusters = self.present(Kind::Cluster, cluster).filter(readmissible);
        none_serves && clusters.any(|object| undecided(&object))
    }

    /// Returns `true` if in some versions no endpoints of a Service are collected from a cluster.
    fn may_lack_endpoints(&self, service: &str, cluster: &str) -> bool {
        self.names(Kind::EndpointSlice).into_iter().all(|name| {
            let versions = self.versions(Kind::EndpointSlice, name);
            versions.into_iter().any(|slice| {
                slice.is_none_or(|slice| {
                    model::collected_for(slice) != Some(service)
                        || model::collected_from(slice) != Some(cluster)
                        || model::endpoints(slice).is_empty()
                })
            })
        })
    }

    /// Checks that the object of a deletion has no reason to exist in some versions of its sources.
    pub(super) fn removal(&self, kind: Kind, name: &str, body: &Value) -> Check {
        check(kind.side() == Side::Gateway, || {
            "no rule explains such a write".to_owned()
        })?;
        let object = self.base(kind, name, &body["preconditions"]["resourceVersion"])?;
        let ingress = text(object, INGRESS_ANNOTATION);
        check(!ingress.is_empty(), || "it is not ours".to_owned())?;
        let service = match kind {
            Kind::GatewayService => Some(name),
            Kind::GatewaySlice => Some(text(object, SERVICE_LABEL)),
            _ => None,
        };
        let service = service.map(|name| original(name, ingress).unwrap_or_default());
        let ingresses = self.versions(Kind::MultiClusterIngress, ingress);
        let not_routed = ingresses.iter().any(|ingress| {
            ingress.is_none_or(|ingress| {
                let services = model::services(ingress);
                let is_named = service.is_none_or(|service| services.contains(service));
                let is_readable = model::is_readable(Kind::MultiClusterIngress, ingress);
                self.may_serve(ingress).1 || is_readable && !is_named
            })
        });
        let explained = not_routed
            || service.is_some_and(|service| self.no_ports(service))
            || kind == Kind::GatewaySlice
                && service.is_some_and(|service| self.excluded(service, object));
        check(explained, || "nothing explains the deletion".to_owned())
    }

    /// Returns `true` if in some version a Service has no template, or one without ports.
    fn no_ports(&self, service: &str) -> bool {
        let templates = self.versions(Kind::Service, service);
        templates
            .iter()
            .any(|template| template.is_none_or(|t| model::ports(t).is_empty()))
    }

    /// Returns `true` if in some version the cluster of a slice is not admitted or not a location of its
    /// Service, or the slice that was collected there is gone.
    fn excluded(&self, service: &str, slice: &Value) -> bool {
        let cluster = text(slice, CLUSTER_LABEL);
        let clusters = self.versions(Kind::Cluster, cluster);
        let not_admitted = clusters
            .iter()
            .any(|version| !version.is_some_and(model::is_admitted));
        let sources = self.versions(Kind::EndpointSlice, text(slice, SOURCE_ANNOTATION));
        let gone = sources.iter().any(|source| {
            source.is_none_or(|source| {
                items(source, "/endpoints").next().is_none()
                    || model::collected_for(source) != Some(service)
                    || model::collected_from(source) != Some(cluster)
            })
        });
        let bindings = self.versions(Kind::Binding, &model::binding_name(service));
        let not_located = bindings.iter().any(|binding| {
            binding.is_none_or(|b| model::is_readable(Kind::Binding, b))
                && !model::located(service, *binding).is_some_and(|all| all.contains(cluster))
        });
        not_admitted || gone || not_located
    }
}

/// Checks that some version of an ingress names a Service.
fn names(served: &[&Value], service: &str) -> Check {
    let named = served
        .iter()
        .any(|ingress| model::services(ingress).contains(service));
    check(named, || {
        format!("no version of the ingress names {service:?}")
    })
}

/// Checks that an Ingress has the routes of some version of the user's.
fn routing(served: &[&Value], ingress: &str, object: &Value) -> Check {
    let written = routes(object);
    let explained = name(object) == ingress
        && served
            .iter()
            .any(|served| written.as_ref() == Some(&parts(&served["spec"])));
    check(explained, || {
        "no version of the ingress has these routes".to_owned()
    })
}
