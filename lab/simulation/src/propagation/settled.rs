//! The comparison of a settled fleet with the model.

use std::collections::BTreeSet;

use jiff::{SignedDuration, Timestamp};
use serde_json::{Map, Value};

use super::history::History;
use super::model;
use super::objects::Template;
use super::schedule;
use super::snapshot::Snapshot;
use crate::clock;
use crate::harness::value::{condition, is_deleting, items, name, text};

/// Returns every difference between the objects and the model.
pub(crate) fn differences(snapshot: &Snapshot, history: &History) -> Vec<String> {
    let mut found = Vec::new();
    for policy in snapshot
        .policies
        .iter()
        .filter(|policy| is_deleting(policy))
    {
        found.push(format!("policy {} is still there", name(policy)));
    }
    for (name, cluster) in &snapshot.clusters {
        if !snapshot.spaces.contains(name) {
            found.push(format!("{name} lacks the namespace"));
        }
        if items(cluster, "/spec/taints").any(may_be_tolerated) {
            found.push(format!("a toleration of the taint of {name} may end yet"));
        }
    }
    for template in Template::ALL {
        let check = Check {
            snapshot,
            history,
            template,
        };
        let differences = check.differences();
        found.extend(
            differences
                .into_iter()
                .map(|one| format!("{template:?}: {one}")),
        );
    }
    found
}

/// Returns `true` while the toleration of a taint for some seconds may last.
fn may_be_tolerated(taint: &Value) -> bool {
    let added = text(taint, "/timeAdded").parse::<Timestamp>();
    let longest = SignedDuration::from_secs(u8::MAX.into());
    added.is_ok_and(|added| clock::now().duration_since(added) < longest)
}

/// The check of one template and all that became of it.
struct Check<'a> {
    snapshot: &'a Snapshot,
    history: &'a History,
    template: Template,
}

