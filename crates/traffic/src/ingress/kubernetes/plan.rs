use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::sync::Arc;

use k8s_openapi::api::core::v1::{Secret, Service};
use k8s_openapi::api::discovery::v1::EndpointSlice;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use karmada_api::names::SERVICE_NAME;
use objects::Key;
use objects::patch::JsonPatch;

use super::drift::Managed;
use super::managed_by::ingress_of;
use super::names::{secret_name, service_name};
use super::objects::{CLUSTER_LABEL, Objects, SOURCE_ANNOTATION};
use crate::ingress::{Admission, Cached, Desired, Held, has_taker};

/// The type of slices with host names, which are of no family.
const NAMES: &str = "FQDN";

/// The objects with our label that were created for an ingress, and those with the name of an object that
/// it needs.
#[derive(Clone, Debug, Default)]
pub struct Existing<R> {
    /// Services.
    pub services: Vec<Arc<Service>>,
    /// `EndpointSlice`s.
    pub slices: Vec<Arc<EndpointSlice>>,
    /// Secrets.
    pub secrets: Vec<Arc<Secret>>,
    /// Routes.
    pub routes: Vec<Arc<R>>,
}

/// The writes that bring the gateway cluster to the desired state, in an order in which no request fails
/// because an object is missing.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct KubernetesPlan<R> {
    /// Endpoints to create or update first, of Services that would have none without the blocked ones.
    pub successors: Vec<Write<EndpointSlice>>,
    /// Endpoints of clusters that are blocked, leaving or unknown, deleted next, whatever becomes of other writes.
    pub blocked_slices: Vec<Arc<EndpointSlice>>,
    /// Services to create or update.
    pub services: Vec<Write<Service>>,
    /// Endpoints to create or update.
    pub slices: Vec<Write<EndpointSlice>>,
    /// Secrets to create or update.
    pub secrets: Vec<Write<Secret>>,
    /// Routes to create or update.
    pub routes: Vec<Write<R>>,
    /// Stale routes, deleted after the writes above.
    pub stale_routes: Vec<Arc<R>>,
    /// Stale endpoints, deleted next.
    pub stale_slices: Vec<Arc<EndpointSlice>>,
    /// Stale Services, deleted last, as stale Secrets are.
    pub stale_services: Vec<Arc<Service>>,
    /// Stale Secrets.
    pub stale_secrets: Vec<Arc<Secret>>,
    /// Objects with the name of a desired one that were not created for this ingress.
    pub clashes: BTreeSet<Clash>,
}

/// An object to write.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Write<K> {
    /// The object does not exist.
    Create(K),
    /// The object differs.
    Update(Update<K>),
}

/// An object to update.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Update<K> {
    /// The current object.
    pub existing: Arc<K>,
    /// The edits of the fields that we own.
    pub edits: JsonPatch,
}

/// An object in the gateway cluster that occupies a name and is not ours to change.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Clash {
    /// Its kind.
    pub kind: &'static str,
    /// Its namespace and name.
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

impl<R: Managed + Default> KubernetesPlan<R> {
    /// Plans the writes from `existing` to `wanted`, the objects for `desired`.
    ///
    /// # Errors
    /// Returns an error if a field of an object does not serialize.
    pub fn new(
        desired: &Desired,
        mut wanted: Objects<R>,
        existing: &Existing<R>,
    ) -> serde_json::Result<Self> {
        let mut plan = Self::default();
        leave_out_families(&mut wanted.slices, &existing.services);
        let clashes = &mut plan.clashes;
        let services = compare(&desired.key, wanted.services, &existing.services, clashes)?;
        let slices = compare(&desired.key, wanted.slices, &existing.slices, clashes)?;
        let secrets = compare(&desired.key, wanted.secrets, &existing.secrets, clashes)?;
        if let Some(routes) = wanted.routes {
            let routes = compare(&desired.key, routes, &existing.routes, clashes)?;
            plan.routes = routes.writes;
            plan.stale_routes = routes.stale;
        }
        plan.services = services.writes;
        plan.secrets = secrets.writes;
        let blocked = |slice: &Arc<EndpointSlice>| is_blocked(desired, slice);
        // Blocking comes first: traffic must leave a broken cluster even if a later write fails.
        (plan.blocked_slices, plan.stale_slices) = slices.stale.into_iter().partition(blocked);
        let bare = bare_services(&existing.slices, &plan.blocked_slices);
        let succeeds = |write: &Write<EndpointSlice>| {
            write_origin(write).is_some_and(|(service, _)| bare.contains(service))
        };
        (plan.successors, plan.slices) = slices.writes.into_iter().partition(succeeds);
        plan.stale_slices
            .retain(|slice| !keeps_slice(desired, slice));
        plan.stale_services = services.stale;
        plan.stale_services
            .retain(|service| !keeps_service(desired, service));
        plan.stale_secrets = secrets.stale;
        plan.stale_secrets
            .retain(|secret| !keeps_secret(desired, secret));
        Ok(plan)
    }
}

