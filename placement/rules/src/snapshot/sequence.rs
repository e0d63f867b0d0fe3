//! The groups of snapshots of one object, in their order.

use std::collections::{BTreeMap, BTreeSet};

use fleet_api::Placement;
use fleet_api::names::{IS_LATEST, NUMBER_OF_SNAPSHOTS, PART_INDEX};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::{ObjectMeta, OwnerReference};
use kube::Resource;
use objects::Metadata;
use objects::write::{ObjectRef, Write};
use serde_json::json;

/// The snapshots of one index.
#[derive(Debug, Default)]
pub(super) struct Group<'a> {
    /// The one that the others belong to; absent if it is lost, or not created yet.
    pub(super) master: Option<&'a ObjectMeta>,
    /// The others by their places.
    pub(super) parts: BTreeMap<u64, &'a ObjectMeta>,
}

impl Group<'_> {
    /// Returns `true` if nothing is missing.
    pub(super) fn is_whole(&self) -> bool {
        self.number()
            .is_some_and(|number| (1..number).all(|part| self.parts.contains_key(&(part - 1))))
    }

    /// Returns the number of its snapshots, if the master says so.
    pub(super) fn number(&self) -> Option<u64> {
        let number = self.master?.annotation(NUMBER_OF_SNAPSHOTS)?;
        number.parse().ok().filter(|number| *number > 0)
    }

    fn snapshots(&self) -> impl Iterator<Item = &ObjectMeta> {
        let snapshots = self.master.iter().chain(self.parts.values());
        snapshots.copied()
    }
}

/// The groups by index.
pub(super) type Groups<'a> = BTreeMap<u64, Group<'a>>;

/// Returns the groups of snapshots; `label` has their index. Those without one are nobody's.
pub(super) fn groups<'a>(
    existing: impl IntoIterator<Item = &'a ObjectMeta>,
    label: &str,
) -> Groups<'a> {
    let mut groups = Groups::new();
    for metadata in existing {
        let index = metadata.label(label).and_then(|index| index.parse().ok());
        let Some(index) = index.filter(|_| !metadata.is_deleting()) else {
            continue;
        };
        let group: &mut Group<'a> = groups.entry(index).or_default();
        match metadata.annotation(PART_INDEX) {
            None => group.master = Some(metadata),
            Some(part) => {
                if let Ok(part) = part.parse() {
                    group.parts.insert(part, metadata);
                }
            }
        }
    }
    groups
}

/// Returns the index after all others.
pub(super) fn next_index(groups: &Groups<'_>) -> u64 {
    let last = groups.last_key_value();
    last.map_or(0, |(index, _)| index.saturating_add(1))
}

/// Returns the metadata of a snapshot that belongs to `owner`, which is of this kind, in the namespace of that.
pub(super) fn metadata<K: Resource>(
    (owner, kind): (&K, &K::DynamicType),
    name: String,
    labels: impl IntoIterator<Item = (&'static str, String)>,
    annotations: impl IntoIterator<Item = (&'static str, String)>,
) -> ObjectMeta {
    let labels = labels.into_iter();
    let labels = labels.map(|(key, value)| (key.to_owned(), value));
    let annotations = annotations.into_iter();
    let annotations: BTreeMap<_, _> = annotations
        .map(|(key, value)| (key.to_owned(), value))
        .collect();
    let of_owner = owner.meta();
    ObjectMeta {
        name: Some(name),
        namespace: of_owner.namespace.clone(),
        labels: Some(labels.collect()),
        annotations: (!annotations.is_empty()).then_some(annotations),
        owner_references: Some(vec![OwnerReference {
            api_version: K::api_version(kind).into_owned(),
            kind: K::kind(kind).into_owned(),
            name: of_owner.name().to_owned(),
            uid: of_owner.uid().to_owned(),
            controller: Some(true),
            block_owner_deletion: Some(true),
        }]),
        ..ObjectMeta::default()
    }
}

/// The number of groups that are kept where nobody says.
pub(super) const HISTORY: usize = 10;

/// Returns the number of groups that are kept of a placement.
pub(super) fn kept(placement: &Placement) -> usize {
    let limit = placement.spec.revision_history_limit;
    let limit = limit.and_then(|limit| usize::try_from(limit).ok());
    limit.unwrap_or(HISTORY)
}

/// Returns the writes after which the labels say that `latest` is the latest, and no more groups exist than `limit`.
/// One that a binding names is kept: its cluster could not be given anything else from it. The snapshots are of the kind,
/// and are written as the target, that are given.
pub(super) fn tidy<K: Resource>(
    (target, kind): (&'static str, &K::DynamicType),
    limit: usize,
    groups: &Groups<'_>,
    latest: u64,
    named: &BTreeSet<&str>,
) -> Vec<Write> {
    let mut writes = Vec::new();
    for (&index, group) in groups.iter().rev() {
        let is_latest = if index == latest { "true" } else { "false" };
        if let Some(master) = group.master
            && master.label(IS_LATEST) != Some(is_latest)
        {
            let body = json!({ "metadata": { "labels": { IS_LATEST: is_latest } } });
            let object = ObjectRef::of_metadata::<K>(master, kind);
            writes.push(Write::merge(target, object, body));
        }
    }
    let mut kept = 1;
    for (_, group) in groups.iter().rev().filter(|(index, _)| **index != latest) {
        let mut snapshots = group.snapshots();
        let is_named = snapshots.any(|one| named.contains(one.name()));
        // Without its master it was left by a crash, and never is the latest.
        if is_named || (group.master.is_some() && kept < limit) {
            kept += 1;
            continue;
        }
        let old = group.snapshots();
        let old = old.map(|one| ObjectRef::of_metadata::<K>(one, kind));
        writes.extend(old.map(|object| Write::delete(target, object)));
    }
    writes
}
