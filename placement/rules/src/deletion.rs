//! The end of a placement: it stays until nothing of it is left in any member that can be reached.
//!
//! ```text
//! placement → bindings → Works → objects in the members, and back: a finalizer goes with the objects for which it waited
//! ```

use std::collections::{BTreeMap, BTreeSet};

use fleet_api::conditions::{REMOVING, of_placement};
use fleet_api::names::{
    BINDING_SCHEDULER_FINALIZER, PLACEMENT_FINALIZER, PLACEMENT_SCHEDULER_FINALIZER, WORK_FINALIZER,
};
use fleet_api::{Binding, Placement, PolicySnapshot, ResourceSnapshot, Work};
use jiff::Timestamp;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use kube::Resource;
use objects::Metadata;
use objects::condition::{Condition, TRUE, find, transition};
use objects::write::{ObjectRef, Write};

use super::condition::condition;
use super::eligible::Reach;

/// The facts about a placement that is being deleted.
#[derive(Clone, Copy, Debug)]
pub struct DeletionFacts<'a> {
    /// The placement.
    pub placement: &'a Placement,
    /// Its bindings.
    pub bindings: &'a [&'a Binding],
    /// The clusters of the fleet.
    pub clusters: &'a BTreeMap<&'a str, Reach>,
    /// The objects that are held in a cluster, and their holders.
    pub held: &'a [(&'a str, String)],
    /// The time.
    pub now: Timestamp,
}

/// Plans the next writes to the rest of a placement, of which `policies` and `snapshots` are the metadata: the bindings
/// go, whatever their states; then the snapshots, which no binding needs any more; and once nothing is left the placement
/// loses its finalizers.
pub fn plan(
    placement: &Placement,
    bindings: &[&Binding],
    policies: &[&ObjectMeta],
    snapshots: &[&ObjectMeta],
) -> Vec<Write> {
    let scope = placement.scope();
    if !bindings.is_empty() {
        let bindings = bindings.iter().map(|one| &one.metadata);
        return deletions::<Binding>(("binding", &scope), bindings).collect();
    }
    if policies.is_empty() && snapshots.is_empty() {
        return released(placement).into_iter().collect();
    }
    let kind = ("policy_snapshot", &scope);
    let policies = deletions::<PolicySnapshot>(kind, policies.iter().copied());
    let kind = ("resource_snapshot", &scope);
    let snapshots = deletions::<ResourceSnapshot>(kind, snapshots.iter().copied());
    policies.chain(snapshots).collect()
}

/// Deletes those of a kind, which are written as the target, that stay.
fn deletions<'a, K: Resource>(
    (target, kind): (&'static str, &K::DynamicType),
    all: impl Iterator<Item = &'a ObjectMeta>,
) -> impl Iterator<Item = Write> {
    let staying = all.filter(|one| !one.is_deleting());
    staying.map(move |one| Write::delete(target, ObjectRef::of_metadata::<K>(one, kind)))
}

/// Returns the write that takes our finalizers from a placement, if it has any.
fn released(placement: &Placement) -> Option<Write> {
    let rest = placement.metadata.without_finalizers(&FINALIZERS)?;
    let object = ObjectRef::of(placement, &placement.scope());
    Some(Write::finalizers("placement_finalizers", object, &rest))
}

/// The finalizers that a placement has while something is left of it.
pub const FINALIZERS: [&str; 2] = [PLACEMENT_FINALIZER, PLACEMENT_SCHEDULER_FINALIZER];

/// Returns the finalizers of a binding with that by which it waits for its Works, unless it has it.
pub fn with_work_finalizer(binding: &Binding) -> Option<Vec<String>> {
    binding.metadata.with_finalizers(&[WORK_FINALIZER])
}

/// Returns the finalizers of a binding without ours if it is being deleted and none of its `works` is left: nothing of
/// it is in its cluster any more.
pub fn without_finalizers(binding: &Binding, works: usize) -> Option<Vec<String>> {
    let metadata = &binding.metadata;
    let rest = metadata.without_finalizers(&[BINDING_SCHEDULER_FINALIZER, WORK_FINALIZER]);
    rest.filter(|_| metadata.is_deleting() && works == 0)
}

