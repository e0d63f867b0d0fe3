//! The comparison of the clusters of a settled binding with its placement.
//!
//! Workloads stay where they are without a need to move: where the history decides, every result that some
//! history has is right.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::Value;

use super::history::History;
use super::model::{self, Division, Group};
use super::snapshot::Snapshot;
use crate::harness::value::{condition, items, text};

/// Returns the differences between the clusters of a binding and its placement. If clusters have changed, replicas
/// may have been divided among others than there are now.
pub(crate) fn differences(snapshot: &Snapshot, history: &History, binding: &Value) -> Vec<String> {
    let spec = &binding["spec"];
    // Without clusters that is rather taken for a fault of the API than for the end of every workload.
    if spec["placement"].is_null() || snapshot.clusters.is_empty() {
        return Vec::new();
    }
    let schedule = Schedule::of(snapshot, binding);
    let mut found = schedule.differences(history, binding);
    if items(spec, "/gracefulEvictionTasks").next().is_some() {
        found.push("an eviction is not over".to_owned());
    }
    // A copy that a pause holds is no place to go to.
    if !model::pauses(&spec["suspension"]) {
        found.extend(schedule.not_evicted());
        if history.fails_back {
            found.extend(schedule.not_returned(in_use(binding)));
        }
    }
    found
}

/// Returns the groups of a binding that a workload may not fit in, in whatever way it comes there.
pub(crate) fn unfit(snapshot: &Snapshot, binding: &Value) -> Vec<String> {
    let schedule = Schedule::of(snapshot, binding);
    let reported = items(binding, "/status/aggregatedStatus").map(|one| text(one, "/clusterName"));
    let leaving = items(binding, "/spec/gracefulEvictionTasks");
    let leaving = leaving.map(|task| text(task, "/fromCluster"));
    let former = reported.filter(|name| !schedule.targets.contains_key(*name));
    let closed = former.chain(leaving).chain(schedule.leaving()).collect();
    let unfit = schedule.groups.iter();
    let unfit = unfit.filter(|group| !schedule.fits(group, &closed));
    unfit.map(|group| group.name.to_owned()).collect()
}

/// Returns the name of the group of a binding that is in use.
pub(crate) fn in_use(binding: &Value) -> &str {
    text(binding, "/status/schedulerObservingAffinityName")
}

/// Returns the clusters of a binding with the replicas of each.
pub(crate) fn targets(binding: &Value) -> BTreeMap<String, Option<u64>> {
    let clusters = items(binding, "/spec/clusters");
    clusters
        .map(|target| {
            let name = text(target, "/name").to_owned();
            (name, target["replicas"].as_u64())
        })
        .collect()
}

/// A placement, and the clusters that were chosen for it.
#[derive(Debug)]
struct Schedule<'a> {
    snapshot: &'a Snapshot,
    placement: &'a Value,
    groups: Vec<Group<'a>>,
    targets: BTreeMap<String, Option<u64>>,
    replicas: Option<u64>,
    division: Division,
}

impl<'a> Schedule<'a> {
    fn of(snapshot: &'a Snapshot, binding: &'a Value) -> Self {
        let placement = &binding["spec"]["placement"];
        let replicas = binding["spec"]["replicas"].as_u64();
        Self {
            snapshot,
            placement,
            groups: model::groups(snapshot, placement),
            targets: targets(binding),
            replicas,
            division: match replicas {
                Some(_) => model::division(placement),
                None => Division::None,
            },
        }
    }

    fn differences(&self, history: &History, binding: &Value) -> Vec<String> {
        let clusters_changed = history.clusters_changed;
        let nowhere = BTreeSet::new();
        let fitting = self
            .groups
            .iter()
            .filter(|group| self.fits(group, &nowhere));
        let fitting: Vec<&str> = fitting.map(|group| group.name).collect();
        let may_fit = self.groups.iter().any(|group| self.may_fit(group));
        let is_scheduled = condition(binding, "Scheduled") == "True";
        // Divided replicas stay in a cluster that is relabelled.
        let may_stay = clusters_changed && !matches!(self.division, Division::None);
        let is_right = if is_scheduled {
            may_fit || may_stay
        } else {
            fitting.is_empty()
        };
        if !is_right {
            return vec![format!(
                "scheduled: {is_scheduled}, to {:?}, with fitting groups {fitting:?}",
                self.targets
            )];
        }
        if !is_scheduled {
            let is_unfit = self
                .groups
                .iter()
                .all(|group| self.feasible(group).is_empty());
            let runs = is_unfit && !self.targets.is_empty();
            let runs = runs.then(|| format!("still in {:?}, where nothing fits", self.targets));
            return runs.into_iter().collect();
        }
        let in_use = in_use(binding);
        let Some(group) = self.groups.iter().find(|group| group.name == in_use) else {
            return vec![format!("the group {in_use:?} is in use, which is none")];
        };
        let mut found = self.of_group(group, clusters_changed);
        if !clusters_changed && !history.is_bounded {
            let is_first = self
                .groups
                .first()
                .is_some_and(|first| first.name == in_use);
            found.extend((!is_first).then(|| format!("{in_use} is in use, and fits no better")));
        }
        found
    }

