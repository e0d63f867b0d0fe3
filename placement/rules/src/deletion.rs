//! The end of a placement: it stays until nothing of it is left in any member that can be reached.
//!
//! ```text
//! placement → bindings → Works → objects in the members, and back: a finalizer goes with what it waited for
//! ```

use std::collections::{BTreeMap, BTreeSet};

use fleet_api::conditions::{REMOVING, of_placement};
use fleet_api::names::{
    BINDING_SCHEDULER_FINALIZER, PLACEMENT_FINALIZER, PLACEMENT_SCHEDULER_FINALIZER, WORK_FINALIZER,
};
use fleet_api::{Binding, Placement, Work};
use jiff::Timestamp;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use objects::Metadata;
use objects::condition::Condition;
use objects::condition::TRUE;
use objects::condition::{find, transition};

use super::condition::condition;
use super::eligible::Reach;

/// What is left of a placement that is being deleted.
#[derive(Clone, Copy, Debug)]
pub struct DeletionFacts<'a> {
    /// The placement.
    pub placement: &'a Placement,
    /// Its bindings.
    pub bindings: &'a [&'a Binding],
    /// Its snapshots, of both kinds.
    pub snapshots: &'a [&'a ObjectMeta],
    /// The clusters of the fleet.
    pub clusters: &'a BTreeMap<&'a str, Reach>,
    /// What is held in a cluster, and by what.
    pub held: &'a [(&'a str, String)],
    /// The time.
    pub now: Timestamp,
}

/// What is to be done about a placement that is being deleted.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct DeletionPlan {
    /// The bindings that are deleted, whatever their states.
    pub bindings: Vec<String>,
    /// The snapshots that are deleted: no binding needs them any more.
    pub snapshots: Vec<String>,
    /// True once nothing is left: the placement loses its finalizers.
    pub is_done: bool,
    /// What the placement says of its end, unless it says so already.
    pub removing: Option<Condition>,
}

/// Plans the end of a placement.
pub fn plan(facts: &DeletionFacts<'_>) -> DeletionPlan {
    let names = |metadata: &[&ObjectMeta]| {
        let staying = metadata.iter().filter(|metadata| !metadata.is_deleting());
        staying.map(|metadata| metadata.name().to_owned()).collect()
    };
    let bindings: Vec<_> = facts.bindings.iter().map(|one| &one.metadata).collect();
    let mut plan = DeletionPlan {
        bindings: names(&bindings),
        ..DeletionPlan::default()
    };
    if bindings.is_empty() {
        plan.snapshots = names(facts.snapshots);
        plan.is_done = facts.snapshots.is_empty();
    } else {
        plan.removing = removing(facts);
    }
    plan
}

/// The finalizers that a placement has while something is left of it.
pub const FINALIZERS: [&str; 2] = [PLACEMENT_FINALIZER, PLACEMENT_SCHEDULER_FINALIZER];

/// Returns the finalizers of a binding with that by which it waits for its Works, unless it has it.
pub fn with_work_finalizer(binding: &Binding) -> Option<Vec<String>> {
    let mut finalizers = binding.metadata.finalizers.clone().unwrap_or_default();
    if finalizers.iter().any(|one| one == WORK_FINALIZER) {
        return None;
    }
    finalizers.push(WORK_FINALIZER.to_owned());
    Some(finalizers)
}

/// Returns the finalizers of a binding without ours if it is being deleted and none of its `works` is left: nothing of
/// it is in its cluster any more.
pub fn without_finalizers(binding: &Binding, works: usize) -> Option<Vec<String>> {
    let present = binding.metadata.finalizers.as_deref()?;
    let is_ours = |one: &str| [BINDING_SCHEDULER_FINALIZER, WORK_FINALIZER].contains(&one);
    let others = present.iter().filter(|one| !is_ours(one));
    let others: Vec<_> = others.cloned().collect();
    let is_over = binding.metadata.is_deleting() && works == 0;
    (is_over && others.len() < present.len()).then_some(others)
}

/// Returns what the Works of a binding say of objects that they give up and something holds; empty if they say nothing.
pub fn held(works: &[Work]) -> String {
    let statuses = works.iter().filter_map(|work| work.status.as_ref());
    let removing = statuses.filter_map(|status| find(&status.conditions, REMOVING));
    removing
        .map(|removing| &*removing.message)
        .collect::<Vec<_>>()
        .join("; ")
}