/// Returns the message of the Works of a binding about objects that they give up and something holds; empty without one.
pub fn held(works: &[Work]) -> String {
    let statuses = works.iter().filter_map(|work| work.status.as_ref());
    let removing = statuses.filter_map(|status| find(&status.conditions, REMOVING));
    removing
        .map(|removing| &*removing.message)
        .collect::<Vec<_>>()
        .join("; ")
}

/// Returns the words of the placement about its end while bindings of it are left, unless it says so already.
pub fn removing(facts: &DeletionFacts<'_>) -> Option<Condition> {
    if facts.bindings.is_empty() {
        return None;
    }
    let clusters = facts.bindings.iter().map(|one| &*one.spec.target_cluster);
    let clusters: BTreeSet<_> = clusters.collect();
    let unreachable = clusters.iter().copied();
    let unreachable: Vec<_> = unreachable
        .filter(|cluster| facts.clusters.get(cluster) == Some(&Reach::Unreachable))
        .collect();
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
    use serde_json::{from_value, json};

    use super::super::fixtures::{fixture, items};
    use super::*;

    fn placement() -> Placement {
        let mut placement: Placement = from_value(fixture("crp-1-available")).unwrap();
        placement.metadata.finalizers = Some(FINALIZERS.map(str::to_owned).to_vec());
        placement
    }

    fn plan_of(bindings: &[Binding], snapshots: &[&ObjectMeta]) -> Vec<Write> {
        let bindings: Vec<_> = bindings.iter().collect();
        plan(&placement(), &bindings, &[], snapshots)
    }

    fn said_of(bindings: &[Binding]) -> Option<String> {
        let said = removing(&DeletionFacts {
            placement: &placement(),
            bindings: &bindings.iter().collect::<Vec<_>>(),
            clusters: &BTreeMap::from([
                ("kind-cluster-2", Reach::Reachable),
                ("kind-cluster-3", Reach::Unreachable),
            ]),
            held: &[("kind-cluster-2", "ConfigMap a/b is held by c".to_owned())],
            now: "2026-11-25T17:00:00Z".parse().unwrap(),
        });
        said.map(|said| said.message)
    }

    fn targets(writes: &[Write]) -> Vec<&'static str> {
        let targets = writes.iter().map(|write| write.target);
        targets.collect()
    }

    /// Bindings first, and with them the objects in members; then the snapshots, and then the placement.
    #[test]
    fn each_step_waits_for_the_last() {
        let bindings = items("crp-1-bindings").into_iter();
        let mut bindings: Vec<Binding> = bindings.map(|one| from_value(one).unwrap()).collect();
        let snapshot: ResourceSnapshot = from_value(fixture("crp-1-resourcesnapshot-0")).unwrap();
        let snapshots = [&snapshot.metadata];
        let first = plan_of(&bindings, &snapshots);
        assert_eq!(targets(&first), ["binding", "binding"]);
        let message = "Something of the placement is left in 2 cluster(s); these cannot be reached, and are waited for \
                       until they leave the fleet: kind-cluster-3; in kind-cluster-2: ConfigMap a/b is held by c";
        assert_eq!(said_of(&bindings).as_deref(), Some(message));
        assert_eq!(said_of(&[]), None);

        let deleted_at = bindings[0].metadata.creation_timestamp.clone();
        for binding in &mut bindings {
            binding.metadata.deletion_timestamp.clone_from(&deleted_at);
        }
        assert_eq!(targets(&plan_of(&bindings, &snapshots)), [""; 0]);
        let then = plan_of(&[], &snapshots);
        assert_eq!(targets(&then), ["resource_snapshot"]);
        let last = plan_of(&[], &[]);
        assert_eq!(targets(&last), ["placement_finalizers"]);
        let kept = json!({ "metadata": { "finalizers": [] } });
        assert_eq!(last[0].body(), &kept);
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