/// Leaves out the slices of a family that the gateway's Service lacks, of each cluster whose others take requests. In a gateway of
/// one family nothing reaches an address of the other.
fn leave_out_families(slices: &mut Vec<EndpointSlice>, services: &[Arc<Service>]) {
    let families = services.iter().filter_map(|service| {
        let families = service.spec.as_ref()?.ip_families.as_deref()?;
        Some((service.metadata.name.as_deref()?, families))
    });
    let families: BTreeMap<&str, &[String]> = families.collect();
    let is_reached = |slice: &EndpointSlice| {
        let families = slice_origin(slice).and_then(|(service, _)| families.get(service));
        slice.address_type == NAMES
            || families.is_none_or(|families| families.contains(&slice.address_type))
    };
    if slices.iter().all(is_reached) {
        return;
    }
    let reached = slices
        .iter()
        .filter(|slice| is_reached(slice) && has_taker(slice));
    let reached = reached.filter_map(slice_origin);
    let reached = reached.map(|(service, cluster)| (service.to_owned(), cluster.to_owned()));
    let reached: BTreeSet<(String, String)> = reached.collect();
    slices.retain(|slice| {
        let origin = slice_origin(slice);
        let origin = origin.map(|(service, cluster)| (service.to_owned(), cluster.to_owned()));
        is_reached(slice) || origin.is_none_or(|origin| !reached.contains(&origin))
    });
}

/// Returns the plan that deletes every object created for an ingress. The endpoints of `excluded`
/// clusters go first: the gateway cluster may refuse to delete the routes to them.
pub fn removal<R: Default>(
    existing: Existing<R>,
    excluded: &BTreeSet<String>,
) -> KubernetesPlan<R> {
    let of_excluded = |slice: &Arc<EndpointSlice>| {
        slice_cluster(slice).is_some_and(|cluster| excluded.contains(cluster))
    };
    let (blocked_slices, stale_slices) = existing.slices.into_iter().partition(of_excluded);
    KubernetesPlan {
        blocked_slices,
        stale_routes: existing.routes,
        stale_slices,
        stale_services: existing.services,
        stale_secrets: existing.secrets,
        ..KubernetesPlan::default()
    }
}

/// Returns the plan that deletes the endpoints of clusters in `cut`, and nothing else, of the `slices`
/// created for an ingress.
pub fn cutting<R: Default>(slices: Vec<Arc<EndpointSlice>>, cut: &Held) -> KubernetesPlan<R> {
    let is_cut = |slice: &Arc<EndpointSlice>| {
        let origin = slice_origin(slice);
        origin.is_some_and(|(service, cluster)| {
            cut.get(service).is_some_and(|all| all.contains(cluster))
        })
    };
    KubernetesPlan {
        blocked_slices: slices.into_iter().filter(is_cut).collect(),
        ..KubernetesPlan::default()
    }
}

/// The writes to objects of one kind, and those of them that are wanted no more.
pub(in crate::ingress) struct Compared<K> {
    pub(in crate::ingress) writes: Vec<Write<K>>,
    pub(in crate::ingress) stale: Vec<Arc<K>>,
}

/// Compares what is wanted for an ingress with what exists of it, or has a name that it needs.
pub(in crate::ingress) fn compare<K: Managed>(
    ingress: &Key,
    wanted: Vec<K>,
    existing: &[Arc<K>],
    clashes: &mut BTreeSet<Clash>,
) -> serde_json::Result<Compared<K>> {
    let ours = |meta: &ObjectMeta| ingress_of(meta).as_ref() == Some(ingress);
    // By name: an ingress may have ten thousand slices.
    let named = existing.iter().map(|k| (k.metadata().name.clone(), k));
    let mut rest: BTreeMap<Option<String>, &Arc<K>> = named.collect();
    let mut writes = Vec::new();
    for object in wanted {
        let name = object.metadata().name.clone();
        let Some(found) = rest.remove(&name) else {
            writes.push(Write::Create(object));
            continue;
        };
        // Another ingress of ours may have taken the name; both would overwrite it in turn.
        if ingress_of(found.metadata()).is_some_and(|owner| owner != *ingress) {
            clashes.insert(Clash {
                kind: K::KIND,
                key: Key::new(
                    found.metadata().namespace.clone().unwrap_or_default(),
                    name.unwrap_or_default(),
                ),
            });
            continue;
        }
        let edits = object.edits(found)?;
        if !edits.is_empty() {
            let existing = Arc::clone(found);
            writes.push(Write::Update(Update { existing, edits }));
        }
    }
    // A path that one route gains and another loses is never in none of them.
    writes.sort_by_key(|write| matches!(write, Write::Update(_)));
    let stale = rest.into_values().filter(|k| ours(k.metadata()));
    Ok(Compared {
        writes,
        stale: stale.cloned().collect(),
    })
}

