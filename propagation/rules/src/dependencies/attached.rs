//! The part of a binding that belongs to the bindings which require it.

use std::collections::{BTreeMap, BTreeSet};

use karmada_api::policy::{CONFLICT_ABORT, CONFLICT_OVERWRITE};
use karmada_api::{BindingSnapshot, ResourceBindingSpec, Suspension, TargetCluster, names};
use objects::patch::JsonPatch;
use objects::write::Write;
use objects::{GroupVersionKind, Key, Metadata, api_version};
use serde_json::{Map, Value, json};

use crate::binding::{Place, patch, write};
use crate::binding_ref::BindingRef;
use crate::claim::Claim;
use crate::template::priority;
use crate::works::kept_clusters;

/// The clusters in which a binding needs its dependencies.
#[derive(Clone, Debug)]
pub struct Need<'a> {
    /// The binding.
    pub referrer: BindingRef<'a>,
    /// The clusters.
    pub clusters: Vec<TargetCluster>,
}

/// The bindings that require another one, as far as they are known.
pub type Referrers<'a> = BTreeMap<Key, &'a ResourceBindingSpec>;

/// Returns the clusters in which a binding needs a dependency. `attached` is the binding of
/// that, and `policy_suspension` the suspension of the referrer's policy.
pub fn needed_clusters(
    referrer: BindingRef<'_>,
    attached: Option<BindingRef<'_>>,
    policy_suspension: Option<&Suspension>,
) -> Vec<TargetCluster> {
    let mut needed: Vec<_> = referrer.spec.clusters.iter().flatten().cloned().collect();
    // A copy that is leaving with grace still runs.
    for name in kept_clusters(referrer) {
        let target = TargetCluster {
            name: name.to_owned(),
            ..TargetCluster::default()
        };
        add(&mut needed, target);
    }
    // While dispatching is suspended, copies of the template may be held where it is not scheduled any more.
    if is_paused(referrer, policy_suspension) {
        let key = referrer.key();
        let list = attached.and_then(|attached| attached.spec.required_by.as_deref());
        let list = list.unwrap_or_default();
        for target in places(list, &key).flat_map(|place| list[place].clusters.iter().flatten()) {
            add(&mut needed, target.clone());
        }
    }
    needed
}

/// Adds a cluster that is not among them.
fn add(clusters: &mut Vec<TargetCluster>, target: TargetCluster) {
    if clusters.iter().all(|one| one.name != target.name) {
        clusters.push(target);
    }
}

/// Returns `true` if dispatching is suspended to any cluster.
pub fn is_paused(binding: BindingRef<'_>, policy_suspension: Option<&Suspension>) -> bool {
    let own = binding.spec.suspension.as_ref();
    let own = own.map(|suspension| &suspension.dispatching);
    let mut suspensions = own.into_iter().chain(policy_suspension);
    suspensions.any(|suspension| {
        suspension.dispatching == Some(true) || suspension.clusters().next().is_some()
    })
}

/// Returns `true` if a binding was attached on account of `referrer`. Others may require it by other means.
pub fn is_attached(binding: BindingRef<'_>, referrer: &Key) -> bool {
    let label = names::depended_by(referrer);
    binding.metadata.label(&label).is_some()
}

