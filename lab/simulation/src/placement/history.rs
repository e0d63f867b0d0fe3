//! The past of a fleet, as far as its settled state may depend on it.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::Value;

use super::model::{self, Place};
use super::objects::{APPS, OF_NAMESPACE, app};
use super::snapshot::{Maps, Snapshot};
use super::step::{Change, Step};
use crate::harness::clusters;
use crate::harness::value::{is_deleting, items};

/// The past, for the most part since the fleet settled last.
#[derive(Debug, Default)]
pub(crate) struct History {
    /// The clusters that each placement had when the fleet settled, unless the placement has ended since.
    held: BTreeMap<String, BTreeSet<String>>,
    /// The specs that each placement has had.
    specs: BTreeMap<String, Vec<Value>>,
    /// The places where each cluster has been.
    places: BTreeMap<String, BTreeSet<Place>>,
    /// The clusters that were not in the fleet all the time.
    away: BTreeSet<String>,
    /// The clusters and applications whose binding or Work somebody has deleted.
    disturbed: BTreeSet<(String, String)>,
    /// The maps of each application in the clusters when the fleet settled.
    content: BTreeMap<(String, String), Maps>,
    /// The clusters and applications of which somebody has changed something there.
    drifted: BTreeSet<(String, String)>,
    /// The applications that had no namespace on the hub all the time.
    emptied: BTreeSet<String>,
    /// The clusters with the applications that they kept when they left: nobody owns these until they are placed again.
    pub(crate) kept: BTreeSet<(String, String)>,
    /// The clusters that have ever been out of the fleet: they may have kept something.
    pub(crate) left: BTreeSet<String>,
    /// The maps in clusters that are not in the fleet, by application and name.
    outside: BTreeMap<String, BTreeSet<(String, String)>>,
}

impl History {
    /// Notes the changes since the last look. Returns those that may never happen.
    pub(crate) fn observe(&mut self, step: Option<&Step>, snapshot: &Snapshot) -> Vec<String> {
        if let Some(change) = step.and_then(Step::change) {
            self.note(change);
        }
        for app in (0..APPS).map(app) {
            self.observe_app(&app, snapshot);
        }
        let mut found = Vec::new();
        for cluster in clusters::all() {
            self.observe_cluster(&cluster, snapshot);
            found.extend(self.observe_outside(&cluster, snapshot));
        }
        found.extend(self.lost(snapshot));
        found
    }

    fn note(&mut self, change: &Change) {
        match *change {
            Change::DeleteBinding { cluster, app } | Change::DeleteWork { cluster, app } => {
                self.disturbed
                    .insert((clusters::name(cluster), self::app(app)));
            }
            Change::Drift {
                cluster,
                app,
                map,
                deletes,
            } => {
                let (cluster, app) = (clusters::name(cluster), self::app(app));
                if deletes && let Some(maps) = self.outside.get_mut(&cluster) {
                    maps.remove(&(app.clone(), format!("map-{map}")));
                }
                self.drifted.insert((cluster, app));
            }
            Change::MemberNamespace {
                cluster,
                is_there: false,
            } => {
                if let Some(maps) = self.outside.get_mut(&clusters::name(cluster)) {
                    maps.retain(|(app, _)| *app != self::app(OF_NAMESPACE));
                }
            }
            _ => {}
        }
    }

    fn observe_app(&mut self, app: &str, snapshot: &Snapshot) {
        if !snapshot.apps.contains_key(app) {
            self.emptied.insert(app.to_owned());
        }
        let Some(placement) = snapshot.placement(app) else {
            self.held.remove(app);
            self.specs.remove(app);
            return;
        };
        let specs = self.specs.entry(app.to_owned()).or_default();
        if specs.last() != Some(&placement["spec"]) {
            specs.push(placement["spec"].clone());
        }
    }

    fn observe_cluster(&mut self, cluster: &str, snapshot: &Snapshot) {
        if let Some(member) = snapshot.cluster(cluster) {
            let places = self.places.entry(cluster.to_owned()).or_default();
            places.insert(Place::of(member));
        } else {
            self.away.insert(cluster.to_owned());
            self.left.insert(cluster.to_owned());
        }
        for app in (0..APPS).map(app) {
            let key = (cluster.to_owned(), app.clone());
            let is_there = snapshot.members[cluster].apps.contains_key(&app);
            let work = snapshot.works.get(&key).filter(|work| !is_deleting(work));
            let is_owned =
                work.is_some_and(|work| items(work, "/metadata/finalizers").next().is_some());
            if snapshot.cluster(cluster).is_none() && is_there {
                self.kept.insert(key);
            } else if snapshot.cluster(cluster).is_some() && is_owned {
                self.kept.remove(&key);
            }
        }
    }

