//! The comparison of a settled fleet with the model.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::Value;

use super::history::History;
use super::model::{self, Place};
use super::objects::{APPS, app};
use super::snapshot::{Maps, Snapshot};
use crate::harness::clusters;
use crate::harness::value::{condition, is_deleting, items, name, text};

/// The most groups of snapshots that are kept by default.
const MOST_SNAPSHOTS: usize = 10;

/// Returns every difference between the objects and the model, but for those in a namespace.
pub(crate) fn differences(snapshot: &Snapshot, history: &History) -> Vec<String> {
    let mut found = Vec::new();
    for cluster in clusters::all() {
        found.extend(of_cluster(snapshot, &cluster));
    }
    for app in (0..APPS).map(app) {
        let check = Check {
            snapshot,
            history,
            app: &app,
        };
        let differences = check.differences();
        found.extend(differences.into_iter().map(|one| format!("{app}: {one}")));
    }
    found
}

/// Compares the objects of a cluster on the hub.
fn of_cluster(snapshot: &Snapshot, cluster: &str) -> Vec<String> {
    let mut found = Vec::new();
    let Some(member) = snapshot.clusters.get(cluster) else {
        if snapshot.spaces.contains(cluster) {
            found.push(format!("{cluster} has left, and its namespace is there"));
        }
        return found;
    };
    if is_deleting(member) {
        found.push(format!("{cluster} has not left yet"));
    }
    for kind in ["ReadyToJoin", "Joined"] {
        if condition(member, kind) != "True" {
            found.push(format!("{cluster} is not {kind}"));
        }
    }
    found
}

/// The check of one application and all that became of it.
struct Check<'a> {
    snapshot: &'a Snapshot,
    history: &'a History,
    app: &'a str,
}

impl Check<'_> {
    fn differences(&self) -> Vec<String> {
        let snapshot = self.snapshot;
        let bound = snapshot.bound(self.app);
        let mut found = self.works(&bound);
        if snapshot.placements.get(self.app).is_some_and(is_deleting) {
            found.push("the placement is still there".to_owned());
        }
        let Some(placement) = snapshot.placement(self.app) else {
            let parts = [&snapshot.bindings, &snapshot.snapshots, &snapshot.policies];
            let left = parts.map(|objects| Snapshot::of(objects, self.app));
            for object in left.into_iter().flatten() {
                found.push(format!("{} is left", name(object)));
            }
            found.extend(self.copies(&bound, None));
            return found;
        };
        found.extend(self.snapshots());
        // A placement that is refused moves nothing: not even away from clusters that it no longer picks.
        if let Ok(selected) = model::selected(snapshot, placement, self.app) {
            found.extend(self.picked(placement, &bound));
            found.extend(self.copies(&bound, selected.as_ref()));
            found.extend(status_differences(placement, &bound));
        } else {
            let scheduled = scheduled(placement);
            if scheduled != ("False", "InvalidResourceSelectors") {
                found.push(format!("selects in no namespace, and is {scheduled:?}"));
            }
        }
        found
    }

    /// Compares the clusters that are bound with those that may be, and those that must be.
    fn picked(&self, placement: &Value, bound: &BTreeSet<String>) -> Vec<String> {
        let mut found = Vec::new();
        let policy = &placement["spec"]["policy"];
        let fleet = model::fleet(self.snapshot);
        for cluster in bound.iter().filter(|cluster| !fleet.contains_key(*cluster)) {
            found.push(format!("{cluster} has left, and is bound"));
        }
        if policy["placementType"] == "PickFixed" {
            let named = wanted(policy);
            let named = named.filter(|name| fleet.contains_key(*name));
            let named: BTreeSet<_> = named.map(str::to_owned).collect();
            if *bound != named {
                found.push(format!("is bound to {bound:?} instead of {named:?}"));
            }
            return found;
        }
        for cluster in bound {
            let history = self.history;
            let may = history.may_have_picked(policy, cluster)
                || history.may_keep(policy, cluster, self.app);
            if !may {
                found.push(format!("is bound to {cluster}, which the policy forbids"));
            }
        }
        for cluster in self.history.must_keep(self.app).difference(bound) {
            found.push(format!("{cluster} had it, and is not bound any more"));
        }
        let number = model::number(policy).unwrap_or(fleet.len());
        if bound.len() > number {
            found.push(format!("is bound to {bound:?}, which are over {number}"));
        }
        if bound.len() < number {
            found.extend(missed(policy, &fleet, bound));
        }
        found
    }

    /// Compares the Works with the bindings.
    fn works(&self, bound: &BTreeSet<String>) -> Vec<String> {
        let works = self.snapshot.working(self.app);
        let placement = self.snapshot.placement(self.app);
        // Without a snapshot there is nothing to be given.
        let is_snapshotted = Snapshot::of(&self.snapshot.snapshots, self.app)
            .next()
            .is_some();
        if placement.is_some() && !is_snapshotted || works == *bound {
            return Vec::new();
        }
        vec![format!("has Works in {works:?}, and is bound to {bound:?}")]
    }

    /// Compares the maps in members with those that are selected.
    fn copies(&self, bound: &BTreeSet<String>, selected: Option<&Maps>) -> Vec<String> {
        let mut found = Vec::new();
        let placement = self.snapshot.placement(self.app);
        let only_reports = placement.is_some_and(|one| model::only_reports(&one["spec"]));
        for cluster in model::fleet(self.snapshot).into_keys() {
            let content = &self.snapshot.members[&cluster];
            let is_kept = self
                .history
                .kept
                .contains(&(cluster.clone(), self.app.to_owned()));
            let is_bound = bound.contains(&cluster);
            if is_kept && !is_bound || only_reports && is_bound {
                continue;
            }
            let must = selected.filter(|_| is_bound);
            let is = content.apps.get(self.app);
            if is != must {
                found.push(format!("{cluster} holds {is:?} instead of {must:?}"));
            }
            if content.owners.contains(self.app) != is_bound {
                found.push(format!("{cluster} should have an AppliedWork: {is_bound}"));
            }
        }
        found
    }

    fn snapshots(&self) -> Vec<String> {
        let mut found = Vec::new();
        for (what, objects) in [
            ("policies", &self.snapshot.policies),
            ("resources", &self.snapshot.snapshots),
        ] {
            let latest = "/metadata/labels/kubernetes-fleet.io~1is-latest-snapshot";
            let all: Vec<_> = Snapshot::of(objects, self.app).collect();
            let latest = all.iter().filter(|one| text(**one, latest) == "true");
            let latest = latest.count();
            if latest > 1 || (latest == 0 && !all.is_empty()) || all.len() > MOST_SNAPSHOTS {
                found.push(format!(
                    "has {} snapshots of {what}, {latest} of them the latest",
                    all.len()
                ));
            }
        }
        found
    }
}

