use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::sync::Arc;

use k8s_openapi::api::core::v1::{Secret, Service};
use k8s_openapi::api::discovery::v1::EndpointSlice;
use karmada_api::names::SERVICE_NAME;
use objects::Key;
use objects::wanted::Wanted;
use objects::write::{Action, Guard, ObjectRef, Write};

use super::drift::Managed;
use super::managed_by::ingress_of;
use super::names::{secret_name, service_name};
use super::objects::{CLUSTER_LABEL, Objects, SOURCE_ANNOTATION};
use crate::ingress::{Admission, Cached, Desired, ServedClusters, has_taker};

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
pub struct KubernetesPlan {
    /// Endpoints to create or update first, of Services that would have none without the blocked ones.
    pub successors: Vec<Write>,
    /// The deletions of endpoints of clusters that are blocked, leaving or unknown, sent next, whatever becomes of other
    /// writes.
    pub blocked_slices: Vec<Write>,
    /// Objects to create or update: backends before the routes to them.
    pub writes: Vec<Write>,
    /// The deletions of stale routes, sent once all writes above are in place.
    pub stale_routes: Vec<Write>,
    /// The deletions of stale endpoints, Services and Secrets, sent once the stale routes are gone.
    pub stale_backends: Vec<Write>,
    /// Objects with the name of a desired one that were not created for this ingress.
    pub clashes: BTreeSet<Clash>,
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

impl KubernetesPlan {
    /// Plans the writes from `existing` to `wanted`, the objects for `desired`.
    ///
    /// # Errors
    /// Returns an error if a field of an object does not serialize.
    pub fn new<R: Managed>(
        desired: &Desired,
        wanted: Objects<R>,
        existing: &Existing<R>,
    ) -> serde_json::Result<Self> {
        let (key, mut clashes) = (&desired.key, BTreeSet::new());
        let slices = of_families(wanted.slices, &existing.services);
        // Blocking comes first: traffic must leave a broken cluster even if a later write fails.
        let (blocked, mut stale_slices): (Vec<_>, Vec<_>) =
            stale(key, &slices, &existing.slices).partition(|slice| is_blocked(desired, slice));
        let bare = bare_services(&existing.slices, &blocked);
        stale_slices.retain(|slice| !keeps_slice(desired, slice));
        let services = stale(key, &wanted.services, &existing.services)
            .filter(|service| !keeps_service(desired, service));
        let secrets = stale(key, &wanted.secrets, &existing.secrets)
            .filter(|secret| !keeps_secret(desired, secret));
        let stale_backends = [
            deletions(stale_slices),
            deletions(services),
            deletions(secrets),
        ];
        let routes = wanted.routes.as_deref();
        let stale_routes = routes.map(|routes| deletions(stale(key, routes, &existing.routes)));
        let (successors, others): (Vec<_>, Vec<_>) = slices.into_iter().partition(|slice| {
            slice_origin(slice).is_some_and(|(service, _)| bare.contains(service))
        });
        let successors = compare(key, successors, &existing.slices, &mut clashes)?;
        let mut writes = compare(key, wanted.services, &existing.services, &mut clashes)?;
        writes.extend(compare(key, others, &existing.slices, &mut clashes)?);
        writes.extend(compare(
            key,
            wanted.secrets,
            &existing.secrets,
            &mut clashes,
        )?);
        let routes = wanted.routes.into_iter().flatten();
        writes.extend(compare(key, routes, &existing.routes, &mut clashes)?);
        Ok(Self {
            successors,
            blocked_slices: blocked.into_iter().map(cut).collect(),
            writes,
            stale_routes: stale_routes.unwrap_or_default(),
            stale_backends: stale_backends.concat(),
            clashes,
        })
    }
}

/// Leaves out the slices of a family that the gateway's Service lacks, of each cluster whose others take requests. In a gateway of
/// one family nothing reaches an address of the other.
fn of_families(slices: Vec<EndpointSlice>, services: &[Arc<Service>]) -> Vec<EndpointSlice> {
    let families = services.iter().filter_map(|service| {
        let families = service.spec.as_ref()?.ip_families.as_deref()?;
        Some((service.metadata.name.as_deref()?, families))
    });
    let families: BTreeMap<&str, &[String]> = families.collect();
    let (mut reached, mut others): (Vec<_>, Vec<_>) = slices.into_iter().partition(|slice| {
        let families = slice_origin(slice).and_then(|(service, _)| families.get(service));
        slice.address_type == NAMES
            || families.is_none_or(|families| families.contains(&slice.address_type))
    });
    let taken = taken_origins(&reached);
    others.retain(|slice| slice_origin(slice).is_none_or(|origin| !taken.contains(&origin)));
    reached.append(&mut others);
    reached
}

/// Returns the plan that deletes every object created for an ingress. The endpoints of `excluded`
/// clusters go first: the gateway cluster may refuse to delete the routes to them.
pub fn removal<R: Managed>(existing: &Existing<R>, excluded: &BTreeSet<String>) -> KubernetesPlan {
    let (blocked, stale): (Vec<_>, Vec<_>) = existing
        .slices
        .iter()
        .partition(|slice| slice_cluster(slice).is_some_and(|cluster| excluded.contains(cluster)));
    KubernetesPlan {
        blocked_slices: blocked.into_iter().map(cut).collect(),
        stale_routes: deletions(&existing.routes),
        stale_backends: [
            deletions(stale),
            deletions(&existing.services),
            deletions(&existing.secrets),
        ]
        .concat(),
        ..KubernetesPlan::default()
    }
}

/// Returns the plan that deletes the endpoints of the clusters in `held`, and nothing else, of the `slices`
/// created for an ingress.
pub fn cutting(slices: &[Arc<EndpointSlice>], held: &ServedClusters) -> KubernetesPlan {
    let blocked = slices.iter().filter(|slice| {
        slice_origin(slice).is_some_and(|(service, cluster)| {
            held.get(service).is_some_and(|all| all.contains(cluster))
        })
    });
    KubernetesPlan {
        blocked_slices: blocked.map(cut).collect(),
        ..KubernetesPlan::default()
    }
}

/// Returns the writes to the objects `wanted` for an ingress, given those that exist of it or have a name that it needs.
pub(in crate::ingress) fn compare<K: Managed>(
    ingress: &Key,
    wanted: impl IntoIterator<Item = K>,
    existing: &[Arc<K>],
    clashes: &mut BTreeSet<Clash>,
) -> serde_json::Result<Vec<Write>> {
    // By name: an ingress may have ten thousand slices.
    let named = existing.iter().map(|k| (k.meta().name.as_deref(), k));
    let named: BTreeMap<Option<&str>, &Arc<K>> = named.collect();
    let mut writes = Vec::new();
    for object in wanted {
        let Some(&found) = named.get(&object.meta().name.as_deref()) else {
            writes.push(Write::create(K::TARGET, &object, &()));
            continue;
        };
        // Another ingress of ours may have taken the name; both would overwrite it in turn.
        if ingress_of(found.meta()).is_some_and(|owner| owner != *ingress) {
            clashes.insert(Clash {
                kind: K::KIND,
                key: Key::of(&**found),
            });
            continue;
        }
        writes.extend(update(&object, &**found)?);
    }
    // A path that one route gains and another loses is never in none of them.
    writes.sort_by_key(|write| !matches!(write.action, Action::Create(_)));
    Ok(writes)
}

/// Returns the write that sets the fields we own, provided that the object is still the version that was seen; `None` if they
/// are as in `wanted`.
pub(in crate::ingress) fn update<K: Managed>(
    wanted: &K,
    existing: &K,
) -> serde_json::Result<Option<Write>> {
    let edits = wanted.edits(existing)?;
    if edits.is_empty() {
        return Ok(None);
    }
    let wanted = Wanted::patched(&edits, &[]);
    let write = Write::json(K::TARGET, ObjectRef::of(existing, &()), edits);
    Ok(Some(write.guarded(Guard::Version).bringing(wanted)))
}

/// Iterates over the objects of an ingress that are wanted no more.
pub(in crate::ingress) fn stale<'a, K: Managed>(
    ingress: &Key,
    wanted: &[K],
    existing: &'a [Arc<K>],
) -> impl Iterator<Item = &'a Arc<K>> {
    let wanted: BTreeSet<_> = wanted.iter().map(|k| k.meta().name.as_deref()).collect();
    existing.iter().filter(move |k| {
        ingress_of(k.meta()).as_ref() == Some(ingress)
            && !wanted.contains(&k.meta().name.as_deref())
    })
}

