//! A run that may go on.

use fleet_api::conditions::SUCCEEDED;
use fleet_api::update::{StageConfig, StageStatus};
use objects::condition::{TRUE, whole_seconds};

use super::cluster::{Turn, is_done};
use super::facts::is;
use super::messages;
use super::picked::Picked;
use super::stages::concurrency;
use super::step::{Obstacle, Step};
use super::tasks::Tasks;
use crate::condition::put;

impl Step<'_, '_> {
    /// Takes the next step of the first stage that is not done.
    ///
    /// # Errors
    /// Fails if the run cannot go on.
    pub(super) fn advance(&mut self, picked: &Picked<'_>) -> Result<(), Obstacle> {
        let configs = self.status.strategy.clone().unwrap_or_default().stages;
        let mut stages = std::mem::take(&mut self.status.stages);
        let mut advanced = None;
        for (stage, config) in stages.iter_mut().zip(&configs) {
            if is(&stage.conditions, SUCCEEDED, TRUE) {
                continue;
            }
            if stage.clusters.is_empty() {
                self.skip(stage);
                continue;
            }
            advanced = Some(self.advance_stage(stage, config, picked));
            break;
        }
        self.status.stages = stages;
        if let Some(advanced) = advanced {
            return advanced.map_err(Obstacle::Fatal);
        }
        self.delete(picked);
        Ok(())
    }

    fn advance_stage(
        &mut self,
        stage: &mut StageStatus,
        config: &StageConfig,
        picked: &Picked<'_>,
    ) -> Result<(), String> {
        let advanced = self.try_advance(stage, config, picked);
        if let Err(message) = &advanced {
            self.fail_stage(stage, message);
        }
        advanced
    }

    fn try_advance(
        &mut self,
        stage: &mut StageStatus,
        config: &StageConfig,
        picked: &Picked<'_>,
    ) -> Result<(), String> {
        match self.before(stage)? {
            Tasks::Open => {
                let dated = self.dated();
                put(
                    &mut stage.conditions,
                    [messages::stage_waits_before()],
                    dated,
                );
                self.say(messages::run_waiting("before-stage", &stage.stage_name));
                return Ok(());
            }
            // The first cluster gets nothing before the run has said that it is approved.
            Tasks::DoneNow => {
                self.say(messages::run_progressing());
                return Ok(());
            }
            Tasks::Done => {}
        }
        let bound = config.max_concurrency.as_ref();
        let most = concurrency(bound, stage.clusters.len()).ok_or_else(|| {
            format!(
                "maxConcurrency of stage {} is not a number from 1, or a percentage",
                config.name
            )
        })?;
        // After the last of them a task may wait, also if this step finds all that are left up to date.
        if !stage.clusters.iter().all(is_done) {
            self.start_stage(stage);
        }
        // Those that were said to be done before this step, and no others, make room.
        let turns = stage.clusters.iter_mut().filter(|one| !is_done(one));
        for cluster in turns.take(most) {
            let binding = picked.of(&cluster.cluster_name)?;
            self.update(cluster, binding, Turn::Come)?;
        }
        if stage.clusters.iter().all(is_done) {
            return self.finish(stage, config);
        }
        let late = self.late(stage.clusters.iter());
        let said = if late.clusters.is_empty() {
            messages::run_progressing()
        } else {
            messages::run_stuck(&late.clusters, &stage.stage_name, &late.why)
        };
        self.say(said);
        Ok(())
    }

    /// Ends a stage whose clusters are done, once its tasks are.
    fn finish(&mut self, stage: &mut StageStatus, config: &StageConfig) -> Result<(), String> {
        let dated = self.dated();
        let start = whole_seconds(self.facts.now);
        stage.start_time.get_or_insert(start);
        put(
            &mut stage.conditions,
            [messages::stage_waits_after()],
            dated,
        );
        if self.after(config, stage)? == Tasks::Open {
            self.say(messages::run_waiting("after-stage", &stage.stage_name));
            return Ok(());
        }
        self.end_stage(stage);
        // The next stage begins once this is said: it wakes the run again.
        self.say(messages::run_progressing());
        Ok(())
    }

    fn skip(&self, stage: &mut StageStatus) {
        let now = whole_seconds(self.facts.now);
        stage.start_time.get_or_insert_with(|| now.clone());
        stage.end_time.get_or_insert(now);
        put(
            &mut stage.conditions,
            messages::stage_skipped(),
            self.dated(),
        );
    }

    pub(super) fn start_stage(&self, stage: &mut StageStatus) {
        stage
            .start_time
            .get_or_insert_with(|| whole_seconds(self.facts.now));
        put(
            &mut stage.conditions,
            [messages::stage_started()],
            self.dated(),
        );
    }

    pub(super) fn end_stage(&self, stage: &mut StageStatus) {
        stage
            .end_time
            .get_or_insert_with(|| whole_seconds(self.facts.now));
        put(
            &mut stage.conditions,
            messages::stage_succeeded(),
            self.dated(),
        );
    }

    pub(super) fn fail_stage(&self, stage: &mut StageStatus, message: &str) {
        stage
            .end_time
            .get_or_insert_with(|| whole_seconds(self.facts.now));
        let message = format!("cannot continue the updateRun: {message}");
        let failed = messages::stage_failed(&message);
        put(&mut stage.conditions, failed, self.dated());
    }

    /// Says something of the run.
    pub(super) fn say(&mut self, said: objects::condition::Condition) {
        let dated = self.dated();
        put(&mut self.status.conditions, [said], dated);
    }
}