/// Compares the status of a placement with its clusters.
pub(super) fn status_differences(placement: &Value, bound: &BTreeSet<String>) -> Vec<String> {
    let mut found = Vec::new();
    let policy = &placement["spec"]["policy"];
    let wanted = match model::number(policy) {
        Some(number) => number,
        None => wanted(policy).count(),
    };
    let is = scheduled(placement);
    let must = if bound.len() < wanted {
        ("False", "SchedulingPolicyUnfulfilled")
    } else {
        ("True", "SchedulingPolicyFulfilled")
    };
    if is != must {
        found.push(format!("is scheduled {is:?} instead of {must:?}"));
    }
    let mut types = vec!["Scheduled"];
    if !bound.is_empty() {
        types.extend(["RolloutStarted", "Overridden", "WorkSynchronized"]);
        let end: &[&str] = if model::only_reports(&placement["spec"]) {
            &["DiffReported"]
        } else {
            &["Applied", "Available"]
        };
        types.extend(end);
    }
    let said = items(placement, "/status/conditions");
    let said = said.map(|one| text(one, "/type").trim_start_matches("Cluster"));
    let said: Vec<_> = said
        .map(|kind| kind.trim_start_matches("ResourcePlacement"))
        .collect();
    if said != types {
        found.push(format!("tells of {said:?} instead of {types:?}"));
    }
    for condition in items(placement, "/status/conditions").skip(1) {
        if condition["status"] != "True" {
            found.push(format!("says {condition}"));
        }
    }
    let generation = &placement["metadata"]["generation"];
    for condition in items(placement, "/status/conditions") {
        if condition["observedGeneration"] != *generation {
            found.push(format!("says {condition} at generation {generation}"));
        }
    }
    found.extend(cluster_differences(placement, bound));
    found
}

fn scheduled(placement: &Value) -> (&str, &str) {
    let mut conditions = items(placement, "/status/conditions");
    let scheduled = conditions.find(|one| text(*one, "/type").ends_with("PlacementScheduled"));
    (text(scheduled, "/status"), text(scheduled, "/reason"))
}

/// Compares the clusters in the status of a placement with those to which it is bound.
fn cluster_differences(placement: &Value, bound: &BTreeSet<String>) -> Vec<String> {
    let mut found = Vec::new();
    let named = items(placement, "/status/placementStatuses");
    let named = named.filter(|one| !text(*one, "/clusterName").is_empty());
    let named: Vec<_> = named.collect();
    for one in &named {
        for condition in items(one, "/conditions") {
            if condition["status"] != "True" {
                let cluster = text(*one, "/clusterName");
                found.push(format!("says of {cluster} {condition}"));
            }
        }
    }
    let named = named
        .iter()
        .map(|one| text(*one, "/clusterName").to_owned());
    let named: BTreeSet<_> = named.collect();
    if named != *bound {
        found.push(format!("tells of {named:?}, and is bound to {bound:?}"));
    }
    found
}

/// Returns the clusters that a policy names.
pub(super) fn wanted(policy: &Value) -> impl Iterator<Item = &str> {
    items(policy, "/clusterNames").filter_map(Value::as_str)
}

/// Returns the clusters that could be picked and are not, though the policy asks for more.
fn missed(
    policy: &Value,
    fleet: &BTreeMap<String, Place>,
    bound: &BTreeSet<String>,
) -> Vec<String> {
    let taken: Vec<_> = bound.iter().filter_map(|name| fleet.get(name)).collect();
    let missed = fleet.iter().filter(|(name, place)| {
        !bound.contains(*name)
            && place.fits(policy)
            && !model::is_crowded(policy, fleet, &taken, &place.region)
    });
    missed
        .map(|(name, _)| format!("{name} is not bound"))
        .collect()
}
