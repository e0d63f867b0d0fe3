//! The snapshots of a placement's policy.

use std::collections::BTreeSet;

use fleet_api::names::{
    IS_LATEST, NUMBER_OF_CLUSTERS, PARENT_PLACEMENT, PLACEMENT_GENERATION, POLICY_INDEX,
};
use fleet_api::policy::PlacementType;
use fleet_api::snapshot::PolicySnapshotSpec;
use fleet_api::{Placement, PolicySnapshot};
use objects::Metadata;
use objects::write::{ObjectRef, Write};
use serde_json::{Map, json};

use super::sequence::{groups, kept, metadata, next_index, tidy};
use crate::hash::of_policy;

/// The name of the snapshots in metrics.
const TARGET: &str = "policy_snapshot";

/// Returns the latest snapshot of a policy: the last.
pub fn latest_policy<'a>(existing: &[&'a PolicySnapshot]) -> Option<&'a PolicySnapshot> {
    let groups = groups(existing.iter().map(|one| &one.metadata), POLICY_INDEX);
    let name = groups.values().next_back()?.master?.name();
    let mut existing = existing.iter().copied();
    existing.find(|snapshot| snapshot.metadata.name() == name)
}

/// Plans the snapshots of a placement's policy, in the order in which they are to be written. `named` are the
/// snapshots that bindings name. The number of clusters, and the placement's generation, are annotations on the latest:
/// where only they change, there is no new one.
///
/// # Errors
/// Fails if the policy cannot be written as JSON, which none that was read is.
pub fn plan_policies(
    placement: &Placement,
    existing: &[&PolicySnapshot],
    named: &BTreeSet<&str>,
) -> serde_json::Result<Vec<Write>> {
    let groups = groups(existing.iter().map(|one| &one.metadata), POLICY_INDEX);
    let policy = placement.spec.policy.as_ref();
    let policy_hash = of_policy(policy)?;
    let scope = placement.scope();
    let annotations = annotations(placement);
    let latest = latest_policy(existing);
    let mut writes = Vec::new();
    let last = groups.last_key_value();
    let index = match (latest, last) {
        (Some(latest), Some((index, _))) if latest.spec.policy_hash == policy_hash => {
            let changed = annotations.into_iter();
            let changed =
                changed.filter(|(key, value)| latest.metadata.annotation(key) != Some(value));
            let changed: Map<_, _> = changed
                .map(|(key, value)| (key.to_owned(), value.into()))
                .collect();
            if !changed.is_empty() {
                let body = json!({ "metadata": { "annotations": changed } });
                let object = ObjectRef::of(latest, &scope);
                writes.push(Write::merge(TARGET, object, body));
            }
            *index
        }
        _ => {
            let index = next_index(&groups);
            let labels = [
                (PARENT_PLACEMENT, placement.metadata.name().to_owned()),
                (POLICY_INDEX, index.to_string()),
                (IS_LATEST, "true".to_owned()),
            ];
            let name = format!("{}-{index}", placement.metadata.name());
            let new = PolicySnapshot {
                api_version: PolicySnapshot::API_VERSION.to_owned(),
                kind: PolicySnapshot::kind_of(scope).to_owned(),
                metadata: metadata((placement, &scope), name, labels, annotations),
                spec: PolicySnapshotSpec {
                    policy: policy.cloned(),
                    policy_hash,
                },
                status: None,
            };
            writes.push(Write::create(TARGET, &new, &scope));
            index
        }
    };
    let (kind, kept) = ((TARGET, &scope), kept(placement));
    writes.extend(tidy::<PolicySnapshot>(kind, kept, &groups, index, named));
    Ok(writes)
}

/// Returns `true` if a snapshot is of the policy that a placement has, with the number of clusters that it asks for: an edit
/// of something else changes no decision.
pub fn has_same_policy(snapshot: &PolicySnapshot, placement: &Placement) -> bool {
    let hash = of_policy(placement.spec.policy.as_ref());
    let annotations = annotations(placement).into_iter();
    let mut numbers = annotations.filter(|(key, _)| *key == NUMBER_OF_CLUSTERS);
    hash.is_ok_and(|hash| hash == snapshot.spec.policy_hash)
        && numbers.all(|(key, value)| snapshot.metadata.annotation(key) == Some(&*value))
}

fn annotations(placement: &Placement) -> Vec<(&'static str, String)> {
    let generation = placement.metadata.generation.unwrap_or_default();
    let mut annotations = vec![(PLACEMENT_GENERATION, generation.to_string())];
    if let Some(policy) = &placement.spec.policy
        && policy.placement_type == PlacementType::PickN
        && let Some(number) = policy.number_of_clusters
    {
        annotations.push((NUMBER_OF_CLUSTERS, number.to_string()));
    }
    annotations
}
