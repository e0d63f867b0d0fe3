//! The comparison of a settled fleet with the model.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::Value;

use super::history::History;
use super::model;
use super::objects::Template;
use super::world::{World, condition, is_deleting, items, name, text};

/// Returns every difference between the objects and the model.
pub(crate) fn differences(world: &World, history: &History) -> Vec<String> {
    let mut found = Vec::new();
    for policy in world.policies.iter().filter(|policy| is_deleting(policy)) {
        found.push(format!("policy {} is still there", name(policy)));
    }
    for cluster in world.clusters.keys() {
        if !world.spaces.contains(cluster) {
            found.push(format!("{cluster} lacks the namespace"));
        }
    }
    for template in Template::ALL {
        let check = Check {
            world,
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

/// The check of one template and all that became of it.
struct Check<'a> {
    world: &'a World,
    history: &'a History,
    template: Template,
}

impl Check<'_> {
    fn differences(&self) -> Vec<String> {
        let (world, mut found) = (self.world, Vec::new());
        let binding = world.bindings.get(&self.template);
        let Some(template) = world.templates.get(&self.template) else {
            if binding.is_some() {
                found.push("a binding without a template".to_owned());
            }
            found.extend(self.superfluous(&BTreeSet::new()));
            found.extend(self.gone_clusters());
            return found;
        };
        let candidates = model::candidates(world, self.template);
        let Some(policy) = model::claimed(world, template) else {
            if !candidates.is_empty() || model::is_claimed(template) {
                found.push("unclaimed, or claimed by a policy that is gone".to_owned());
            }
            // Everything stays as it was, Works of clusters that leave included, and nothing more is dispatched.
            found.extend(self.works_match_members());
            return found;
        };
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
                if !model::pauses(&policy["spec"]["suspension"]) {
                    found.extend(self.superfluous(&BTreeSet::new()));
                }
            }
            None => found.push("no binding".to_owned()),
            Some(binding) => found.extend(self.claimed(policy, binding)),
        }
        found
    }

    /// Returns what remains of clusters that have left.
    fn gone_clusters(&self) -> Vec<String> {
        let left = self.world.works.keys().filter(|(cluster, template)| {
            *template == self.template && !self.world.clusters.contains_key(cluster)
        });
        left.map(|(cluster, _)| format!("a Work of {cluster}, which has left"))
            .collect()
    }

    /// Returns the Works and copies in clusters other than `wanted`.
    fn superfluous(&self, wanted: &BTreeSet<String>) -> Vec<String> {
        let mut found = Vec::new();
        for cluster in self
            .world
            .clusters
            .keys()
            .filter(|name| !wanted.contains(*name))
        {
            let key = (cluster.clone(), self.template);
            for (what, is_there) in [
                ("Work", self.world.works.contains_key(&key)),
                ("copy", self.world.copies.contains_key(&key)),
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
        let (world, mut found) = (self.world, Vec::new());
        for cluster in world.clusters.keys() {
            let key = (cluster.clone(), self.template);
            let (work, copy) = (world.works.get(&key), world.copies.get(&key));
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
        let (world, mut found) = (self.world, Vec::new());
        let spec = &policy["spec"];
        if model::claimed(world, binding) != Some(policy) {
            found.push("the binding is another policy's".to_owned());
        }
        let followed: &[&str] = if model::is_lazy(policy) {
            &["suspension"]
        } else {
            &["suspension", "placement"]
        };
        for what in followed {
            let (is, must) = (&binding["spec"][what], &spec[what]);
            let is_none = |value: &Value| value.as_object().is_none_or(serde_json::Map::is_empty);
            if is != must && !(is_none(is) && is_none(must)) {
                found.push(format!("the binding's {what} is {is} instead of {must}"));
            }
        }
        let scheduled = replicas(binding);
        let source = &world.templates[&self.template]["spec"]["replicas"];
        let is_as_source = binding["spec"]["replicas"].as_u64() == source.as_u64();
        // An edit that comes with another Lazy policy does not count as one.
        if !is_as_source && !model::is_lazy(policy) {
            found.push(format!("the binding has not {source} replicas"));
        }
        found.extend(self.schedule(&binding["spec"], &scheduled));
        let wanted: BTreeSet<String> = scheduled.keys().cloned().collect();
        if !model::pauses(&spec["suspension"]) {
            // A pause holds what is no longer wanted, and of a cluster that has left until its namespace goes.
            if !world.clusters.is_empty() {
                found.extend(self.gone_clusters());
            }
            found.extend(self.superfluous(&wanted));
        }
        let joined = scheduled
            .iter()
            .filter(|(cluster, _)| world.clusters.contains_key(*cluster));
        for (cluster, replicas) in joined {
            let is_paused = model::is_paused(&spec["suspension"], cluster);
            found.extend(self.target(cluster, *replicas, is_paused));
        }
        found
    }

    /// Compares the clusters of a binding with what its placement asks for.
    fn schedule(&self, spec: &Value, scheduled: &BTreeMap<String, Option<u64>>) -> Vec<String> {
        let mut found = Vec::new();
        if self.world.clusters.is_empty() {
            // That is rather taken for a fault of the API than for the end of every workload.
            return found;
        }
        let replicas = spec["replicas"].as_u64();
        let allowed = model::allowed(self.world, &spec["placement"]);
        let is: BTreeSet<String> = scheduled.keys().cloned().collect();
        let weights = model::weights(&spec["placement"]).filter(|_| replicas.is_some());
        let Some(weights) = weights else {
            if is != allowed {
                found.push(format!("scheduled to {is:?} instead of {allowed:?}"));
            }
            if scheduled.values().any(|one| *one != replicas) {
                found.push(format!(
                    "scheduled as {scheduled:?} with {replicas:?} replicas"
                ));
            }
            return found;
        };
        let seats: BTreeMap<String, u64> = scheduled
            .iter()
            .map(|(cluster, replicas)| (cluster.clone(), replicas.unwrap_or_default()))
            .collect();
        // Divided replicas do not move because clusters join or are relabelled.
        if let Some(gone) = is
            .iter()
            .find(|name| !self.world.clusters.contains_key(*name))
        {
            found.push(format!("scheduled to {gone}, which has left"));
        }
        let is_complete = Some(seats.values().sum::<u64>()) == replicas;
        let is_impossible = seats.is_empty() && allowed.is_empty();
        if !is_complete && !is_impossible {
            found.push(format!("{seats:?} are not {replicas:?}, in {allowed:?}"));
        }
        let of_allowed = |default: u64| -> BTreeMap<String, u64> {
            let weight = |cluster: &String| weights.get(cluster).copied().unwrap_or(default);
            let weights = allowed.iter().map(|name| (name.clone(), weight(name)));
            weights.filter(|(_, weight)| *weight > 0).collect()
        };
        let mut wanted = of_allowed(0);
        if wanted.is_empty() {
            wanted = of_allowed(1);
        }
        if !self.history.clusters_changed && !model::is_divided(&seats, &wanted) {
            found.push(format!("{seats:?} are not divided by {wanted:?}"));
        }
        found
    }

    /// Checks the Work and the copy of one cluster.
    fn target(&self, cluster: &str, replicas: Option<u64>, is_paused: bool) -> Vec<String> {
        let (world, mut found) = (self.world, Vec::new());
        let key = (cluster.to_owned(), self.template);
        let must = model::copy(world, self.template, cluster, replicas);
        let Some(work) = world.works.get(&key).filter(|work| !is_deleting(work)) else {
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
        let copy = world.copies.get(&key);
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
        // What somebody else has changed no longer tells that we applied it, once that report was lost.
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
        let binding = &world.bindings[&self.template];
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

fn manifest(work: &Value) -> &Value {
    &work["spec"]["workload"]["manifests"][0]
}

/// Returns the clusters of a binding with the replicas of each.
fn replicas(binding: &Value) -> BTreeMap<String, Option<u64>> {
    let clusters = items(binding, "/spec/clusters");
    clusters
        .map(|target| (name_of(target), target["replicas"].as_u64()))
        .collect()
}

fn name_of(target: &Value) -> String {
    text(target, "/name").to_owned()
}
