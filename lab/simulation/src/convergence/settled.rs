//! The comparison of a settled fleet with the model.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::Value;

use super::kinds::{Kind, Objects};
use super::model::{self, INGRESS_ANNOTATION, SERVICE_LABEL};
use super::program::CONTROLLER;
use crate::clock;
use crate::harness::value::{is_deleting, items, name, text};

/// Returns every difference between the objects and the model.
pub(crate) fn differences(objects: &Objects) -> Vec<String> {
    let mut found = Differences::default();
    for cluster in of(objects, Kind::Cluster) {
        check_cluster(objects, cluster, &mut found);
    }
    for remedy in of(objects, Kind::Remedy) {
        check_remedy(objects, remedy, &mut found);
    }
    for ingress in of(objects, Kind::MultiClusterIngress) {
        check_ingress(objects, ingress, &mut found);
    }
    check_gateway(objects, &mut found);
    found.lines
}

fn of(objects: &Objects, kind: Kind) -> impl Iterator<Item = &Value> {
    objects
        .iter()
        .filter(move |((of, _), _)| *of == kind)
        .map(|(_, object)| object)
}

fn find<'a>(objects: &'a Objects, kind: Kind, name: &str) -> Option<&'a Value> {
    objects.get(&(kind, name.to_owned()))
}

/// The differences found so far.
#[derive(Default)]
struct Differences {
    lines: Vec<String>,
}

impl Differences {
    fn equal<T: PartialEq + std::fmt::Debug>(&mut self, what: &str, is: &T, must: &T) {
        if is != must {
            self.lines
                .push(format!("{what}: {is:?} instead of {must:?}"));
        }
    }
}

/// Compares the actions of a cluster. A cluster that is being deleted may keep any.
fn check_cluster(objects: &Objects, cluster: &Value, found: &mut Differences) {
    if is_deleting(cluster) {
        return;
    }
    let remedies = of(objects, Kind::Remedy);
    let wanted = remedies
        .flat_map(|remedy| model::wanted_actions(remedy, cluster, clock::now()))
        .collect();
    let what = format!("remedyActions of {}", name(cluster));
    found.equal(
        &what,
        &cluster["status"]["remedyActions"],
        &model::written(&wanted),
    );
}

/// Compares the status of a Remedy.
fn check_remedy(objects: &Objects, remedy: &Value, found: &mut Differences) {
    let acting = of(objects, Kind::Cluster)
        .filter(|cluster| model::acts_on(remedy, cluster, clock::now()))
        .map(|cluster| name(cluster).to_owned());
    let wrong = model::misstatement(remedy, &remedy["status"], &acting.collect());
    found.equal(&format!("status of {}", name(remedy)), &wrong, &None);
}

fn is_served(objects: &Objects, ingress: &Value) -> bool {
    !is_deleting(ingress) && model::is_served(ingress, of(objects, Kind::IngressClass))
}

fn check_ingress(objects: &Objects, ingress: &Value, found: &mut Differences) {
    let name = name(ingress);
    let status = &ingress["status"];
    let is_served = is_served(objects, ingress);
    let what = format!("our finalizer on {name}");
    found.equal(&what, &model::carries(ingress, CONTROLLER), &is_served);
    if is_deleting(ingress) {
        let is_ours = model::is_ours(ingress, of(objects, Kind::IngressClass));
        let finalizers = items(ingress, "/metadata/finalizers").filter_map(Value::as_str);
        let stuck: Vec<&str> = finalizers
            .filter(|f| !model::may_keep(f, is_ours))
            .collect();
        found.equal(
            &format!("finalizers that block the deletion of {name}"),
            &stuck,
            &vec![],
        );
    }
    let mut locations = Vec::new();
    let mut blocked = BTreeSet::new();
    for service in is_served
        .then(|| model::services(ingress))
        .into_iter()
        .flatten()
    {
        let binding = find(objects, Kind::Binding, &model::binding_name(&service));
        if let Some(clusters) = model::located(&service, binding) {
            locations.push(model::location(&service, &clusters));
            blocked.extend(clusters.into_iter().filter(|cluster| {
                find(objects, Kind::Cluster, cluster).is_some_and(model::is_blocked)
            }));
        }
    }
    let locations = if locations.is_empty() {
        Value::Null
    } else {
        locations.into()
    };
    let addresses = find(objects, Kind::GatewayIngress, name)
        .map(|served| served["status"]["loadBalancer"].clone())
        .filter(|balancer| items(balancer, "/ingress").next().is_some());
    for (field, must) in [
        ("serviceLocations", locations),
        ("trafficBlockClusters", model::written(&blocked)),
        ("loadBalancer", addresses.unwrap_or_default()),
    ] {
        found.equal(&format!("{field} of {name}"), &status[field], &must);
    }
}