/// Plans the write of the binding of `dependency`, which a binding needs. `referrers` are those that require
/// it already, `is_served` tells which versions the API still has, and `new_id` is the ID of one that is made.
pub fn attach(
    dependency: &Value,
    need: &Need<'_>,
    place: Place<'_>,
    referrers: &Referrers<'_>,
    is_served: impl FnOnce(&GroupVersionKind) -> bool,
    new_id: impl FnOnce() -> String,
) -> Option<Write> {
    let key = need.referrer.key();
    // Another loop gives it its ID, and wakes this one.
    let id = need.referrer.id()?;
    let mut referrers = referrers.clone();
    referrers.insert(key.clone(), need.referrer.spec);
    let label = names::depended_by(&key);
    let existing = match place {
        Place::Existing(existing) => existing,
        Place::New(_) if dependency.is_deleting() => return None,
        Place::New(own) => {
            let labels = Map::from_iter([(label, json!(id))]);
            let spec = Map::from_iter([("requiredBy".to_owned(), json!([snapshot(&key, need)]))]);
            let agreed = agreed(&referrers).into_iter().flatten();
            let spec = spec.into_iter().chain(agreed).collect();
            let body = patch::body(&own, dependency, &new_id(), labels, Map::new(), spec);
            return Some(write::created(own, body));
        }
    };
    let metadata = existing.metadata;
    if patch::is_former(dependency, metadata) {
        return None;
    }
    let mut patch = JsonPatch::default();
    let label = (label.as_str(), Some(id));
    patch.entries("labels", metadata.labels.as_ref(), [label]);
    patch::ownership(&mut patch, dependency, metadata);
    if is_outdated(existing, dependency, is_served) {
        patch::owner_version(&mut patch, dependency, metadata);
        patch.add(["spec", "resource"], patch::reference(dependency));
    }
    require(&mut patch, need, existing.spec.required_by.as_deref());
    agree(&mut patch, existing.spec, &referrers);
    write::patched(existing, patch)
}

/// Plans the end of the need that `referrer` has of a binding. `referrers` are those that require it.
pub fn detach(
    referrer: &Key,
    existing: BindingRef<'_>,
    referrers: &Referrers<'_>,
) -> Option<Write> {
    let metadata = existing.metadata;
    if metadata.deletion_timestamp.is_some() {
        return None;
    }
    let mut others = referrers.clone();
    others.remove(referrer);
    let mut patch = JsonPatch::default();
    let label = names::depended_by(referrer);
    patch.entries("labels", metadata.labels.as_ref(), [(label.as_str(), None)]);
    let list = existing.spec.required_by.as_deref().unwrap_or_default();
    let places: Vec<_> = places(list, referrer).collect();
    if !places.is_empty() && places.len() == list.len() {
        patch.remove(LIST);
    } else {
        unrequire(&mut patch, &places, list);
    }
    agree(&mut patch, existing.spec, &others);
    write::patched(existing, patch)
}

/// Returns the contradiction between the bindings that require another one.
pub fn conflict(existing: BindingRef<'_>, referrers: &Referrers<'_>) -> Option<String> {
    if existing.spec.placement.is_some() {
        return None;
    }
    let wishes: BTreeSet<_> = referrers.values().map(|spec| overwrites(spec)).collect();
    let preserved: BTreeSet<_> = referrers.values().map(|spec| preserves(spec)).collect();
    let conflicts = [
        (
            wishes.len() > 1,
            "ConflictResolution conflicted (Overwrite vs Abort)",
        ),
        (
            preserved.len() > 1,
            "PreserveResourcesOnDeletion conflicted (true vs false)",
        ),
    ];
    let conflicts = conflicts.into_iter().filter(|(is_one, _)| *is_one);
    let conflicts: Vec<_> = conflicts.map(|(_, conflict)| conflict).collect();
    (!conflicts.is_empty()).then(|| {
        format!(
            "Dependency policy conflict detected: {}",
            conflicts.join("; ")
        )
    })
}

fn overwrites(spec: &ResourceBindingSpec) -> bool {
    spec.conflict_resolution.as_deref() == Some(CONFLICT_OVERWRITE)
}

fn preserves(spec: &ResourceBindingSpec) -> bool {
    spec.preserve_resources_on_deletion == Some(true)
}

/// Returns the members of a spec about which those that require the binding agree; `None` without any. The
/// wish to overwrite wins, and so does the wish to preserve.
fn agreed(referrers: &Referrers<'_>) -> Option<[(String, Value); 2]> {
    if referrers.is_empty() {
        return None;
    }
    let conflict = if referrers.values().any(|spec| overwrites(spec)) {
        CONFLICT_OVERWRITE
    } else {
        CONFLICT_ABORT
    };
    let preserved = referrers.values().any(|spec| preserves(spec));
    Some([
        ("conflictResolution".to_owned(), json!(conflict)),
        ("preserveResourcesOnDeletion".to_owned(), json!(preserved)),
    ])
}

