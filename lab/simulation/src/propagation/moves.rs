//! The reasons for which a workload may move. From one settled state to the next, the placement of a binding,
//! its clusters and the copies in the members stay unless the history since then has such a reason.
//!
//! It is told without records or fingerprints: from the deeds of the users and the policies of the time.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::Value;

use super::objects::Template;
use super::programs::Role;
use super::since::{ByHand, Since, essence, place};
use super::snapshot::Snapshot;
use super::step::{Change, Step};

/// The moves of all templates.
#[derive(Debug, Default)]
pub(crate) struct Moves {
    templates: BTreeMap<Template, Since>,
    last: Snapshot,
    /// Set once a cluster changed since the fleet had settled.
    clusters_changed: bool,
    /// Set once that was more than a taint.
    members_changed: bool,
    /// Set once the propagation-controller did not run for a while since then.
    was_down: bool,
    /// The templates from which a user's PUT removed the records on them since then.
    wiped: BTreeSet<Template>,
    /// The templates that have had no policy since clusters changed, or a pause: the scheduler heeds that once one
    /// has them, and evicts once the pause ends.
    overdue: BTreeSet<Template>,
    fail_back: FailBack,
}

/// The flag with which the scheduler returns workloads to earlier groups of clusters.
#[derive(Debug, Default)]
struct FailBack {
    is_on: bool,
    /// Set if it was on since the fleet had settled.
    was_on: bool,
    /// Set if it was switched on since then.
    was_begun: bool,
}

impl Moves {
    /// Returns the objects as they were observed last.
    pub(crate) fn snapshot(&self) -> &Snapshot {
        &self.last
    }

    /// Notes a step, if there was one, and its outcome. Returns the moves without a reason.
    pub(crate) fn observe(&mut self, step: Option<&Step>, snapshot: Snapshot) -> Vec<String> {
        self.clusters_changed |= self.last.clusters.len() != snapshot.clusters.len()
            || snapshot.clusters.iter().any(|(name, cluster)| {
                self.last.clusters.get(name).map(cluster_facts) != Some(cluster_facts(cluster))
            });
        let change = step.and_then(Step::change);
        self.members_changed |= matches!(change, Some(Change::Join { .. } | Change::Leave { .. }))
            || self.last.clusters.is_empty();
        let stopped = match step {
            Some(
                Step::Kill { program, .. }
                | Step::Stop { program, .. }
                | Step::Crash { program, .. },
            ) => Some(*program),
            _ => None,
        };
        self.was_down |= stopped == Some(Role::Propagation);
        if let Some(Change::PutTemplate {
            template,
            wipes: true,
            ..
        }) = change
        {
            self.wiped.insert(*template);
        }
        if let Some(Change::FailBack { is_on }) = change {
            self.fail_back.was_begun |= *is_on && !self.fail_back.is_on;
            self.fail_back.was_on |= *is_on;
            self.fail_back.is_on = *is_on;
        }
        let mut found = Vec::new();
        let fleet_changed = self.clusters_changed || self.fail_back.was_begun;
        for template in Template::ALL {
            let since = self.templates.entry(template).or_default();
            since.note(template, &self.last, &snapshot);
            let done = change.and_then(ByHand::of);
            let of_this = done.filter(|(of, _)| *of == template);
            since.by_hand.extend(of_this.map(|(_, deed)| deed));
            let now = place(&snapshot, template);
            let moved = since.moved(&now, fleet_changed || self.overdue.contains(&template));
            found.extend(moved.map(|what| format!("{template:?}: {what} without a reason")));
            if !self.members_changed && since.is_bare(&now) {
                found.push(format!("{template:?}: no copy is left"));
            }
            if !self.fail_back.was_on {
                let returned = since.returned(&place(&self.last, template), &now);
                found.extend(returned.map(|what| format!("{template:?}: {what}")));
            }
        }
        self.last = snapshot;
        found
    }

    /// Notes that the fleet has settled as it was observed last. Returns the templates that an edit should have moved.
    pub(crate) fn settle(&mut self) -> Vec<String> {
        let mut found = Vec::new();
        let fleet_changed = self.clusters_changed || self.fail_back.was_begun;
        for (template, since) in &mut self.templates {
            let now = place(&self.last, *template);
            // A template that waits without a binding is recorded on itself only, and in the controller's memory.
            let is_forgotten =
                self.was_down && self.wiped.contains(template) && since.place.placement.is_none();
            let left = since.left_behind(&essence(&self.last, *template), &now);
            let left = left.filter(|_| !is_forgotten);
            found.extend(left.map(|what| format!("{template:?}: {what}")));
            *since = Since::begin(*template, &self.last);
            if !since.holder.is_empty() && !since.is_paused() {
                self.overdue.remove(template);
            } else if fleet_changed {
                self.overdue.insert(*template);
            }
        }
        (self.clusters_changed, self.members_changed) = (false, false);
        self.was_down = false;
        self.wiped.clear();
        self.fail_back.was_on = self.fail_back.is_on;
        self.fail_back.was_begun = false;
        found
    }
}

/// Returns the parts of a cluster for which workloads move.
fn cluster_facts(cluster: &Value) -> [&Value; 4] {
    let metadata = &cluster["metadata"];
    [
        &metadata["uid"],
        &metadata["labels"],
        &cluster["spec"],
        &cluster["status"],
    ]
}