/// Returns the deletions of objects that are still the versions that were seen.
fn deletions<'a, K: Managed + 'a>(objects: impl IntoIterator<Item = &'a Arc<K>>) -> Vec<Write> {
    let deletions = objects.into_iter().map(cut);
    deletions.map(Write::owning_all).collect()
}

/// Returns the same of one object, without a pause where somebody makes it again: it is traffic into a broken cluster.
pub(in crate::ingress) fn cut<K: Managed>(object: &Arc<K>) -> Write {
    let object = ObjectRef::of(&**object, &());
    Write::delete(K::TARGET, object).guarded(Guard::Version)
}

/// Returns the Services that nothing of the `existing` endpoints serves once those that are `leaving` are gone.
fn bare_services<'a>(
    existing: &'a [Arc<EndpointSlice>],
    leaving: &[&'a Arc<EndpointSlice>],
) -> BTreeSet<&'a str> {
    let origins = leaving.iter().filter_map(|slice| slice_origin(slice));
    let mut bare: BTreeSet<&str> = origins.map(|(service, _)| service).collect();
    if bare.is_empty() {
        return bare;
    }
    let names: BTreeSet<_> = leaving.iter().map(|slice| &slice.metadata.name).collect();
    let staying = existing.iter().map(|slice| &**slice);
    let staying = staying.filter(|slice| !names.contains(&slice.metadata.name));
    for (service, _) in taken_origins(staying) {
        bare.remove(service);
    }
    bare
}

/// Returns the origins of the `slices` with an endpoint that takes requests.
fn taken_origins<'a>(
    slices: impl IntoIterator<Item = &'a EndpointSlice>,
) -> BTreeSet<(&'a str, &'a str)> {
    let taken = slices.into_iter().filter(|slice| has_taker(slice));
    taken.filter_map(slice_origin).collect()
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

/// Returns `true` for endpoints of a served cluster with an unreadable source.
fn keeps_slice(desired: &Desired, slice: &EndpointSlice) -> bool {
    let annotations = slice.metadata.annotations.as_ref();
    let source = annotations.and_then(|a| a.get(SOURCE_ANNOTATION));
    let is_unread = source.is_some_and(|source| desired.is_unread(source));
    is_unread && admission(desired, slice).is_some_and(Admission::is_served)
}

/// Returns `true` for a Service with an unreadable template.
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
    let mut backends = desired.backends.iter();
    // The label has the gateway's name of the Service, which is not reversible.
    let backend =
        backends.find(|backend| service_name(&desired.key, &backend.service) == service)?;
    Some(backend.cluster(cluster)?.admission)
}
