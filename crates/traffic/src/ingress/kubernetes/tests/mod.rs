mod objects;
mod plan;
mod properties;

use std::collections::BTreeMap;
use std::sync::Arc;

use ::objects::Key;
use ::objects::patch::JsonPatch;
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

    fn plan(&self, desired: &Desired) -> KubernetesPlan<Ingress> {
        KubernetesPlan::new(desired, gateway().objects(desired), &self.existing()).unwrap()
    }

    fn apply(&mut self, plan: KubernetesPlan<Ingress>) {
        write(&mut self.slices, plan.successors, |_| {});
        remove(&mut self.slices, &plan.blocked_slices);
        write(&mut self.services, plan.services, |service| {
            let spec = service.spec.as_mut().unwrap();
            spec.cluster_ip = Some("10.96.0.1".to_owned());
            spec.session_affinity = Some("None".to_owned());
        });
        write(&mut self.slices, plan.slices, |_| {});
        write(&mut self.secrets, plan.secrets, |_| {});
        write(&mut self.ingresses, plan.routes, |_| {});
        remove(&mut self.ingresses, &plan.stale_routes);
        remove(&mut self.slices, &plan.stale_slices);
        remove(&mut self.services, &plan.stale_services);
        remove(&mut self.secrets, &plan.stale_secrets);
    }

    fn converged(desired: &Desired) -> Self {
        let mut cluster = Self::default();
        cluster.apply(cluster.plan(desired));
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

fn remove<K: Managed>(store: &mut BTreeMap<String, Arc<K>>, gone: &[Arc<K>]) {
    for object in gone {
        let name = object.metadata().name.as_ref().unwrap();
        assert!(store.remove(name).is_some(), "{name} is deleted twice");
    }
}

fn write<K: Managed + Serialize + DeserializeOwned + Clone>(
    store: &mut BTreeMap<String, Arc<K>>,
    writes: impl IntoIterator<Item = Write<K>>,
    fill_in: impl Fn(&mut K),
) {
    for write in writes {
        let object = match write {
            Write::Create(mut object) => {
                fill_in(&mut object);
                let name = object.metadata().name.clone().unwrap();
                assert!(!store.contains_key(&name), "{name} is created twice");
                object
            }
            Write::Update(Update { existing, edits }) => edited(&*existing, &edits),
        };
        store.insert(object.metadata().name.clone().unwrap(), Arc::new(object));
    }
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
    let owned = |list: &[&str]| list.iter().map(|&a| a.to_owned()).collect();
    let entry = |&(service, list): &(&str, &[&str])| (service_name(service), owned(list));
    expected.iter().map(entry).collect()
}