/// The ports and endpoints of each backend of an ingress at the gateway. A backend without a template,
/// or whose template has no ports, has neither.
type Served = BTreeMap<(String, String), (Vec<String>, BTreeSet<String>)>;

fn check_gateway(objects: &Objects, found: &mut Differences) {
    let must: BTreeMap<&str, Served> = of(objects, Kind::MultiClusterIngress)
        .filter(|ingress| is_served(objects, ingress))
        .map(|ingress| (name(ingress), wanted(objects, ingress)))
        .collect();
    let is: BTreeMap<&str, Served> = of(objects, Kind::GatewayIngress)
        .map(|ingress| (name(ingress), served(objects, ingress)))
        .collect();
    found.equal("ingresses served by the gateway", &is, &must);
    check_leftovers(objects, found);
}

fn wanted(objects: &Objects, ingress: &Value) -> Served {
    let backends = model::backends(ingress).into_iter();
    backends
        .map(|(service, port)| {
            let template = find(objects, Kind::Service, &service);
            let ports = template.map(model::ports).unwrap_or_default();
            let endpoints = if ports.is_empty() {
                BTreeSet::new()
            } else {
                admitted(objects, &service, &ports)
            };
            ((service, port), (ports, endpoints))
        })
        .collect()
}

/// Returns the endpoints of a Service in admitted clusters or, if these have none, in readmitted ones.
fn admitted(objects: &Objects, service: &str, ports: &[String]) -> BTreeSet<String> {
    let binding = find(objects, Kind::Binding, &model::binding_name(service));
    let mut located = model::located(service, binding).unwrap_or_default();
    let slices: Vec<&Value> = of(objects, Kind::EndpointSlice)
        .filter(|slice| model::collected_for(slice) == Some(service))
        .collect();
    let mut admitted = located.clone();
    admitted.retain(|name| find(objects, Kind::Cluster, name).is_some_and(model::is_admitted));
    let is_served = slices.iter().any(|slice| {
        let cluster = model::collected_from(slice);
        cluster.is_some_and(|cluster| admitted.contains(cluster))
            && !model::endpoints(slice).is_empty()
    });
    if is_served {
        located = admitted;
    } else {
        located.retain(|name| {
            let cluster = find(objects, Kind::Cluster, name);
            cluster.is_some_and(|cluster| {
                model::is_readmissible(cluster, of(objects, Kind::Remedy), clock::now())
            })
        });
    }
    slices
        .into_iter()
        .filter(|slice| {
            model::collected_from(slice).is_some_and(|cluster| located.contains(cluster))
        })
        .flat_map(|slice| model::served_endpoints(slice, ports))
        .collect()
}

/// Follows an Ingress of the gateway through its Services to their slices. The name of such a Service
/// begins with the names of the users' ingress and Service.
fn served(objects: &Objects, ingress: &Value) -> Served {
    let backends = model::backends(ingress).into_iter();
    backends
        .map(|(gateway_service, port)| {
            let service = find(objects, Kind::GatewayService, &gateway_service);
            let slices = of(objects, Kind::GatewaySlice)
                .filter(|slice| text(*slice, SERVICE_LABEL) == gateway_service);
            let ports = service.map(model::ports).unwrap_or_default();
            let endpoints = slices.flat_map(model::endpoints).collect();
            let original = model::original(&gateway_service, name(ingress));
            let original = original.unwrap_or(&gateway_service).to_owned();
            ((original, port), (ports, endpoints))
        })
        .collect()
}

/// Checks that, at the gateway, every Service belongs to an Ingress, every slice belongs to a Service,
/// and every object names its ingress.
fn check_leftovers(objects: &Objects, found: &mut Differences) {
    let routed: BTreeSet<String> = of(objects, Kind::GatewayIngress)
        .flat_map(model::services)
        .collect();
    let services: BTreeSet<String> = of(objects, Kind::GatewayService)
        .map(|service| name(service).to_owned())
        .collect();
    let left: Vec<&String> = services.difference(&routed).collect();
    found.equal("Services left over at the gateway", &left, &vec![]);
    let left: Vec<&str> = of(objects, Kind::GatewaySlice)
        .filter(|slice| !services.contains(text(*slice, SERVICE_LABEL)))
        .map(name)
        .collect();
    found.equal("EndpointSlices left over at the gateway", &left, &vec![]);
    for kind in [
        Kind::GatewayService,
        Kind::GatewaySlice,
        Kind::GatewayIngress,
    ] {
        let unmarked =
            of(objects, kind).filter(|object| text(*object, INGRESS_ANNOTATION).is_empty());
        let unmarked: Vec<&str> = unmarked.map(name).collect();
        found.equal(
            "objects at the gateway without the name of an ingress",
            &unmarked,
            &vec![],
        );
    }
}
