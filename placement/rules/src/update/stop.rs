//! A run that is to stop: the version that clusters have got already becomes ready, and no other gets anything.

use fleet_api::conditions::SUCCEEDED;
use fleet_api::update::{StageConfig, StageStatus};
use objects::condition::TRUE;

use super::cluster::{Turn, is_done, is_under_way};
use super::facts::is;
use super::messages;
use super::picked::Picked;
use super::stages::concurrency;
use super::step::{Obstacle, Step};
use crate::condition::put;

impl Step<'_, '_> {
    /// Takes the next step towards the standstill of a run.
    ///
    /// # Errors
    /// Fails if somebody else has given a cluster something else meanwhile.
    pub(super) fn stop(&mut self, picked: &Picked<'_>) -> Result<(), Obstacle> {
        let configs = self.status.strategy.clone().unwrap_or_default().stages;
        let mut stages = std::mem::take(&mut self.status.stages);
        let mut open = stages.iter_mut().zip(&configs);
        let current = open.find(|(stage, _)| !is(&stage.conditions, SUCCEEDED, TRUE));
        let stopped = current.map(|(stage, config)| {
            let stopped = self.stop_stage(stage, config, picked);
            if let Err(message) = &stopped {
                self.fail_stage(stage, message);
            }
            stopped
        });
        self.status.stages = stages;
        if let Some(stopped) = stopped {
            return stopped.map_err(Obstacle::Fatal);
        }
        self.stop_deletion(picked);
        Ok(())
    }

    fn stop_stage(
        &mut self,
        stage: &mut StageStatus,
        config: &StageConfig,
        picked: &Picked<'_>,
    ) -> Result<(), String> {
        let bound = config.max_concurrency.as_ref();
        let most = concurrency(bound, stage.clusters.len()).unwrap_or_default();
        let turns = stage.clusters.iter_mut().filter(|one| !is_done(one));
        for cluster in turns.take(most) {
            let binding = picked.of(&cluster.cluster_name)?;
            self.update(cluster, binding, Turn::Over)?;
        }
        self.rest(stage);
        Ok(())
    }

    /// Says whether a stage, and the run with it, has come to rest.
    pub(super) fn rest(&mut self, stage: &mut StageStatus) {
        let dated = self.dated();
        if !stage.clusters.iter().any(is_under_way) {
            put(&mut stage.conditions, [messages::stage_stopped()], dated);
            self.say(messages::run_stopped());
            return;
        }
        put(&mut stage.conditions, [messages::stage_stopping()], dated);
        let late = self.late(stage.clusters.iter());
        let said = if late.clusters.is_empty() {
            messages::run_stopping()
        } else {
            messages::run_stuck(&late.clusters, &stage.stage_name, &late.why)
        };
        self.say(said);
    }
}
