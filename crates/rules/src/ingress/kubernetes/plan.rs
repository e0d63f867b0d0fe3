use std::collections::BTreeSet;
use std::fmt;
use std::sync::Arc;

use k8s_openapi::api::core::v1::Service;
use k8s_openapi::api::discovery::v1::EndpointSlice;
use k8s_openapi::api::networking::v1::Ingress;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use karmada_api::Key;

use super::drift::{Edit, Managed};
use super::objects::{
    CLUSTER_LABEL, Gateway, Objects, SERVICE_LABEL, SOURCE_ANNOTATION, ingress_of,
};
use crate::ingress::{Admission, Cached, Desired};

/// The objects with our label that were made for an ingress, and those that have the name of one
/// that is wanted for it.
#[derive(Clone, Debug, Default)]
pub struct Existing {
    /// Services.
    pub services: Vec<Arc<Service>>,
    /// `EndpointSlice`s.
    pub slices: Vec<Arc<EndpointSlice>>,
    /// Ingresses.
    pub ingresses: Vec<Arc<Ingress>>,
}

/// The writes that bring the gateway cluster to what is desired, in the order in which no request
/// fails for want of an object.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct KubernetesPlan {
    /// Endpoints of blocked clusters, deleted first, whatever becomes of the rest.
    pub blocked_slices: Vec<Arc<EndpointSlice>>,
    /// Services to create or update.
    pub services: Vec<Write<Service>>,
    /// Endpoints to create or update.
    pub slices: Vec<Write<EndpointSlice>>,
    /// The Ingress, if it must be created or updated.
    pub ingress: Option<Write<Ingress>>,
    /// Then to delete: Ingresses no longer wanted.
    pub stale_ingresses: Vec<Arc<Ingress>>,
    /// Then to delete: endpoints no longer wanted.
    pub stale_slices: Vec<Arc<EndpointSlice>>,
    /// Then to delete: Services no longer wanted.
    pub stale_services: Vec<Arc<Service>>,
    /// Objects that have the name of a wanted one and are made for another ingress.
    pub clashes: BTreeSet<Clash>,
}

/// An object to write.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Write<K> {
    /// It is not there.
    Create(K),
    /// It is not as it should be.
    Update(Update<K>),
}

/// An object to change.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Update<K> {
    /// As it is.
    pub existing: Arc<K>,
    /// What to change.
    pub edits: Vec<Edit>,
}

/// An object in the gateway cluster that is in the way and not ours to touch.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Clash {
    /// Its kind.
    pub kind: &'static str,
    /// Which.
    pub key: Key,
}

impl fmt::Display for Clash {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { kind, key } = self;
        write!(
            f,
            "{kind} {key} exists in the gateway cluster and was not made for this ingress; delete or rename it"
        )
    }
}

impl KubernetesPlan {
    /// How to come from `existing` to `wanted`, which was made of `desired`.
    ///
    /// # Errors
    /// When a part of an object does not serialize.
    pub fn new(
        desired: &Desired,
        wanted: Objects,
        existing: &Existing,
    ) -> serde_json::Result<Self> {
        let mut plan = Self::default();
        let clashes = &mut plan.clashes;
        let services = compare(&desired.key, wanted.services, &existing.services, clashes)?;
        let slices = compare(&desired.key, wanted.slices, &existing.slices, clashes)?;
        let ingress = wanted.ingress.into_iter().collect();
        let ingress = compare(&desired.key, ingress, &existing.ingresses, clashes)?;
        plan.services = services.writes;
        plan.slices = slices.writes;
        plan.ingress = ingress.writes.into_iter().next();
        plan.stale_ingresses = ingress.stale;
        let blocked = |slice: &Arc<EndpointSlice>| is_blocked(desired, slice);
        (plan.blocked_slices, plan.stale_slices) = slices.stale.into_iter().partition(blocked);
        plan.stale_slices
            .retain(|slice| !keeps_slice(desired, slice));
        plan.stale_services = services.stale;
        plan.stale_services
            .retain(|service| !keeps_service(desired, service));
        Ok(plan)
    }
}

/// How to remove everything that was made for an ingress.
pub fn removal(existing: Existing) -> KubernetesPlan {
    KubernetesPlan {
        stale_ingresses: existing.ingresses,
        stale_slices: existing.slices,
        stale_services: existing.services,
        ..KubernetesPlan::default()
    }
}

struct Compared<K> {
    writes: Vec<Write<K>>,
    stale: Vec<Arc<K>>,
}

fn compare<K: Managed>(
    ingress: &Key,
    wanted: Vec<K>,
    existing: &[Arc<K>],
    clashes: &mut BTreeSet<Clash>,
) -> serde_json::Result<Compared<K>> {
    let ours = |meta: &ObjectMeta| ingress_of(meta).as_ref() == Some(ingress);
    let mut stale: Vec<Arc<K>> = existing
        .iter()
        .filter(|k| ours(k.metadata()))
        .cloned()
        .collect();
    let mut writes = Vec::new();
    for object in wanted {
        let name = object.metadata().name.clone();
        stale.retain(|k| k.metadata().name != name);
        let Some(found) = existing.iter().find(|k| k.metadata().name == name) else {
            writes.push(Write::Create(object));
            continue;
        };
        if ingress_of(found.metadata()).is_some_and(|owner| owner != *ingress) {
            clashes.insert(Clash {
                kind: K::KIND,
                key: Key::new(&ingress.namespace, name.unwrap_or_default()),
            });
            continue;
        }
        let edits = object.edits(found)?;
        if !edits.is_empty() {
            let existing = Arc::clone(found);
            writes.push(Write::Update(Update { existing, edits }));
        }
    }
    Ok(Compared { writes, stale })
}

/// Whether the endpoints are of a blocked cluster.
fn is_blocked(desired: &Desired, slice: &EndpointSlice) -> bool {
    admission(desired, slice) == Some(Admission::Blocked)
}

/// Endpoints stay while what they were made from cannot be read, unless they are refused.
fn keeps_slice(desired: &Desired, slice: &EndpointSlice) -> bool {
    let annotations = slice.metadata.annotations.as_ref();
    let source = annotations.and_then(|a| a.get(SOURCE_ANNOTATION));
    let is_unread = source.is_some_and(|s| desired.unread_slices.contains(s));
    is_unread && admission(desired, slice) == Some(Admission::Admitted)
}

/// A Service stays while its template cannot be read.
fn keeps_service(desired: &Desired, service: &Service) -> bool {
    let name = service.metadata.name.as_deref();
    desired.backends.iter().any(|backend| {
        backend.ports == Cached::Unread
            && name == Some(&Gateway::service_name(&desired.key, &backend.service))
    })
}

fn admission(desired: &Desired, slice: &EndpointSlice) -> Option<Admission> {
    let labels = slice.metadata.labels.as_ref()?;
    let (service, cluster) = (labels.get(SERVICE_LABEL)?, labels.get(CLUSTER_LABEL)?);
    let named = |service: &str| Gateway::service_name(&desired.key, service);
    let mut backends = desired.backends.iter();
    let backend = backends.find(|backend| named(&backend.service) == *service)?;
    Some(backend.cluster(cluster)?.admission)
}
