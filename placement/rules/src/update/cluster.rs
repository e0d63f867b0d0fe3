//! The update of one cluster.

use fleet_api::Binding;
use fleet_api::binding::BindingState;
use fleet_api::conditions::{AVAILABLE, DIFF_REPORTED, ROLLOUT_STARTED, STARTED, SUCCEEDED};
use fleet_api::names::OVERRIDES_DIGEST;
use fleet_api::update::ClusterUpdate;
use jiff::{SignedDuration, Timestamp};
use objects::Metadata;
use objects::condition::{TRUE, find};

use super::facts::is;
use super::messages;
use super::step::Step;
use crate::condition::{condition, is_true, put};
use crate::overrides::Applicable;
use crate::rollout::{Latest, give, is_rendered, write_conditions};
use crate::select::show;

/// The time after which a cluster that does not become ready holds up its run.
const STUCK_AFTER: SignedDuration = SignedDuration::from_mins(5);

/// Whether a step may give a cluster something.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Turn {
    /// It is its turn.
    Come,
    /// The content that it has got already may still become ready.
    Over,
}

/// The clusters that hold up a run, and why the first does.
#[derive(Debug, Default)]
pub(super) struct Late<'c> {
    pub(super) clusters: Vec<&'c str>,
    pub(super) why: String,
}

/// Returns `true` if a cluster has the version of the run, and it does its work there.
pub(super) fn is_done(cluster: &ClusterUpdate) -> bool {
    is(&cluster.conditions, SUCCEEDED, TRUE)
}

/// Returns `true` if a cluster is being updated.
pub(super) fn is_under_way(cluster: &ClusterUpdate) -> bool {
    is(&cluster.conditions, STARTED, TRUE) && !is_done(cluster)
}

impl Step<'_, '_> {
    /// Takes the next step in a cluster.
    ///
    /// # Errors
    /// Fails with a message if somebody else has given it something else meanwhile.
    pub(super) fn update(
        &mut self,
        cluster: &mut ClusterUpdate,
        binding: &Binding,
        turn: Turn,
    ) -> Result<(), String> {
        let is_started = is(&cluster.conditions, STARTED, TRUE);
        let dated = self.dated();
        let is_given = self.is_given(cluster, binding);
        if is_started && !is_given {
            let message = format!(
                "the binding of the updating cluster `{}` is not up-to-date with the desired status, please check the \
                 status of binding `{}` and see if there is a concurrent updateRun referencing the same placement and \
                 updating the same cluster",
                cluster.cluster_name,
                binding.metadata.name()
            );
            let failed = messages::cluster_failed(&message);
            put(&mut cluster.conditions, [failed], dated);
            return Err(message);
        }
        if !is_started {
            let needs_more = !is_given || !self.has_digest(cluster, binding);
            match turn {
                Turn::Come if needs_more => {
                    self.give(cluster, binding);
                    return Ok(());
                }
                // A program that died had begun, and nobody noted it.
                Turn::Over if needs_more || !has_started(binding) => return Ok(()),
                Turn::Come | Turn::Over => {}
            }
            put(
                &mut cluster.conditions,
                [messages::cluster_started()],
                dated,
            );
        }
        if has_started(binding) {
            if is_ready(binding) {
                put(
                    &mut cluster.conditions,
                    [messages::cluster_succeeded()],
                    dated,
                );
            }
        } else {
            self.start(binding);
        }
        Ok(())
    }

    /// Returns `true` if a binding has the version of the run.
    fn is_given(&self, cluster: &ClusterUpdate, binding: &Binding) -> bool {
        let spec = &binding.spec;
        spec.state == BindingState::Bound
            && spec.resource_snapshot_name == self.snapshot()
            && spec.cluster_resource_override_snapshots
                == cluster.cluster_resource_override_snapshots
            && spec.resource_override_snapshots == cluster.resource_override_snapshots
            && spec.apply_strategy == self.status.apply_strategy
    }

    /// Returns `true` if the overrides have the effect that they had when they were given.
    fn has_digest(&self, cluster: &ClusterUpdate, binding: &Binding) -> bool {
        let digest = self.digest(cluster);
        binding.metadata.annotation(OVERRIDES_DIGEST) == digest.as_deref()
    }

    fn digest(&self, cluster: &ClusterUpdate) -> Option<String> {
        let overrides = self.facts.overrides;
        overrides.digest_for(&cluster.cluster_name, &applicable(cluster))
    }

    /// Gives a cluster the version of the run.
    fn give(&mut self, cluster: &ClusterUpdate, binding: &Binding) {
        let strategy = self.status.apply_strategy.clone().unwrap_or_default();
        let (snapshot, overrides) = (self.snapshot(), applicable(cluster));
        let latest = Latest {
            snapshot: &snapshot,
            overrides: Some(&overrides),
            digest: self.digest(cluster),
        };
        self.plan
            .bindings
            .push(give(binding, Some(latest), &strategy));
    }

    /// Says on a binding that its Works may have the version that it was given.
    fn start(&mut self, binding: &Binding) {
        let message = format!(
            "Detected the new changes on the resources and started the rollout process, resourceSnapshotIndex: {}, \
             updateRun: {}",
            self.status.resource_snapshot_index_used,
            self.facts.run.metadata.name()
        );
        let mut started = condition((ROLLOUT_STARTED, TRUE), "RolloutStarted", &message);
        started.observed_generation = binding.metadata.generation;
        let write = write_conditions(binding, vec![started], self.facts.now);
        self.plan.bindings.extend(write);
    }

    /// Returns those of a stage that have not become ready for long, and looks at the others again when it is time.
    pub(super) fn late<'c>(
        &mut self,
        clusters: impl Iterator<Item = &'c ClusterUpdate>,
    ) -> Late<'c> {
        let mut late = Late::default();
        for cluster in clusters.filter(|one| is_under_way(one)) {
            let started = find(&cluster.conditions, STARTED);
            let since = started.and_then(|one| one.last_transition_time.as_ref());
            let since = since.map_or(self.facts.now, |time| time.0);
            let at = since.saturating_add(STUCK_AFTER).unwrap_or(Timestamp::MAX);
            if at > self.facts.now {
                self.look_at(at);
                continue;
            }
            if late.clusters.is_empty() {
                late.why = self.why(&cluster.cluster_name);
            }
            late.clusters.push(&cluster.cluster_name);
        }
        late
    }

    /// Returns why a cluster does not become ready.
    fn why(&self, cluster: &str) -> String {
        let mut bindings = self.facts.bindings.iter();
        let binding = bindings.find(|one| one.spec.target_cluster == cluster);
        let status = binding.and_then(|binding| binding.status.as_ref());
        let failed = status.and_then(|status| status.failed_placements.first());
        match failed {
            Some(failed) => {
                let object = show(&failed.identifier);
                let said = &failed.condition;
                format!(
                    "{object} in {cluster} is not {}: {}: {}",
                    said.type_, said.reason, said.message
                )
            }
            None => format!("{cluster} does not say which object is not available"),
        }
    }
}

fn applicable(cluster: &ClusterUpdate) -> Applicable {
    Applicable {
        cluster_scoped: cluster.cluster_resource_override_snapshots.clone(),
        namespaced: cluster.resource_override_snapshots.clone(),
    }
}

fn has_started(binding: &Binding) -> bool {
    is_true(binding, ROLLOUT_STARTED)
}

fn is_ready(binding: &Binding) -> bool {
    is_rendered(binding) && (is_true(binding, AVAILABLE) || is_true(binding, DIFF_REPORTED))
}
