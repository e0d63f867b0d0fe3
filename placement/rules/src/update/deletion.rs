//! The last stage of a run: the placement leaves the clusters that are no longer picked.

use fleet_api::update::{ClusterUpdate, StageStatus};
use objects::Metadata;

use super::cluster::is_done;
use super::messages;
use super::picked::Picked;
use super::step::Step;
use crate::condition::put;
use crate::rollout::delete;

impl Step<'_, '_> {
    /// Takes the next step of the last stage, and ends the run with it.
    pub(super) fn delete(&mut self, picked: &Picked<'_>) {
        let mut stage = self.status.deletion_stage.take().unwrap_or_default();
        self.start_stage(&mut stage);
        for binding in &picked.leaving {
            if !binding.metadata.is_deleting() {
                self.plan.bindings.push(delete(binding));
            }
        }
        self.observe(&mut stage, picked);
        if picked.leaving.is_empty() {
            self.end_stage(&mut stage);
            let dated = self.dated();
            put(
                &mut self.status.conditions,
                messages::run_succeeded(),
                dated,
            );
        } else {
            let late = self.late(stage.clusters.iter());
            let said = if late.clusters.is_empty() {
                messages::run_progressing()
            } else {
                let why = format!(
                    "{} has not let go of what is placed there",
                    late.clusters.join(", ")
                );
                messages::run_stuck(&late.clusters, &stage.stage_name, &why)
            };
            self.say(said);
        }
        self.status.deletion_stage = Some(stage);
    }

    /// Takes the next step towards the standstill of the last stage.
    pub(super) fn stop_deletion(&mut self, picked: &Picked<'_>) {
        let mut stage = self.status.deletion_stage.take().unwrap_or_default();
        self.observe(&mut stage, picked);
        self.rest(&mut stage);
        self.status.deletion_stage = Some(stage);
    }

    /// Says which clusters are being left, and which are.
    fn observe(&self, stage: &mut StageStatus, picked: &Picked<'_>) {
        let open = stage.clusters.iter_mut().filter(|one| !is_done(one));
        for cluster in open {
            let ClusterUpdate {
                cluster_name,
                conditions,
                ..
            } = cluster;
            let leaving = picked.leaving.iter();
            let mut bindings = leaving.filter(|one| one.spec.target_cluster == *cluster_name);
            let is_left = bindings.clone().next().is_none();
            if bindings.all(|one| one.metadata.is_deleting()) {
                put(conditions, [messages::cluster_started()], self.dated());
            }
            if is_left {
                put(conditions, [messages::cluster_succeeded()], self.dated());
            }
        }
    }
}
