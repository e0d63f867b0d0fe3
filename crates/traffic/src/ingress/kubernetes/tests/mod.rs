mod objects;
mod plan;
mod properties;

use std::collections::BTreeMap;
use std::sync::Arc;

use ::objects::Key;
use ::objects::patch::JsonPatch;
use ::objects::write::{Action, Write};
use k8s_openapi::api::core::v1::{Secret, Service};
use k8s_openapi::api::discovery::v1::EndpointSlice;
use k8s_openapi::api::networking::v1::{Ingress, IngressSpec};
use karmada_api::MultiClusterIngressStatus;
use serde::Serialize;
use serde::de::DeserializeOwned;

use super::*;
use crate::ingress::fixtures::{Fixture, ingress, template, two_services};
use crate::ingress::{BackendAddresses, Desired};

fn gateway() -> Ingresses {
    Ingresses::new(&"example.com/ours".parse().unwrap(), Some("web".into()))
}

fn key() -> Key {
    Key::new("ns", "i")
}

/// Returns the facts of two Services, of which the port of `t` has no name.
fn fixture() -> Fixture {
    two_services().with_template(template("t", &[("", 80)]))
}

fn desired(fixture: &Fixture, services: &[&str]) -> Desired {
    let spec = ingress("i", services, None).spec.ingress;
    desired_of(fixture, &spec)
}

fn desired_of(fixture: &Fixture, spec: &IngressSpec) -> Desired {
    let (status, addresses) = (
        MultiClusterIngressStatus::default(),
        BackendAddresses::Endpoints,
    );
    Desired::new(key(), spec, &status, addresses, fixture)
}

/// The objects in a gateway cluster, with the fields that an API server fills in.
#[derive(Clone, Debug, Default, PartialEq)]
struct Cluster {
    services: BTreeMap<String, Arc<Service>>,
    slices: BTreeMap<String, Arc<EndpointSlice>>,
    secrets: BTreeMap<String, Arc<Secret>>,
    ingresses: BTreeMap<String, Arc<Ingress>>,
}

impl Cluster {
    fn existing(&self) -> Existing<Ingress> {
        Existing {
            services: self.services.values().cloned().collect(),
            slices: self.slices.values().cloned().collect(),
            secrets: self.secrets.values().cloned().collect(),
            routes: self.ingresses.values().cloned().collect(),
        }
    }

    fn plan(&self, desired: &Desired) -> KubernetesPlan {
        KubernetesPlan::new(desired, gateway().objects(desired), &self.existing()).unwrap()
    }

    fn apply(&mut self, plan: &KubernetesPlan) {
        let writes = [
            &plan.successors,
            &plan.blocked_slices,
            &plan.writes,
            &plan.stale_routes,
            &plan.stale_backends,
        ];
        for write in writes.into_iter().flatten() {
            match &*write.object.resource.kind {
                "Service" => apply(&mut self.services, write, |service| {
                    let spec = service.spec.as_mut().unwrap();
                    spec.cluster_ip = Some("10.96.0.1".to_owned());
                    spec.session_affinity = Some("None".to_owned());
                }),
                "EndpointSlice" => apply(&mut self.slices, write, |_| {}),
                "Secret" => apply(&mut self.secrets, write, |_| {}),
                "Ingress" => apply(&mut self.ingresses, write, |_| {}),
                other => panic!("{other}"),
            }
        }
    }

    fn converged(desired: &Desired) -> Self {
        let mut cluster = Self::default();
        cluster.apply(&cluster.plan(desired));
        cluster
    }

    /// Returns the endpoints' addresses by the name of the gateway Service.
    fn addresses(&self) -> BTreeMap<String, Vec<String>> {
        let mut found: BTreeMap<String, Vec<String>> = BTreeMap::new();
        for slice in self.slices.values() {
            let Some((service, _)) = slice_origin(slice) else {
                continue;
            };
            let endpoints = slice.endpoints.iter().flatten();
            let addresses = endpoints.flat_map(|e| e.addresses.clone());
            found
                .entry(service.to_owned())
                .or_default()
                .extend(addresses);
        }
        for list in found.values_mut() {
            list.sort();
        }
        found
    }
}

fn apply<K: Serialize + DeserializeOwned>(
    store: &mut BTreeMap<String, Arc<K>>,
    write: &Write,
    fill_in: impl Fn(&mut K),
) {
    let name = write.object.key.name.clone();
    let object = match &write.action {
        Action::Create(body) => {
            assert!(!store.contains_key(&name), "{name} is created twice");
            let mut object = serde_json::from_value(body.clone()).unwrap();
            fill_in(&mut object);
            object
        }
        Action::Json(edits) => edited(&*store[&name], edits),
        Action::Delete => {
            assert!(store.remove(&name).is_some(), "{name} is deleted twice");
            return;
        }
        other => panic!("{other:?}"),
    };
    store.insert(name, Arc::new(object));
}

/// Returns the edits of the objects of `kind` that are updated.
fn edits_of<'a>(writes: &'a [Write], kind: &str) -> Vec<&'a JsonPatch> {
    let writes = writes
        .iter()
        .filter(|write| write.object.resource.kind == kind);
    let edits = writes.filter_map(|write| match &write.action {
        Action::Json(edits) => Some(edits),
        _ => None,
    });
    edits.collect()
}

/// Counts the writes to objects of `kind`.
fn count(writes: &[Write], kind: &str) -> usize {
    let kinds = writes.iter().map(|write| &*write.object.resource.kind);
    kinds.filter(|found| *found == kind).count()
}

fn edited<K: Serialize + DeserializeOwned>(object: &K, edits: &JsonPatch) -> K {
    let mut value = serde_json::to_value(object).unwrap();
    json_patch::patch(&mut value, edits.operations()).unwrap();
    serde_json::from_value(value).unwrap()
}

fn service_name(service: &str) -> String {
    super::service_name(&key(), service)
}

fn addresses(expected: &[(&str, &[&str])]) -> BTreeMap<String, Vec<String>> {
    let entries = expected.iter().map(|&(service, list)| {
        let list = list.iter().map(|&address| address.to_owned());
        (service_name(service), list.collect())
    });
    entries.collect()
}
