//! The clusters of a placement: one pass from a policy to bindings and decisions.
//!
//! ```text
//! clusters → filter → score, pick by pick → bindings → decisions
//! ```
//!
//! A decision stays: a cluster that has the placement under the latest policy keeps it, whatever becomes of
//! its labels, taints or health. Only a new policy, a smaller number or the end of the cluster takes it away.
//!
//! - `facts`: the facts that decide, and the bindings by their kinds.
//! - `choice`: the clusters that are picked, and why not the others; `number` picks the best.
//! - `binding`: the writes to bindings.
//! - `wake`: which changes of clusters are worth another pass.
//! - `decisions`: the status of the policy snapshot, with a `reason` for each.

mod binding;
mod choice;
mod decisions;
mod facts;
mod number;
mod reason;
#[cfg(test)]
mod tests;
mod wake;

use std::collections::BTreeMap;

use fleet_api::policy::PlacementType;
use objects::Metadata;
use objects::write::Write;

pub use facts::{FleetCluster, SchedulingFacts};
pub use wake::{ClusterChange, change, wakes};

use choice::{Choice, Pick};
use facts::{Bindings, number_of_clusters};

/// Plans the writes to the bindings of a placement, and those that follow them: to the status of the policy snapshot.
pub fn plan(facts: &SchedulingFacts<'_>) -> [Vec<Write>; 2] {
    let policy = facts.policy.spec.policy.clone().unwrap_or_default();
    let bindings = Bindings::of(facts);
    let choice = match policy.placement_type {
        PlacementType::PickAll => choice::all(facts, &policy, &bindings),
        PlacementType::PickFixed => choice::fixed(facts, &policy, &bindings),
        PlacementType::PickN => {
            number::number(facts, &policy, &bindings, number_of_clusters(facts))
        }
    };
    let status = decisions::status(facts, &bindings, &choice);
    [writes(facts, &bindings, &choice), Vec::from_iter(status)]
}

/// Returns the writes to bindings.
fn writes(facts: &SchedulingFacts<'_>, bindings: &Bindings<'_>, choice: &Choice<'_>) -> Vec<Write> {
    let picks: BTreeMap<&str, &Pick<'_>> = choice
        .picks
        .iter()
        .map(|pick| (pick.cluster.metadata.name(), pick))
        .collect();
    let mut writes = Vec::new();
    for pick in &choice.picks {
        let name = pick.cluster.metadata.name();
        let decision = pick.decision();
        writes.push(if let Some(obsolete) = bindings.obsolete.get(name) {
            binding::keep(facts, obsolete, &decision)
        } else if let Some(unscheduled) = bindings.unscheduled.get(name) {
            binding::restore(facts, unscheduled, &decision)
        } else {
            binding::create(facts, decision)
        });
    }
    let obsolete = bindings.obsolete.iter();
    let obsolete = obsolete.filter(|(cluster, _)| !picks.contains_key(**cluster));
    let dropped = choice.dropped.iter().copied();
    let ended = bindings.dangling.iter().copied();
    let ended = ended
        .chain(obsolete.map(|(_, binding)| *binding))
        .chain(dropped);
    writes.extend(ended.map(binding::unschedule));
    writes
}