    /// Checks that a cluster which is no longer in the fleet keeps its maps.
    fn observe_outside(&mut self, cluster: &str, snapshot: &Snapshot) -> Option<String> {
        if snapshot.clusters.contains_key(cluster) {
            self.outside.remove(cluster);
            return None;
        }
        let content = &snapshot.members[cluster].apps;
        let maps = content
            .iter()
            .flat_map(|(app, maps)| maps.keys().map(|map| (app.clone(), map.clone())));
        let maps: BTreeSet<_> = maps.collect();
        let before = self.outside.insert(cluster.to_owned(), maps.clone());
        let lost: Vec<_> = before?.difference(&maps).cloned().collect();
        (!lost.is_empty())
            .then(|| format!("{cluster}, which has left the fleet, has lost {lost:?}"))
    }

    /// Returns the losses of clusters for which nobody asked: health and taints take nothing away. Where a placement
    /// only reports, nothing changes.
    fn lost(&self, snapshot: &Snapshot) -> Vec<String> {
        let mut lost = Vec::new();
        for (app, held) in &self.held {
            let [spec] = &*self.specs[app] else {
                continue;
            };
            let only_reports = model::only_reports(spec);
            for cluster in held.iter().filter(|cluster| self.is_calm(cluster, app)) {
                let is = snapshot.members[cluster].apps.get(app);
                let key = (cluster.clone(), app.clone());
                let was = self.content.get(&key);
                if only_reports && !self.drifted.contains(&key) && is != was {
                    lost.push(format!(
                        "{cluster} holds {is:?} of {app} instead of {was:?}"
                    ));
                } else if !only_reports && !self.emptied.contains(app) && is.is_none() {
                    lost.push(format!("{cluster} has lost {app}"));
                }
            }
        }
        lost
    }

    fn is_calm(&self, cluster: &str, app: &str) -> bool {
        let key = (cluster.to_owned(), app.to_owned());
        !self.away.contains(cluster) && !self.disturbed.contains(&key)
    }

    /// Begins anew with a settled fleet.
    pub(crate) fn settle(&mut self, snapshot: &Snapshot) {
        let placements = snapshot.placements.iter();
        *self = Self {
            held: placements
                .clone()
                .map(|(app, _)| (app.clone(), snapshot.bound(app)))
                .collect(),
            specs: placements
                .map(|(app, placement)| (app.clone(), vec![placement["spec"].clone()]))
                .collect(),
            content: content(snapshot),
            kept: std::mem::take(&mut self.kept),
            left: std::mem::take(&mut self.left),
            outside: std::mem::take(&mut self.outside),
            ..Self::default()
        };
        // The state at the beginning has no history.
        self.observe(None, snapshot);
    }

    /// Returns `true` if a policy may have picked a cluster for a place where it has been.
    pub(crate) fn may_have_picked(&self, policy: &Value, cluster: &str) -> bool {
        let places = self.places.get(cluster).into_iter().flatten();
        places.clone().any(|place| place.fits(policy))
    }

    /// Returns `true` if a cluster may still have a placement, since it had it when the fleet settled.
    pub(crate) fn may_keep(&self, policy: &Value, cluster: &str, app: &str) -> bool {
        let held = self
            .held
            .get(app)
            .is_some_and(|held| held.contains(cluster));
        let mut policies = self.policies(app);
        let before = policies.next().unwrap_or_default();
        held && before == model::without_number(policy)
    }

    /// Returns the clusters that must still have a placement: their policy has not changed, and always asked for as many.
    pub(crate) fn must_keep(&self, app: &str) -> BTreeSet<String> {
        let mut held = self.held.get(app).cloned().unwrap_or_default();
        let specs = &self.specs[app];
        let numbers = specs
            .iter()
            .filter_map(|spec| model::number(&spec["policy"]));
        let is_shrunk = numbers.min().is_some_and(|fewest| fewest < held.len());
        let policies: Vec<_> = self.policies(app).collect();
        if is_shrunk || policies.iter().any(|policy| *policy != policies[0]) {
            return BTreeSet::new();
        }
        held.retain(|cluster| self.is_calm(cluster, app));
        held
    }

    fn policies(&self, app: &str) -> impl Iterator<Item = Value> {
        let specs = self.specs.get(app).into_iter().flatten();
        specs.map(|spec| model::without_number(&spec["policy"]))
    }
}

/// Returns the maps of each application in each cluster.
fn content(snapshot: &Snapshot) -> BTreeMap<(String, String), Maps> {
    let mut content = BTreeMap::new();
    for (cluster, member) in &snapshot.members {
        for (app, maps) in &member.apps {
            content.insert((cluster.clone(), app.clone()), maps.clone());
        }
    }
    content
}
