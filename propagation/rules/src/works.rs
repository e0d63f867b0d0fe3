//! The Works of a binding: those that its clusters need, those that wait there until they may go, and
//! those that nobody needs any more.
//!
//! [`plan`] goes once through the clusters: those that need the template (`desired` makes the Work that each should
//! have, `change` the write that leads there), those that it is leaving, and those that have a Work for nothing.

mod change;
mod desired;
mod facts;
#[cfg(test)]
mod tests;

use std::collections::BTreeMap;

use karmada_api::{TargetCluster, Work, names};
use objects::{Key, Metadata};

pub(super) use self::change::namespace_owner;
pub use self::change::{DesiredWork, WorkChange};
pub use self::desired::revisions;
use self::desired::{Obstacle, Order, desired, divided_completions};
use self::facts::purged_clusters;
pub use self::facts::{
    WorkFacts, bound, id, is_delivered, is_outlived, kept_clusters, wanted_clusters, work_name,
};
pub(super) use self::facts::{cluster_of, other_owner};
use super::overrides::OverrideError;

/// The step for the Work of one cluster.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum WorkStep {
    /// The cluster needs it.
    Apply(WorkChange),
    /// The cluster needs it, once the copies are gone that leave other clusters first.
    AwaitRemoval,
    /// It stays as it is until an eviction is complete.
    Keep,
    /// Nobody needs it, but while dispatching is suspended no copy may go.
    HoldWhilePaused,
    /// It is being deleted, and nobody needs it.
    Deleting,
    /// Nobody needs it: it is deleted.
    Delete {
        /// The name of the Work.
        key: Key,
        /// Its uid.
        uid: Option<String>,
    },
    /// The cluster needs it, and the Work of its name there is that of this binding.
    Taken(Key),
    /// The cluster is not known, or is leaving and has no Work.
    NoCluster,
    /// An override policy cannot be applied: the Work stays as it is.
    Refused(OverrideError),
    /// The script that revises its manifest has failed with this error: the Work stays as it is.
    Unrevised(String),
}

/// Plans the Works of a binding, by cluster. `new_id` makes the ID of a Work that has none. A binding
/// without an ID of its own has no Works yet.
pub fn plan(
    facts: &WorkFacts<'_>,
    mut new_id: impl FnMut() -> String,
) -> BTreeMap<String, WorkStep> {
    let Some(id) = facts.binding.id() else {
        return BTreeMap::new();
    };
    let planner = Planner::new(facts, id);
    let mut steps = BTreeMap::new();
    let mut is_undelivered = false;
    for (&cluster, target) in &planner.wanted {
        let step = planner.needed(cluster, *target, &mut new_id);
        is_undelivered |= facts.is_suspended(cluster) && !planner.stays_delivered(cluster, &step);
        steps.insert(cluster.to_owned(), step);
    }
    for cluster in kept_clusters(facts.binding) {
        steps.entry(cluster.to_owned()).or_insert(WorkStep::Keep);
    }
    for (cluster, work) in planner.own_works() {
        steps.entry(cluster.to_owned()).or_insert_with(|| {
            if work.metadata.is_deleting() {
                WorkStep::Deleting
            } else if is_undelivered || facts.is_paused(cluster) {
                // Somebody paused to keep what runs, while its replacement has not arrived.
                WorkStep::HoldWhilePaused
            } else if facts.is_everywhere {
                WorkStep::Apply(WorkChange::to_namespace(
                    facts.template,
                    facts.binding,
                    work,
                ))
            } else {
                WorkStep::Delete {
                    key: Key::of(work),
                    uid: work.metadata.uid.clone(),
                }
            }
        });
    }
    steps
}

/// The facts, and what follows from them for every cluster.
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

    /// Iterates over the Works with the binding's ID, and their clusters.
    fn own_works(&self) -> impl Iterator<Item = (&'a str, &'a Work)> {
        let works = self.facts.works.iter().copied();
        works
            .filter(|work| work.metadata.label(self.facts.binding.id_label()) == Some(self.id))
            .filter_map(|work| Some((cluster_of(work)?, work)))
    }

    /// Returns the step of a cluster that needs the template.
    fn needed(
        &self,
        name: &str,
        target: Option<&TargetCluster>,
        new_id: &mut impl FnMut() -> String,
    ) -> WorkStep {
        if let Some(other) = self.taken.get(name) {
            return WorkStep::Taken(other.clone());
        }
        let current = self.existing.get(name).copied();
        // No Work can be made in the namespace of a cluster that is leaving.
        let cluster = self.facts.clusters.get(name);
        let cluster = cluster.filter(|one| current.is_some() || !one.metadata.is_deleting());
        let Some(cluster) = cluster else {
            return WorkStep::NoCluster;
        };
        let work_id = current.and_then(|work| work.metadata.label(names::WORK_ID));
        let work_id = work_id.map_or_else(new_id, str::to_owned);
        let suspended = self.facts.is_suspended(name);
        let order = Order {
            cluster,
            replicas: target.map(|target| target.replicas.unwrap_or_default()),
            completions: self.completions.get(name).copied(),
            binding_id: self.id,
            work_id: &work_id,
            suspended,
        };
        match desired(self.facts, &order, current).map(|desired| desired.change(current)) {
            Ok(WorkChange::Create(_)) if self.awaits_removal => WorkStep::AwaitRemoval,
            // A pause is not put off.
            Ok(WorkChange::Patch { manifest: true, .. }) if self.awaits_removal && !suspended => {
                WorkStep::AwaitRemoval
            }
            Ok(change) => WorkStep::Apply(change),
            Err(Obstacle::Override(error)) => WorkStep::Refused(error),
            Err(Obstacle::Script(error)) => WorkStep::Unrevised(error),
        }
    }

    /// Returns `true` if the member has the manifest, and will after this step.
    fn stays_delivered(&self, cluster: &str, step: &WorkStep) -> bool {
        let stays = match step {
            WorkStep::Apply(WorkChange::Unchanged | WorkChange::Deleting) => true,
            WorkStep::Apply(WorkChange::Patch { manifest, .. }) => !manifest,
            _ => false,
        };
        let current = self.existing.get(cluster);
        stays && current.is_some_and(|work| is_delivered(work))
    }
}
