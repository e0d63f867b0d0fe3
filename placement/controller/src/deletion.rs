//! Ends a placement: its bindings first, then its snapshots, then itself.

use std::collections::BTreeMap;

use fleet_api::{Binding, Placement, PolicySnapshot, ResourceSnapshot};
use jiff::Timestamp;
use karmada_runtime::error::BoxError;
use objects::patch::guarded;
use objects::{Key, Metadata};
use placement_rules::deletion::{DeletionFacts, DeletionPlan, FINALIZERS, plan};
use serde_json::json;

use crate::index::Placed;
use crate::requests::{HubApi, perform, unless_gone};
use crate::watch::SharedIndex;

/// Returns what is to be done about a placement that is being deleted.
pub(crate) fn planned(index: &SharedIndex, placed: &Placed, now: Timestamp) -> DeletionPlan {
    let (members, held) = index.read(|index| (index.fleet.all(now), index.held(placed)));
    let clusters: BTreeMap<_, _> = members
        .iter()
        .map(|member| (member.name(), member.reach()))
        .collect();
    let policies = placed.policies.iter().map(|policy| &policy.metadata);
    let snapshots: Vec<_> = placed.snapshots().into_iter().chain(policies).collect();
    plan(&DeletionFacts {
        placement: &placed.placement,
        bindings: &placed.bindings(),
        snapshots: &snapshots,
        clusters: &clusters,
        held: &held,
        now,
    })
}

/// Takes the next step towards the end of a placement. Whatever it leads to wakes the placement again.
pub(crate) async fn end(
    index: &SharedIndex,
    hub: &HubApi,
    placed: &Placed,
    now: Timestamp,
) -> Result<(), BoxError> {
    let key = placed.placement.metadata.key();
    // A binding that was just made would outlive it.
    if let Some(until) = index.read(|index| index.awaited.bindings.until(&key)) {
        index.queues.snapshots.add_at(key.clone(), until);
        return Ok(());
    }
    let plan = planned(index, placed, now);
    let bindings = hub.of_scope::<Binding>(&key.namespace);
    perform(&plan.bindings, async |name| {
        hub.delete("binding", &bindings, name, None).await?;
        Ok(())
    })
    .await?;
    let policies = hub.of_scope::<PolicySnapshot>(&key.namespace);
    let resources = hub.of_scope::<ResourceSnapshot>(&key.namespace);
    for name in &plan.snapshots {
        let is_policy = placed
            .policies
            .iter()
            .any(|policy| policy.metadata.name() == name);
        if is_policy {
            hub.delete("policy_snapshot", &policies, name, None).await?;
        } else {
            hub.delete("resource_snapshot", &resources, name, None)
                .await?;
        }
    }
    if plan.is_done {
        release(hub, &placed.placement).await?;
    }
    Ok(())
}

/// Takes our finalizers from a placement of which nothing is left.
async fn release(hub: &HubApi, placement: &Placement) -> Result<(), BoxError> {
    let metadata = &placement.metadata;
    let mut finalizers = metadata.finalizers.clone().unwrap_or_default();
    let before = finalizers.len();
    finalizers.retain(|one| !FINALIZERS.contains(&&**one));
    if finalizers.len() == before {
        return Ok(());
    }
    let body = json!({ "metadata": { "finalizers": finalizers } });
    let patch = guarded(Some(metadata.resource_version()), body);
    let placements = hub.of_scope::<Placement>(metadata.namespace());
    let target = "placement_finalizers";
    unless_gone(
        hub.patch(target, &placements, metadata.name(), &patch)
            .await,
    )?;
    Ok(())
}

/// Deletes the bindings of a placement that does not exist any more: they were made while it went.
pub(crate) async fn sweep(index: &SharedIndex, hub: &HubApi, key: &Key) -> Result<(), BoxError> {
    let left = index.read(|index| index.bindings.of(key));
    let left = left.iter().filter(|one| !one.metadata.is_deleting());
    let names: Vec<_> = left.map(|one| one.metadata.name().to_owned()).collect();
    if names.is_empty() {
        return Ok(());
    }
    // Absence from the cache is no deletion.
    let placements = hub.of_scope::<Placement>(&key.namespace);
    if placements.get_metadata_opt(&key.name).await?.is_some() {
        return Ok(());
    }
    let bindings = hub.of_scope::<Binding>(&key.namespace);
    perform(&names, async |name| {
        hub.delete("binding", &bindings, name, None).await?;
        Ok(())
    })
    .await
}