/// Returns what the placement says of what is left of it.
fn removing(facts: &DeletionFacts<'_>) -> Option<Condition> {
    let clusters = facts.bindings.iter().map(|one| &*one.spec.target_cluster);
    let clusters: BTreeSet<_> = clusters.collect();
    let is_unreachable = |cluster: &&str| facts.clusters.get(cluster) == Some(&Reach::Unreachable);
    let unreachable: Vec<_> = clusters.iter().copied().filter(is_unreachable).collect();
    let mut message = format!(
        "Something of the placement is left in {} cluster(s)",
        clusters.len()
    );
    if !unreachable.is_empty() {
        let names = unreachable.join(", ");
        message.extend([
            "; these cannot be reached, and are waited for until they leave the fleet: ",
            &names,
        ]);
    }
    for (cluster, held) in facts.held {
        message.extend(["; in ", cluster, ": ", held]);
    }
    let kind = of_placement(facts.placement.scope(), REMOVING);
    let mut removing = condition((&kind, TRUE), "RemovalInProgress", &message);
    let status = facts.placement.status.as_ref();
    let old = status.and_then(|status| find(&status.conditions, &kind));
    removing.last_transition_time = Some(transition(old, TRUE, facts.now));
    removing.observed_generation = facts.placement.metadata.generation;
    (old != Some(&removing)).then_some(removing)
}

#[cfg(test)]
mod tests {
    use serde_json::from_value;

    use super::super::fixtures::{fixture, items};
    use super::*;

    fn plan_of(bindings: &[Binding], snapshots: &[&ObjectMeta]) -> DeletionPlan {
        let placement = from_value(fixture("crp-1-available")).unwrap();
        let bindings: Vec<_> = bindings.iter().collect();
        plan(&DeletionFacts {
            placement: &placement,
            bindings: &bindings,
            snapshots,
            clusters: &BTreeMap::from([
                ("kind-cluster-2", Reach::Reachable),
                ("kind-cluster-3", Reach::Unreachable),
            ]),
            held: &[("kind-cluster-2", "ConfigMap a/b is held by c".to_owned())],
            now: "2026-11-25T17:00:00Z".parse().unwrap(),
        })
    }

    /// Bindings first, and with them what the members have; then the snapshots, and then the placement.
    #[test]
    fn each_step_waits_for_the_last() {
        let bindings = items("crp-1-bindings").into_iter();
        let mut bindings: Vec<Binding> = bindings.map(|one| from_value(one).unwrap()).collect();
        let snapshot: fleet_api::ResourceSnapshot =
            from_value(fixture("crp-1-resourcesnapshot-0")).unwrap();
        let snapshots = [&snapshot.metadata];
        let first = plan_of(&bindings, &snapshots);
        assert_eq!(
            (first.bindings.len(), first.snapshots.len(), first.is_done),
            (2, 0, false)
        );
        let message = "Something of the placement is left in 2 cluster(s); these cannot be reached, and are waited for \
                       until they leave the fleet: kind-cluster-3; in kind-cluster-2: ConfigMap a/b is held by c";
        assert_eq!(first.removing.unwrap().message, message);

        let deleted_at = bindings[0].metadata.creation_timestamp.clone();
        for binding in &mut bindings {
            binding.metadata.deletion_timestamp.clone_from(&deleted_at);
        }
        assert_eq!(plan_of(&bindings, &snapshots).bindings, [""; 0]);
        let then = plan_of(&[], &snapshots);
        assert_eq!((then.snapshots.len(), then.is_done), (1, false));
        assert!(plan_of(&[], &[]).is_done);
    }

    #[test]
    fn bindings_wait_for_their_works() {
        let binding = fixture("binding-unscheduled-deleting");
        let mut binding: Binding = from_value(binding).unwrap();
        let others = "example.com/audit".to_owned();
        let finalizers = binding.metadata.finalizers.get_or_insert_default();
        finalizers.push(others.clone());
        assert_eq!(without_finalizers(&binding, 1), None);
        assert_eq!(without_finalizers(&binding, 0), Some(vec![others]));
        binding.metadata.deletion_timestamp = None;
        assert_eq!(without_finalizers(&binding, 0), None);
    }
}
