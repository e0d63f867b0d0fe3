//! The snapshots of an override.

use std::collections::BTreeSet;

use fleet_api::names::{IS_LATEST, OVERRIDE_INDEX, PARENT_OVERRIDE};
use fleet_api::overrides::{Override, OverrideSnapshot, OverrideSnapshotSpec};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use kube::Resource;
use objects::Metadata;
use objects::write::{ObjectRef, Write};
use serde_json::json;

use super::sequence::{HISTORY, groups, metadata, next_index, tidy};
use crate::hash::of_override;

/// The name of the snapshots in metrics.
const TARGET: &str = "override_snapshot";

/// Returns the latest snapshot of an override: the last.
pub fn latest_override<'a, S: OverrideSnapshot>(existing: &[&'a S]) -> Option<&'a S> {
    let groups = groups(existing.iter().map(|one| one.meta()), OVERRIDE_INDEX);
    let name = groups.values().next_back()?.master?.name();
    let mut existing = existing.iter().copied();
    existing.find(|snapshot| snapshot.meta().name() == name)
}

/// Returns `true` if the latest snapshot is of the override as it is now.
pub fn is_snapshotted<K: Override>(owner: &K, existing: &[&K::Snapshot]) -> bool {
    let latest = latest_override(existing);
    latest.is_some_and(|latest| {
        of_override(owner.spec()).is_ok_and(|hash| hash == latest.spec().override_hash)
    })
}

/// Plans the snapshots of an override, in the order in which they are to be written. `named` are those of
/// it that bindings list.
///
/// # Errors
/// Fails if the override cannot be written as JSON, which none that was read is.
pub fn plan_overrides<K: Override>(
    owner: &K,
    existing: &[&K::Snapshot],
    named: &BTreeSet<&str>,
) -> serde_json::Result<Vec<Write>> {
    let groups = groups(existing.iter().map(|one| one.meta()), OVERRIDE_INDEX);
    let override_hash = of_override(owner.spec())?;
    let mut writes = Vec::new();
    let index = match groups.last_key_value() {
        Some((index, _)) if is_snapshotted(owner, existing) => *index,
        _ => {
            let index = next_index(&groups);
            let labels = [
                (PARENT_OVERRIDE, owner.meta().name().to_owned()),
                (OVERRIDE_INDEX, index.to_string()),
                (IS_LATEST, "true".to_owned()),
            ];
            let name = format!("{}-{index}", owner.meta().name());
            let spec = OverrideSnapshotSpec {
                override_spec: owner.spec().clone(),
                override_hash,
            };
            let metadata = metadata((owner, &()), name, labels, []);
            let snapshot: K::Snapshot = OverrideSnapshot::new(metadata, spec);
            writes.push(Write::create(TARGET, &snapshot, &()));
            index
        }
    };
    let kind = (TARGET, &());
    writes.extend(tidy::<K::Snapshot>(kind, HISTORY, &groups, index, named));
    Ok(writes)
}

/// Plans the end of the snapshots of an override that goes, or is gone. One that a binding lists stays as long as it does,
/// so that the objects of its cluster can be made again; it belongs to nobody then, and is not the latest.
pub fn plan_end<S: OverrideSnapshot>(existing: &[&S], named: &BTreeSet<&str>) -> Vec<Write> {
    let staying = existing.iter().map(|one| one.meta());
    let writes = staying
        .filter(|snapshot| !snapshot.is_deleting())
        .filter_map(|snapshot| {
            let object = ObjectRef::of_metadata::<S>(snapshot, &());
            if !named.contains(snapshot.name()) {
                return Some(Write::delete(TARGET, object));
            }
            let body = json!({ "metadata": { "ownerReferences": null, "labels": { IS_LATEST: "false" } } });
            is_owned(snapshot).then(|| Write::merge(TARGET, object, body))
        });
    writes.collect()
}

/// Returns `true` if an override may go: the snapshots that are left do not belong to it.
pub fn may_go<S: OverrideSnapshot>(existing: &[&S]) -> bool {
    !existing.iter().any(|snapshot| is_owned(snapshot.meta()))
}

fn is_owned(snapshot: &ObjectMeta) -> bool {
    let owners = snapshot.owner_references.as_deref();
    owners.is_some_and(|owners| !owners.is_empty())
}
