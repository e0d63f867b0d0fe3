//! The snapshots of the selection of a placement.

use std::collections::BTreeSet;

use fleet_api::names::{
    IS_LATEST, NUMBER_OF_ENVELOPES, NUMBER_OF_SNAPSHOTS, PARENT_PLACEMENT, PART_INDEX,
    RESOURCE_HASH, RESOURCE_INDEX,
};
use fleet_api::snapshot::ResourceSnapshotSpec;
use fleet_api::{Placement, ResourceSnapshot};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use objects::Metadata;
use objects::write::Write;
use serde_json::Value;

use super::sequence::{Group, Groups, groups, kept, metadata, next_index, tidy};
use super::split::split;
use crate::content::is_envelope;
use crate::select::Selection;

/// The name of the snapshots in metrics.
const TARGET: &str = "resource_snapshot";

/// Returns the master of the latest group: the last of those that are whole.
pub fn latest_resources<'a>(
    existing: impl IntoIterator<Item = &'a ObjectMeta>,
) -> Option<&'a ObjectMeta> {
    let groups = groups(existing, RESOURCE_INDEX);
    let mut latest_first = groups.values().rev();
    latest_first.find(|group| group.is_whole())?.master
}

/// Returns `true` if a later group than the latest has lost a part. It is about to be made again, and until then the
/// latest that is there says nothing: going by it would bring back the version before.
pub fn has_lost_part<'a>(existing: impl IntoIterator<Item = &'a ObjectMeta>) -> bool {
    let groups = groups(existing, RESOURCE_INDEX);
    let mut last_first = groups.values().rev();
    let last = last_first.find(|group| group.master.is_some());
    last.is_some_and(|last| !last.is_whole())
}

/// Returns `true` if the last snapshot that was made is of the selection with this hash.
pub fn is_of_last<'a>(existing: impl IntoIterator<Item = &'a ObjectMeta>, hash: &str) -> bool {
    let groups = groups(existing, RESOURCE_INDEX);
    let mut masters = groups.values().rev().filter_map(|group| group.master);
    let last = masters.next();
    last.is_some_and(|last| last.annotation(RESOURCE_HASH) == Some(hash))
}

/// Returns the group of snapshots whose master has this name, the master first, or `None` while one is missing.
pub fn whole_group<'a>(
    existing: impl IntoIterator<Item = &'a ObjectMeta>,
    master: &str,
) -> Option<Vec<&'a ObjectMeta>> {
    let groups = groups(existing, RESOURCE_INDEX).into_values();
    let mut whole = groups.filter(Group::is_whole);
    let group = whole.find(|group| group.master.is_some_and(|one| one.name() == master))?;
    Some(
        group
            .master
            .into_iter()
            .chain(group.parts.into_values())
            .collect(),
    )
}

/// Plans the snapshots of the selection of a placement, in the order in which they are to be written. `named` are the
/// snapshots that bindings name. Which selection one is of, its hash tells: not its content, or all would be made anew
/// where KubeFleet's, which have more, are gone on with.
///
/// # Errors
/// Fails if an object cannot be written as JSON, which none that was read is.
pub fn plan_resources(
    placement: &Placement,
    Selection { objects, hash, .. }: Selection,
    existing: &[&ObjectMeta],
    named: &BTreeSet<&str>,
) -> serde_json::Result<Vec<Write>> {
    let groups = groups(existing.iter().copied(), RESOURCE_INDEX);
    let parts = split(objects)?;
    let number = parts.len() as u64;

    let same = newest(&groups).filter(|(_, group)| {
        let master = group.master;
        master.and_then(|master| master.annotation(RESOURCE_HASH)) == Some(&*hash)
            && group.number() == Some(number)
    });
    // Whoever deletes the last one, when no other is kept, does not have them begin anew.
    let next = next_index(&groups).max(lost_index(placement, named).unwrap_or_default());
    let index = same.map_or(next, |(index, _)| *index);
    let (snapshots, scope) = (Snapshots { placement, index }, placement.scope());
    let envelopes = parts
        .iter()
        .flatten()
        .filter(|object| is_envelope(object))
        .count();
    let mut parts = parts.into_iter();
    let master = parts.next().unwrap_or_default();
    let mut writes = Vec::new();
    for (place, part) in (0..).zip(parts) {
        if same.is_none_or(|(_, group)| !group.parts.contains_key(&place)) {
            writes.push(Write::create(TARGET, &snapshots.part(place, part), &scope));
        }
    }
    if same.is_none() {
        let annotations = [
            (RESOURCE_HASH, hash),
            (NUMBER_OF_SNAPSHOTS, number.to_string()),
            (NUMBER_OF_ENVELOPES, envelopes.to_string()),
        ];
        let master = snapshots.master(annotations, master);
        writes.push(Write::create(TARGET, &master, &scope));
    }
    let (kind, kept) = ((TARGET, &scope), kept(placement));
    writes.extend(tidy::<ResourceSnapshot>(kind, kept, &groups, index, named));
    Ok(writes)
}