/// Returns the Services that nothing of the `existing` endpoints serves once those that are `leaving` are gone.
fn bare_services<'a>(
    existing: &'a [Arc<EndpointSlice>],
    leaving: &'a [Arc<EndpointSlice>],
) -> BTreeSet<&'a str> {
    let services = |slices: &'a [Arc<EndpointSlice>]| {
        let origins = slices.iter().map(|slice| (slice, slice_origin(slice)));
        origins.filter_map(|(slice, origin)| Some((slice, origin?.0)))
    };
    let mut bare: BTreeSet<&str> = services(leaving).map(|(_, service)| service).collect();
    if bare.is_empty() {
        return bare;
    }
    let names: BTreeSet<_> = leaving.iter().map(|slice| &slice.metadata.name).collect();
    for (slice, service) in services(existing) {
        if has_taker(slice) && !names.contains(&slice.metadata.name) {
            bare.remove(service);
        }
    }
    bare
}

/// Returns the origin of the endpoints that are written.
fn write_origin(write: &Write<EndpointSlice>) -> Option<(&str, &str)> {
    match write {
        Write::Create(slice) => slice_origin(slice),
        Write::Update(update) => slice_origin(&update.existing),
    }
}

/// Returns `true` for endpoints of a cluster that must get no request.
fn is_blocked(desired: &Desired, slice: &EndpointSlice) -> bool {
    match admission(desired, slice) {
        Some(admission) => admission.is_excluded(),
        None => slice_cluster(slice).is_some_and(|cluster| desired.excluded.contains(cluster)),
    }
}

/// Returns the gateway's name of the Service, and the member cluster, that the endpoints in one of our
/// slices belong to.
pub fn slice_origin(slice: &EndpointSlice) -> Option<(&str, &str)> {
    let labels = slice.metadata.labels.as_ref()?;
    Some((labels.get(SERVICE_NAME)?, labels.get(CLUSTER_LABEL)?))
}

fn slice_cluster(slice: &EndpointSlice) -> Option<&str> {
    slice_origin(slice).map(|(_, cluster)| cluster)
}

/// Returns `true` for endpoints of a served cluster whose source slice cannot be read.
fn keeps_slice(desired: &Desired, slice: &EndpointSlice) -> bool {
    let annotations = slice.metadata.annotations.as_ref();
    let source = annotations.and_then(|a| a.get(SOURCE_ANNOTATION));
    let is_unread = source.is_some_and(|source| desired.is_unread(source));
    is_unread && admission(desired, slice).is_some_and(Admission::is_served)
}

/// Returns `true` for a Service whose template cannot be read.
fn keeps_service(desired: &Desired, service: &Service) -> bool {
    let name = service.metadata.name.as_deref();
    desired.backends.iter().any(|backend| {
        backend.ports == Cached::Unread
            && name == Some(&service_name(&desired.key, &backend.service))
    })
}

/// Returns `true` for the copy of a Secret that cannot be read.
fn keeps_secret(desired: &Desired, copy: &Secret) -> bool {
    let name = copy.metadata.name.as_deref();
    desired.secrets.iter().any(|secret| {
        secret.source == Cached::Unread && name == Some(&secret_name(&desired.key, &secret.name))
    })
}

fn admission(desired: &Desired, slice: &EndpointSlice) -> Option<Admission> {
    let (service, cluster) = slice_origin(slice)?;
    // The label has the gateway's name of the Service, which is not reversible.
    let named = |service: &str| service_name(&desired.key, service);
    let mut backends = desired.backends.iter();
    let backend = backends.find(|backend| named(&backend.service) == service)?;
    Some(backend.cluster(cluster)?.admission)
}
