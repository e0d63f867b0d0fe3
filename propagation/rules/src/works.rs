//! The Works of a binding: those that its clusters need, those that wait there until they may go, and
//! those that nobody needs any more.
//!
//! [`plan`] goes once through the clusters: those that need the template (each gets an order, of which `desired` makes the
//! Work that it should have, and `write` the write that leads there), those that it is leaving, and those that have a Work
//! for nothing.

mod desired;
mod facts;
#[cfg(test)]
mod tests;
mod write;

use std::collections::BTreeMap;

use karmada_api::{TargetCluster, Work, names};
use objects::{Key, Metadata};

pub use self::desired::revisions;
use self::desired::{Order, desired, divided_completions};
use self::facts::purged_clusters;
pub use self::facts::{
    WorkFacts, bound, id, is_delivered, is_outlived, keep_facts, kept_clusters, wanted_clusters,
    work_name,
};
pub(super) use self::facts::{allocated_node_ports, cluster_of, other_owner};
use self::write::changes_manifest;
pub(super) use self::write::namespace_owner;
pub use self::write::{DesiredWork, Step, Unwritten, deletion, is_overridden, to_namespace};

/// Plans the Works of a binding, by cluster. `new_id` makes the ID of a Work that has none. A binding
/// without an ID of its own has no Works yet.
pub fn plan(facts: &WorkFacts<'_>, mut new_id: impl FnMut() -> String) -> BTreeMap<String, Step> {
    let Some(id) = facts.binding.id() else {
        return BTreeMap::new();
    };
    let planner = Planner::new(facts, id);
    let mut steps = planner.needed(&mut new_id);
    let is_undelivered = planner.is_undelivered(&steps);
    for cluster in kept_clusters(facts.binding) {
        let step = steps.entry(cluster.to_owned());
        step.or_insert(Err(Unwritten::Keep));
    }
    for (cluster, work) in planner.own_works() {
        let step = steps.entry(cluster.to_owned());
        step.or_insert_with(|| planner.unneeded(cluster, work, is_undelivered));
    }
    steps
}

/// The facts, and their consequences for every cluster.
struct Planner<'a> {
    facts: &'a WorkFacts<'a>,
    id: &'a str,
    existing: BTreeMap<&'a str, &'a Work>,
    /// The clusters in which another binding has the Work of this one's name.
    taken: BTreeMap<&'a str, Key>,
    wanted: BTreeMap<&'a str, Option<&'a TargetCluster>>,
    completions: BTreeMap<&'a str, i32>,
    /// True while a copy has still to go before others may come.
    awaits_removal: bool,
}

impl<'a> Planner<'a> {
    fn new(facts: &'a WorkFacts<'a>, id: &'a str) -> Self {
        let (mut existing, mut taken) = (BTreeMap::new(), BTreeMap::new());
        for (cluster, work) in facts.named() {
            match other_owner(work, facts.binding) {
                Some(other) => drop(taken.insert(cluster, other)),
                None => drop(existing.insert(cluster, work)),
            }
        }
        let wanted = wanted_clusters(facts.binding);
        let mut purged = purged_clusters(facts.binding).into_iter();
        let awaits_removal = !facts.is_everywhere
            && purged
                .any(|cluster| existing.contains_key(cluster) && !wanted.contains_key(cluster));
        let completions = divided_completions(facts, &existing);
        Self {
            facts,
            id,
            existing,
            taken,
            wanted,
            completions,
            awaits_removal,
        }
    }

    /// Returns the steps of the clusters that need the template.
    fn needed(&self, new_id: &mut impl FnMut() -> String) -> BTreeMap<String, Step> {
        let wanted = self.wanted.iter();
        let steps = wanted.map(|(&cluster, &target)| {
            let order = self.order(cluster, target, new_id);
            let step = order.and_then(|order| self.write(&order));
            (cluster.to_owned(), step)
        });
        steps.collect()
    }

    /// Returns the order of the Work of a cluster.
    ///
    /// # Errors
    /// Fails with the reason if no Work can be made there.
    fn order(
        &self,
        name: &str,
        target: Option<&TargetCluster>,
        new_id: &mut impl FnMut() -> String,
    ) -> Result<Order<'a>, Unwritten> {
        if let Some(other) = self.taken.get(name) {
            return Err(Unwritten::Taken(other.clone()));
        }
        let current = self.existing.get(name).copied();
        let cluster = self.facts.clusters.get(name).copied();
        // No Work can be made in the namespace of a cluster that is leaving.
        let cluster = cluster.filter(|one| current.is_some() || !one.metadata.is_deleting());
        let work_id = current.and_then(|work| work.metadata.label(names::WORK_ID));
        Ok(Order {
            cluster: cluster.ok_or(Unwritten::NoCluster)?,
            current,
            replicas: target.map(|target| target.replicas.unwrap_or_default()),
            completions: self.completions.get(name).copied(),
            binding_id: self.id,
            work_id: work_id.map_or_else(new_id, str::to_owned),
            suspended: self.facts.is_suspended(name),
        })
    }

    /// Returns the write that an order needs.
    fn write(&self, order: &Order<'_>) -> Step {
        let desired = desired(self.facts, order)?;
        if order
            .current
            .is_some_and(|work| work.metadata.is_deleting())
        {
            return Err(Unwritten::AwaitDeletion);
        }
        let write = desired.write(order.current);
        // A pause is not put off.
        let may_wait = order.current.is_none() || !order.suspended;
        let is_delivery = write.as_ref().is_some_and(changes_manifest);
        if self.awaits_removal && is_delivery && may_wait {
            return Err(Unwritten::AwaitRemoval);
        }
        Ok(write)
    }

    /// Returns `true` if a pause keeps the manifest from a member that needs it.
    fn is_undelivered(&self, needed: &BTreeMap<String, Step>) -> bool {
        let mut suspended = needed
            .iter()
            .filter(|(cluster, _)| self.facts.is_suspended(cluster));
        suspended.any(|(cluster, step)| !self.stays_delivered(cluster, step))
    }

    /// Iterates over the Works with the binding's ID, and their clusters.
    fn own_works(&self) -> impl Iterator<Item = (&'a str, &'a Work)> {
        let works = self.facts.works.iter().copied();
        works
            .filter(|work| work.metadata.label(self.facts.binding.id_label()) == Some(self.id))
            .filter_map(|work| Some((cluster_of(work)?, work)))
    }

    /// Returns the step for a Work that nobody needs.
    fn unneeded(&self, cluster: &str, work: &Work, is_undelivered: bool) -> Step {
        let facts = self.facts;
        if work.metadata.is_deleting() {
            Err(Unwritten::Deleting)
        } else if is_undelivered || facts.is_paused(cluster) {
            // Somebody paused to keep the running copy, while its replacement has not arrived.
            Err(Unwritten::HoldWhilePaused)
        } else if facts.is_everywhere {
            Ok(Some(to_namespace(facts.template, facts.binding, work)))
        } else {
            Ok(Some(deletion(Key::of(work), work.metadata.uid.clone())))
        }
    }

    /// Returns `true` if the member has the manifest, and will after this step.
    fn stays_delivered(&self, cluster: &str, step: &Step) -> bool {
        let stays = match step {
            Ok(Some(write)) => !changes_manifest(write),
            Ok(None) | Err(Unwritten::AwaitDeletion) => true,
            Err(_) => false,
        };
        let current = self.existing.get(cluster);
        stays && current.is_some_and(|work| is_delivered(work))
    }
}
