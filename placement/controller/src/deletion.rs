//! Ends a placement: its bindings first, then its snapshots, then itself.

use std::collections::BTreeMap;

use fleet_api::Placement;
use jiff::Timestamp;
use karmada_runtime::error::BoxError;
use karmada_runtime::expectations::Subject;
use objects::condition::Condition;
use objects::write::{ObjectRef, Write};
use objects::{Key, Metadata};
use placement_rules::deletion::{self, DeletionFacts, plan};

use crate::index::Placed;
use crate::requests::HubApi;
use crate::shared::SharedIndex;
use crate::topics::SNAPSHOTS;

/// Returns the words of a placement that is being deleted about its end, unless it says so already.
pub(crate) fn removing(index: &SharedIndex, placed: &Placed, now: Timestamp) -> Option<Condition> {
    let (members, held) = index.read(|index| (index.fleet.all(now), index.held(placed)));
    let clusters: BTreeMap<_, _> = members
        .iter()
        .map(|member| (member.name(), member.reach()))
        .collect();
    deletion::removing(&DeletionFacts {
        placement: &placed.placement,
        bindings: &placed.bindings(),
        clusters: &clusters,
        held: &held,
        now,
    })
}

/// Takes the next step towards the end of a placement. Whatever it leads to wakes the placement again.
pub(crate) async fn end(hub: &HubApi, placed: &Placed) -> Result<(), BoxError> {
    let policies = placed.policies.iter().map(|policy| &policy.metadata);
    let policies: Vec<_> = policies.collect();
    let (bindings, snapshots) = (placed.bindings(), placed.snapshots());
    let writes = plan(&placed.placement, &bindings, &policies, &snapshots);
    let subject = Subject::new(SNAPSHOTS, &placed.placement.metadata.key());
    hub.committer.commit(&writes, Some(&subject)).await?;
    Ok(())
}

/// Deletes the bindings of a placement that does not exist any more: they were made while it went.
pub(crate) async fn sweep(index: &SharedIndex, hub: &HubApi, key: &Key) -> Result<(), BoxError> {
    let left = index.read(|index| index.bindings_of(key));
    let left = left.iter().filter(|one| !one.metadata.is_deleting());
    let deletions = left.map(|one| Write::delete("binding", ObjectRef::of(&**one, &one.scope())));
    let deletions: Vec<_> = deletions.collect();
    if deletions.is_empty() {
        return Ok(());
    }
    // Absence from the cache is no deletion.
    let placements = hub.of_scope::<Placement>(&key.namespace);
    if placements.get_metadata_opt(&key.name).await?.is_some() {
        return Ok(());
    }
    hub.committer.commit(&deletions, None).await?;
    Ok(())
}