impl Check<'_> {
    fn differences(&self) -> Vec<String> {
        let (snapshot, mut found) = (self.snapshot, Vec::new());
        let binding = snapshot.bindings.get(&self.template);
        let Some(template) = snapshot.templates.get(&self.template) else {
            if binding.is_some() {
                found.push("a binding without a template".to_owned());
            }
            found.extend(self.superfluous(&BTreeSet::new()));
            found.extend(self.gone_clusters(&BTreeSet::new()));
            return found;
        };
        let candidates = model::candidates(snapshot, self.template);
        let Some(policy) = model::claimed(snapshot, template) else {
            if !candidates.is_empty() || model::is_claimed(template) {
                found.push("unclaimed, or claimed by a policy that is gone".to_owned());
            }
            found.extend(self.unclaimed(binding));
            return found;
        };
        if !candidates.contains(&policy) && !model::is_watched(snapshot, self.template) {
            return found;
        }
        if !candidates.contains(&policy) {
            found.push(format!(
                "claimed by {}, which does not select it",
                name(policy)
            ));
        }
        for other in candidates
            .iter()
            .filter(|other| model::preempts(other, policy))
        {
            found.push(format!("{} does not preempt {}", name(other), name(policy)));
        }
        match binding {
            // It waits for an edit, or was unbound by hand and forgotten.
            None if model::is_lazy(policy) => {
                let need = model::need(snapshot, self.template);
                if !need.clusters.is_empty() && !need.is_frozen {
                    found.push("no binding, though the Deployment needs it".to_owned());
                }
                if !model::pauses(&policy["spec"]["suspension"]) {
                    found.extend(self.superfluous(&BTreeSet::new()));
                }
            }
            None => found.push("no binding".to_owned()),
            // One that was merely attached is no policy's until an edit activates it.
            Some(binding) if model::is_lazy(policy) && binding["spec"]["placement"].is_null() => {
                found.extend(self.unclaimed(Some(binding)));
            }
            Some(binding) => found.extend(self.claimed(policy, binding)),
        }
        found
    }

    /// Compares a template without a policy: one to which the Deployment refers is where that needs it,
    /// and all else stays as it was, Works of clusters that leave included.
    fn unclaimed(&self, binding: Option<&Value>) -> Vec<String> {
        let need = model::need(self.snapshot, self.template);
        let is_frozen = need.is_frozen || need.clusters.is_empty();
        match binding {
            None if !need.clusters.is_empty() => {
                vec![format!(
                    "no binding, though it is needed in {:?}",
                    need.clusters
                )]
            }
            Some(binding) if !is_frozen => self.dispatched(binding, &binding["spec"]["suspension"]),
            _ => self.works_match_members(),
        }
    }

    /// Returns the Works of clusters that have left, and that are not `wanted`.
    fn gone_clusters(&self, wanted: &BTreeSet<String>) -> Vec<String> {
        let left = self.snapshot.works.keys().filter(|(cluster, template)| {
            *template == self.template
                && !self.snapshot.clusters.contains_key(cluster)
                && !wanted.contains(cluster)
        });
        left.map(|(cluster, _)| format!("a Work of {cluster}, which has left"))
            .collect()
    }

    /// Returns the Works and copies in clusters other than `wanted`.
    fn superfluous(&self, wanted: &BTreeSet<String>) -> Vec<String> {
        let mut found = Vec::new();
        for cluster in self
            .snapshot
            .clusters
            .keys()
            .filter(|name| !wanted.contains(*name))
        {
            let key = (cluster.clone(), self.template);
            for (what, is_there) in [
                ("Work", self.snapshot.works.contains_key(&key)),
                ("copy", self.snapshot.copies.contains_key(&key)),
            ] {
                if is_there {
                    found.push(format!("a {what} in {cluster}, which should have none"));
                }
            }
        }
        found
    }

    /// Compares the copies of each Work that is not suspended with it.
    fn works_match_members(&self) -> Vec<String> {
        let (snapshot, mut found) = (self.snapshot, Vec::new());
        for cluster in snapshot.clusters.keys() {
            let key = (cluster.clone(), self.template);
            let (work, copy) = (snapshot.works.get(&key), snapshot.copies.get(&key));
            let Some(work) = work else {
                if copy.is_some() {
                    found.push(format!("a copy in {cluster} without a Work"));
                }
                continue;
            };
            let manifest = model::essence(self.template, manifest(work));
            let copy = copy.map(|copy| model::essence(self.template, copy));
            if work["spec"]["suspendDispatching"] != true && copy.as_ref() != Some(&manifest) {
                found.push(format!("{cluster} holds {copy:?} instead of {manifest}"));
            }
        }
        found
    }

    /// Compares everything with the policy that has the template.
    fn claimed(&self, policy: &Value, binding: &Value) -> Vec<String> {
        let (snapshot, mut found) = (self.snapshot, Vec::new());
        let spec = &policy["spec"];
        if model::claimed(snapshot, binding) != Some(policy) {
            found.push("the binding is another policy's".to_owned());
        }
        let followed: &[&str] = if model::is_lazy(policy) {
            &["suspension"]
        } else {
            &["suspension", "placement", "failover", "propagateDeps"]
        };
        for what in followed {
            let (is, must) = (&binding["spec"][what], &spec[what]);
            if is != must && !(is_unset(is) && is_unset(must)) {
                found.push(format!("the binding's {what} is {is} instead of {must}"));
            }
        }
        let source = &snapshot.templates[&self.template]["spec"]["replicas"];
        let is_as_source = binding["spec"]["replicas"].as_u64() == source.as_u64();
        // An edit that comes with another Lazy policy does not count as one, and dependencies are not scheduled.
        if !is_as_source && !model::is_lazy(policy) {
            found.push(format!("the binding has not {source} replicas"));
        }
        found.extend(schedule::differences(snapshot, self.history, binding));
        found.extend(self.dispatched(binding, &spec["suspension"]));
        found
    }

    /// Compares the Works and copies of a binding under this suspension with its clusters.
    fn dispatched(&self, binding: &Value, suspension: &Value) -> Vec<String> {
        let (snapshot, mut found) = (self.snapshot, Vec::new());
        let scheduled = schedule::targets(binding);
        let need = model::need(snapshot, self.template);
        let wanted: BTreeSet<String> = scheduled.keys().chain(&need.clusters).cloned().collect();
        if !model::pauses(suspension) && !need.is_frozen {
            // Nobody ends the eviction of a template that no policy has any more.
            let leaving = items(binding, "/spec/gracefulEvictionTasks");
            let leaving = leaving.map(|task| text(task, "/fromCluster").to_owned());
            let may_stay = wanted.iter().cloned().chain(leaving).collect();
            found.extend(self.superfluous(&may_stay));
            // A pause holds unwanted Works, and those of a cluster that has left until its namespace goes.
            if !snapshot.clusters.is_empty() {
                // Where nothing else fits, a workload stays scheduled to a cluster that has left.
                found.extend(self.gone_clusters(&may_stay));
            }
        }
        for cluster in wanted
            .iter()
            .filter(|name| snapshot.clusters.contains_key(*name))
        {
            let replicas = scheduled.get(cluster).copied();
            let is_paused = model::is_paused(suspension, cluster)
                || replicas.is_none() && model::is_paused(&need.suspension, cluster);
            found.extend(self.target(cluster, replicas.flatten(), is_paused));
        }
        found
    }

    /// Checks the Work and the copy of one cluster.
    fn target(&self, cluster: &str, replicas: Option<u64>, is_paused: bool) -> Vec<String> {
        let (snapshot, mut found) = (self.snapshot, Vec::new());
        let key = (cluster.to_owned(), self.template);
        let must = model::copy(snapshot, self.template, cluster, replicas);
        let Some(work) = snapshot.works.get(&key).filter(|work| !is_deleting(work)) else {
            return vec![format!("no Work in {cluster}")];
        };
        let is = model::essence(self.template, manifest(work));
        if is != must {
            found.push(format!("the Work in {cluster} has {is} instead of {must}"));
        }
        if (work["spec"]["suspendDispatching"] == true) != is_paused {
            found.push(format!(
                "the Work in {cluster} should be suspended: {is_paused}"
            ));
        }
        let copy = snapshot.copies.get(&key);
        let is = copy.map(|copy| model::essence(self.template, copy));
        if is_paused {
            let content = is.as_ref().map(|is| &is["content"]);
            let is_known = content.is_none_or(|content| self.history.had(self.template, content));
            if !is_known && !self.history.disturbed.contains(&key) {
                found.push(format!("{cluster}, paused, holds {is:?}, which never was"));
            }
        } else if is.as_ref() != Some(&must) {
            found.push(format!("{cluster} holds {is:?} instead of {must}"));
        }
        // A copy that somebody else has changed no longer tells that we applied it, once that report was lost.
        let is_told = copy.is_some() && !(is_paused && self.history.disturbed.contains(&key));
        if is_told && condition(work, "Applied") != "True" {
            found.push(format!(
                "the Work in {cluster} does not tell that it was applied"
            ));
        }
        let dispatching = condition(work, "Dispatching");
        if dispatching != if is_paused { "False" } else { "True" } {
            found.push(format!(
                "the Work in {cluster} is dispatching: {dispatching:?}"
            ));
        }
        let binding = &snapshot.bindings[&self.template];
        let mut reported = items(binding, "/status/aggregatedStatus");
        let is_reported =
            reported.any(|one| text(one, "/clusterName") == cluster && one["applied"] == true);
        if is_told && !is_reported {
            found.push(format!(
                "the binding does not tell that {cluster} has a copy"
            ));
        }
        found
    }
}

fn is_unset(field: &Value) -> bool {
    field == false || field.is_null() || field.as_object().is_some_and(Map::is_empty)
}

fn manifest(work: &Value) -> &Value {
    &work["spec"]["workload"]["manifests"][0]
}