    /// Returns the differences from the demands of the group in use.
    fn of_group(&self, group: &Group<'_>, clusters_changed: bool) -> Vec<String> {
        let mut found = Vec::new();
        let is: BTreeSet<String> = self.targets.keys().cloned().collect();
        if let Division::None = self.division {
            if !self.choices(&self.feasible(group)).contains(&is) {
                found.push(format!("scheduled to {is:?} instead of {group:?}"));
            }
            if self.targets.values().any(|one| *one != self.replicas) {
                found.push(format!(
                    "{:?} are not {:?} each",
                    self.targets, self.replicas
                ));
            }
            return found;
        }
        let seats = self.seats();
        if let Some(gone) = seats
            .keys()
            .find(|name| !self.snapshot.clusters.contains_key(*name))
        {
            found.push(format!("scheduled to {gone}, which has left"));
        }
        if Some(seats.values().sum::<u64>()) != self.replicas {
            found.push(format!(
                "{seats:?} are not {:?}, in {group:?}",
                self.replicas
            ));
        }
        // Divided replicas do not move because clusters join or are relabelled.
        if clusters_changed {
            return found;
        }
        let choices = self.choices(&group.clusters);
        if !choices.iter().any(|choice| is.is_subset(choice)) {
            found.push(format!("scheduled to {is:?} instead of {group:?}"));
        }
        if let Division::Weights(weights) = &self.division {
            if weights.is_empty() {
                let mut evenly = choices.into_iter().map(BTreeSet::into_iter);
                let is_even = evenly.any(|choice| {
                    model::is_divided(&seats, &choice.map(|name| (name, 1)).collect())
                });
                found.extend((!is_even).then(|| format!("{seats:?} are not even, in {group:?}")));
                return found;
            }
            let mut wanted = weights.clone();
            wanted.retain(|name, weight| *weight > 0 && group.clusters.contains(name));
            if wanted.is_empty() {
                let mut unnamed = group.clusters.clone();
                unnamed.retain(|name| !weights.contains_key(name));
                wanted = unnamed.into_iter().map(|name| (name, 1)).collect();
            }
            if !model::is_divided(&seats, &wanted) {
                found.push(format!("{seats:?} are not divided by {wanted:?}"));
            }
        }
        found
    }

    /// Returns the clusters that stay in use in spite of a taint though there is another place to go to.
    fn not_evicted(&self) -> Option<String> {
        let leaving: BTreeSet<&str> = self.leaving().collect();
        let mut groups = self.groups.iter();
        let has_place = groups.any(|group| self.fits(group, &leaving));
        (!leaving.is_empty() && has_place)
            .then(|| format!("still in {leaving:?}, whose taints are not tolerated"))
    }

    /// Returns the clusters that the workload has to leave, now or once it is tolerated no longer.
    fn leaving(&self) -> impl Iterator<Item = &str> {
        let targets = self.targets.keys().map(String::as_str);
        targets.filter(|name| model::drives_away(self.snapshot, self.placement, name))
    }

    /// Returns a group before that in use in which the workload could run, too.
    fn not_returned(&self, in_use: &str) -> Option<String> {
        let mut earlier = self.groups.iter().take_while(|group| group.name != in_use);
        let better = earlier.find(|group| self.fits(group, &BTreeSet::new()))?;
        Some(format!("{in_use} is in use, and {} fits, too", better.name))
    }

    /// Returns `true` if the workload can run in a group, `without` some clusters.
    fn fits(&self, group: &Group<'_>, without: &BTreeSet<&str>) -> bool {
        let mut feasible = self.feasible(group);
        feasible.retain(|name| !without.contains(name.as_str()));
        let choices = self.choices(&feasible);
        let mut enough = choices.iter().map(|choice| self.has_room(choice));
        // Any regions may be chosen, of the clusters those with room.
        if model::has_regions(self.placement) {
            return !choices.is_empty() && enough.all(|is_enough| is_enough);
        }
        enough.any(|is_enough| is_enough)
    }

    /// Returns `true` if a choice of regions in a group lets the workload run there.
    fn may_fit(&self, group: &Group<'_>) -> bool {
        let choices = self.choices(&self.feasible(group));
        choices.iter().any(|choice| self.has_room(choice))
    }

    /// Returns the choices among clusters. Each that has a weight gets its part, whatever their number, and one that has
    /// no replicas goes along.
    fn choices(&self, clusters: &BTreeSet<String>) -> Vec<BTreeSet<String>> {
        match model::division(self.placement) {
            Division::Weights(weights) if !weights.is_empty() => {
                model::choices(self.snapshot, &Value::Null, clusters)
            }
            _ => model::choices(self.snapshot, self.placement, clusters),
        }
    }

    /// Returns `true` if clusters have room for the replicas that are divided by room.
    fn has_room(&self, clusters: &BTreeSet<String>) -> bool {
        let seats = self.seats();
        let open = model::open(self.snapshot, self.placement, clusters);
        let had: u64 = clusters.iter().filter_map(|name| seats.get(name)).sum();
        // Nothing more comes to the others.
        let more: u64 = open
            .iter()
            .map(|name| model::room(self.snapshot, name))
            .sum();
        !matches!(self.division, Division::Room) || Some(had + more) >= self.replicas
    }

    /// Returns the clusters of a group that workloads may come to, and those where this one is.
    fn feasible(&self, group: &Group<'_>) -> BTreeSet<String> {
        let mut feasible = model::open(self.snapshot, self.placement, &group.clusters);
        let stay = self.targets.keys();
        feasible.extend(stay.filter(|name| group.clusters.contains(*name)).cloned());
        feasible
    }

    fn seats(&self) -> BTreeMap<String, u64> {
        let seats = self.targets.iter();
        seats
            .map(|(name, replicas)| (name.clone(), replicas.unwrap_or_default()))
            .collect()
    }
}