/// Plans the rest for snapshots that are there already, where nobody can tell the selection: the newest one
/// alone is the latest. `named` are the snapshots that bindings name.
pub fn tidy_resources(
    placement: &Placement,
    existing: &[&ObjectMeta],
    named: &BTreeSet<&str>,
) -> Vec<Write> {
    let groups = groups(existing.iter().copied(), RESOURCE_INDEX);
    let Some((index, _)) = newest(&groups) else {
        return Vec::new();
    };
    let scope = placement.scope();
    tidy::<ResourceSnapshot>((TARGET, &scope), kept(placement), &groups, *index, named)
}

fn newest<'a, 'b>(groups: &'b Groups<'a>) -> Option<(&'b u64, &'b Group<'a>)> {
    groups
        .iter()
        .rev()
        .find(|(_, group)| group.master.is_some())
}

/// Returns the greatest index of the snapshots that bindings name. One that is not there any more was deleted by somebody.
fn lost_index(placement: &Placement, named: &BTreeSet<&str>) -> Option<u64> {
    let prefix = format!("{}-", placement.metadata.name());
    let indices = named.iter().filter_map(|name| {
        let index = name.strip_prefix(&*prefix)?;
        index.strip_suffix("-snapshot")?.parse().ok()
    });
    indices.max()
}

/// The snapshots of one group.
struct Snapshots<'a> {
    placement: &'a Placement,
    index: u64,
}

impl Snapshots<'_> {
    fn master(
        &self,
        annotations: [(&'static str, String); 3],
        objects: Vec<Value>,
    ) -> ResourceSnapshot {
        let name = format!("{}-{}-snapshot", self.placement.metadata.name(), self.index);
        let mut snapshot = self.snapshot(name, annotations, objects);
        let labels = snapshot.metadata.labels.get_or_insert_default();
        labels.insert(IS_LATEST.to_owned(), "true".to_owned());
        snapshot
    }

    fn part(&self, place: u64, objects: Vec<Value>) -> ResourceSnapshot {
        let name = format!("{}-{}-{place}", self.placement.metadata.name(), self.index);
        self.snapshot(name, [(PART_INDEX, place.to_string())], objects)
    }

    fn snapshot(
        &self,
        name: String,
        annotations: impl IntoIterator<Item = (&'static str, String)>,
        selected_resources: Vec<Value>,
    ) -> ResourceSnapshot {
        let labels = [
            (PARENT_PLACEMENT, self.placement.metadata.name().to_owned()),
            (RESOURCE_INDEX, self.index.to_string()),
        ];
        let scope = self.placement.scope();
        ResourceSnapshot {
            api_version: ResourceSnapshot::API_VERSION.to_owned(),
            kind: ResourceSnapshot::kind_of(scope).to_owned(),
            metadata: metadata((self.placement, &scope), name, labels, annotations),
            spec: ResourceSnapshotSpec { selected_resources },
        }
    }
}