/// Returns `true` if a binding names an older version than that in which the dependency is read, or one that is not served any
/// more. While a policy has it, the policy decides; of those that require it, who asks for the newest: else they would take
/// turns.
fn is_outdated(
    existing: BindingRef<'_>,
    dependency: &Value,
    is_served: impl FnOnce(&GroupVersionKind) -> bool,
) -> bool {
    let resource = &existing.spec.resource;
    let known = GroupVersionKind::new(&resource.api_version, &resource.kind);
    let read = GroupVersionKind::new(api_version(dependency), &resource.kind);
    let is_newer = priority(&read.version) > priority(&known.version);
    Claim::of(existing.metadata).is_none() && read != known && (is_newer || !is_served(&known))
}

fn snapshot(referrer: &Key, need: &Need<'_>) -> Value {
    json!({ "namespace": referrer.namespace, "name": referrer.name, "clusters": need.clusters })
}

/// Returns the places of a referrer in a list.
fn places<'a>(list: &'a [BindingSnapshot], referrer: &'a Key) -> impl Iterator<Item = usize> + 'a {
    let places = list.iter().enumerate();
    let places = places.filter(|(_, snapshot)| {
        snapshot.name.as_ref() == Some(&referrer.name)
            && snapshot.namespace.as_ref() == Some(&referrer.namespace)
    });
    places.map(|(place, _)| place)
}

/// Returns `true` if both are the same clusters with the same replicas.
fn is_same(a: &[TargetCluster], b: &[TargetCluster]) -> bool {
    sorted(a) == sorted(b)
}

fn sorted(clusters: &[TargetCluster]) -> BTreeMap<&str, Option<i32>> {
    let clusters = clusters.iter();
    clusters
        .map(|cluster| (cluster.name.as_str(), cluster.replicas))
        .collect()
}

const LIST: [&str; 2] = ["spec", "requiredBy"];

fn require(patch: &mut JsonPatch, need: &Need<'_>, current: Option<&[BindingSnapshot]>) {
    let key = need.referrer.key();
    let list = current.unwrap_or_default();
    let places: Vec<_> = places(list, &key).collect();
    match places.split_first() {
        Some((&first, others)) => {
            let current = list[first].clusters.as_deref().unwrap_or_default();
            if !is_same(current, &need.clusters) {
                test_place(patch, first, list);
                let place = first.to_string();
                let clusters = LIST.into_iter().chain([place.as_str(), "clusters"]);
                patch.add(clusters, json!(need.clusters));
            }
            unrequire(patch, others, list);
        }
        None if current.is_some() => {
            patch.add(LIST.into_iter().chain(["-"]), snapshot(&key, need));
        }
        None => patch.add(LIST, json!([snapshot(&key, need)])),
    }
}

fn unrequire(patch: &mut JsonPatch, places: &[usize], list: &[BindingSnapshot]) {
    // From the last one on, so that the others keep their places.
    for &place in places.iter().rev() {
        test_place(patch, place, list);
        patch.remove(LIST.into_iter().chain([place.to_string().as_str()]));
    }
}

/// Lets the patch fail if the list has elements that could not be read.
fn test_place(patch: &mut JsonPatch, place: usize, list: &[BindingSnapshot]) {
    // For an element without a name the test would fail for ever.
    let Some(name) = list[place].name.as_deref() else {
        return;
    };
    let place = place.to_string();
    patch.test_name(LIST.into_iter().chain([place.as_str(), "name"]), name);
}

/// Sets the fields about which those that require the binding agree. In one with a policy these are the policy's.
fn agree(patch: &mut JsonPatch, spec: &ResourceBindingSpec, referrers: &Referrers<'_>) {
    if spec.placement.is_some() {
        return;
    }
    let current = [
        spec.conflict_resolution.as_ref().map(|text| json!(text)),
        spec.preserve_resources_on_deletion.map(|on| json!(on)),
    ];
    let agreed = agreed(referrers).into_iter().flatten();
    for ((name, wanted), current) in agreed.zip(current) {
        if current.as_ref() != Some(&wanted) {
            patch.add(["spec", name.as_str()], wanted);
        }
    }
}
