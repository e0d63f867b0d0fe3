//! The copies that a pause holds: as long as it lasts, none of them may go.

use std::collections::BTreeSet;
use std::time::Duration;

use serde_json::Value;
use tokio::time::Instant;

use super::model;
use super::objects::Template;
use super::snapshot::Snapshot;
use super::step::{Change, Step};
use crate::harness::clusters;
use crate::harness::value::{is_deleting, text};

/// The time after which every program knows of a pause: no fault lasts longer, and a watch that failed
/// starts again within 5 s.
const KNOWN_AFTER: Duration = Duration::from_mins(1);

/// A copy of a template in a cluster, with all that must stay the same for it to be held.
type Copy = (String, Template, [String; 4]);

/// The copies that were held after the last step.
#[derive(Debug, Default)]
pub(crate) struct Held {
    /// The copies that look held, since when.
    since: Vec<(Copy, Instant)>,
}

impl Held {
    /// Notes which copies are held now. Returns those that should have been, and are gone.
    pub(crate) fn observe(&mut self, step: Option<&Step>, snapshot: &Snapshot) -> Vec<String> {
        if let Some(change) = step.and_then(Step::change) {
            self.since
                .retain(|((cluster, template, _), _)| !disturbs(change, cluster, *template));
        }
        let mut gone = Vec::new();
        let (paused, now) = (paused(snapshot), Instant::now());
        self.since.retain(|(copy, since)| {
            let (cluster, template, _) = copy;
            let still = paused.contains(copy);
            let is_there = snapshot.copies.contains_key(&(cluster.clone(), *template));
            if still && !is_there && since.elapsed() > KNOWN_AFTER {
                gone.push(format!("{cluster} has lost {template:?} during a pause"));
            }
            still && is_there
        });
        for copy in paused {
            let is_there = snapshot.copies.contains_key(&(copy.0.clone(), copy.1));
            if is_there && !self.since.iter().any(|(known, _)| *known == copy) {
                self.since.push((copy, now));
            }
        }
        gone
    }
}

/// Returns `true` if a change may take a copy away in spite of a pause.
fn disturbs(change: &Change, cluster: &str, of: Template) -> bool {
    match change {
        Change::ChangeCopy {
            cluster: nth,
            template,
            ..
        }
        | Change::DeleteWork {
            cluster: nth,
            template,
        } => *template == of && clusters::name(*nth) == cluster,
        Change::DeleteBinding { template } | Change::DeleteTemplate { template } => *template == of,
        Change::Leave { cluster: nth } => clusters::name(*nth) == cluster,
        _ => false,
    }
}

/// Returns the copies, there or not, that a pause of everything holds.
fn paused(snapshot: &Snapshot) -> BTreeSet<Copy> {
    let mut paused = BTreeSet::new();
    for (template, object) in &snapshot.templates {
        let (Some(policy), Some(binding)) = (
            model::claimed(snapshot, object),
            snapshot.bindings.get(template),
        ) else {
            continue;
        };
        let owner = text(binding, "/metadata/ownerReferences/0/uid");
        let is_whole = [policy, binding]
            .into_iter()
            .all(|of| of["spec"]["suspension"]["dispatching"] == true)
            && ![object, policy, binding].into_iter().any(is_deleting)
            && owner == text(object, "/metadata/uid");
        for (name, cluster) in snapshot.clusters.iter().filter(|_| is_whole) {
            let work = snapshot.works.get(&(name.clone(), *template));
            // Without a Work the copy counts, too: neither may have gone.
            let is_held = work.is_none_or(|work| {
                work["spec"]["suspendDispatching"] == true && !is_deleting(work)
            });
            if is_held {
                let ids = ids([cluster, object, policy, binding]);
                paused.insert((name.clone(), *template, ids));
            }
        }
    }
    paused
}

fn ids(objects: [&Value; 4]) -> [String; 4] {
    objects.map(|object| text(object, "/metadata/uid").to_owned())
}
