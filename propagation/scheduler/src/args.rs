//! The flags.

use clap::ArgAction;
use jiff::Timestamp;
use karmada_runtime::args::{ClientArgs, CommonArgs, LeaderElectionArgs};
use karmada_runtime::events::EventBudget;
use propagation_rules::feature_gates::{
    COMPONENTS, Gate, MODELS, OVERCOMMIT_PROTECTION, PRIORITY, Switch, WORKLOAD_AFFINITY,
};
use propagation_rules::schedule::{Room, Scheduler, UnhealthyThreshold};

use crate::estimators::EstimatorArgs;
use crate::index::Heeded;

/// Chooses the clusters of every binding, and its replicas in each.
#[derive(clap::Parser, Debug)]
#[command(name = crate::identity::NAME, version)]
pub struct Args {
    #[command(flatten)]
    pub(crate) client: ClientArgs,
    #[command(flatten)]
    pub(crate) leader_election: LeaderElectionArgs,
    #[command(flatten)]
    pub(crate) events: EventBudget,
    /// Schedule the bindings whose policies name this scheduler. Its lease is `karmada-scheduler`, which Karmada's scheduler campaigns for too; that of any other name is `karmada-scheduler-NAME`.
    #[arg(
        long,
        env = "KARMADA_SCHEDULER_NAME",
        default_value = DEFAULT_NAME,
        value_name = "NAME"
    )]
    pub(crate) scheduler_name: String,
    /// Keep a cluster that gets no replica of a workload among its clusters.
    #[arg(long, env = "KARMADA_ENABLE_EMPTY_WORKLOAD_PROPAGATION", default_value_t = false, action = ArgAction::Set, num_args = 0..=1, default_missing_value = "true", value_name = "BOOL")]
    pub(crate) enable_empty_workload_propagation: bool,
    /// Features to switch on or off, under Karmada's names, `AllAlpha` and `AllBeta` among them. `WorkloadAffinity` (false): workloads of a group are together, or apart. `PriorityBasedScheduling` (true): bindings of a higher priority are scheduled first. `CustomizedClusterResourceModeling` (true): the room of a cluster is counted by the models of its nodes. `MultiplePodTemplatesScheduling` (false): what has components and is to go to one cluster goes to one with room for all of them. `SchedulingOvercommitProtection` (false): what was placed takes room until it is Healthy, for at most 5 minutes.
    #[arg(
        long,
        env = "KARMADA_FEATURE_GATES",
        value_name = "NAME=BOOL,...",
        value_delimiter = ','
    )]
    pub(crate) feature_gates: Vec<Switch>,
    #[command(flatten)]
    pub(crate) moves: MoveArgs,
    #[command(flatten)]
    pub(crate) estimators: EstimatorArgs,
    /// Serve WorkloadRebalancers, for a fleet without Karmada: a Karmada does that itself.
    #[arg(long, env = "KARMADA_REBALANCE_WORKLOADS")]
    pub(crate) rebalance_workloads: bool,
    /// Decide everything and write nothing; the metric `would_write_total` counts what would be written.
    #[arg(long, env = "KARMADA_OBSERVE_ONLY")]
    pub(crate) observe_only: bool,
    #[command(flatten)]
    pub(crate) common: CommonArgs,
}

/// The flags that move workloads which could stay where they are.
#[derive(clap::Args, Debug)]
pub(crate) struct MoveArgs {
    /// Move workloads away from clusters with a `NoExecute` taint that their policies do not tolerate, or not any longer. Their copies there stay until those elsewhere are healthy, for at most 10 minutes. In a fleet with Karmada its own taint manager does it.
    #[arg(long, env = "KARMADA_EVICT_UNTOLERATED")]
    pub(crate) evict_untolerated: bool,
    /// Move no workload away from a cluster that is not ready while more than this share of all clusters is not: the fault may be on the way to them. Taints of other keys count all the same.
    #[arg(long, env = "KARMADA_UNHEALTHY_CLUSTER_THRESHOLD", default_value = "0.55", value_name = "SHARE", value_parser = share)]
    pub(crate) unhealthy_cluster_threshold: f64,
    /// Move workloads back to an earlier group of clusters of their policies once it fits again. Their copies in the later group stay until those in the earlier one are healthy, for at most 10 minutes.
    #[arg(long, env = "KARMADA_AFFINITY_FAIL_BACK")]
    pub(crate) affinity_fail_back: bool,
}

/// Parses a share of a whole.
fn share(text: &str) -> Result<f64, String> {
    let share = text.parse::<f64>().ok();
    let share = share.filter(|share| (0.0..=1.0).contains(share));
    share.ok_or_else(|| "must be a number from 0 to 1, such as 0.55".to_owned())
}

/// The features that are switched.
pub(crate) const GATES: [Gate; 5] = [
    WORKLOAD_AFFINITY,
    PRIORITY,
    MODELS,
    COMPONENTS,
    OVERCOMMIT_PROTECTION,
];

/// The name of the scheduler of policies that name none.
const DEFAULT_NAME: &str = "default-scheduler";

impl Args {
    /// Returns the name of the lease.
    pub(crate) fn lease(&self) -> String {
        match self.scheduler_name.as_str() {
            // Karmada's own, so that of the two only one schedules.
            DEFAULT_NAME => "karmada-scheduler".to_owned(),
            name => format!("karmada-scheduler-{name}"),
        }
    }

    /// Returns the things that bindings heed of others; `clock` shows the time.
    pub(crate) fn heeded(&self, clock: fn() -> Timestamp) -> Heeded {
        let promises = OVERCOMMIT_PROTECTION.is_on(&self.feature_gates);
        Heeded {
            groups: WORKLOAD_AFFINITY.is_on(&self.feature_gates),
            priority: PRIORITY.is_on(&self.feature_gates),
            promises: promises.then_some(clock),
        }
    }

    /// Returns the settings of scheduling.
    pub(crate) fn scheduler(&self) -> Scheduler {
        Scheduler {
            name: self.scheduler_name.clone(),
            keeps_empty: self.enable_empty_workload_propagation,
            fits_sets: COMPONENTS.is_on(&self.feature_gates),
            room: if MODELS.is_on(&self.feature_gates) {
                Room::Models
            } else {
                Room::Summary
            },
            evicts: self.moves.evict_untolerated,
            unhealthy_threshold: UnhealthyThreshold(self.moves.unhealthy_cluster_threshold),
            fails_back: self.moves.affinity_fail_back,
        }
    }
}

#[cfg(test)]
mod tests {
    use clap::{CommandFactory, Parser};
    use jiff::Timestamp;

    use super::{Args, Room};

    #[test]
    fn the_flags_are_well_formed() {
        Args::command().debug_assert();
    }

    /// The features have Karmada's names and defaults.
    #[test]
    fn features_are_karmadas() {
        let features = |flags: &[&str]| {
            let args = Args::parse_from([&["scheduler"], flags].concat());
            let scheduler = args.scheduler();
            let models = scheduler.room == Room::Models;
            let heeded = args.heeded(Timestamp::now);
            [
                heeded.groups,
                heeded.priority,
                models,
                scheduler.fits_sets,
                heeded.promises.is_some(),
            ]
        };
        assert_eq!(features(&[]), [false, true, true, false, false]);
        let switched = features(&[
            "--feature-gates=WorkloadAffinity=true,PriorityBasedScheduling=false",
            "--feature-gates=CustomizedClusterResourceModeling=false",
            "--feature-gates=MultiplePodTemplatesScheduling=true",
            "--feature-gates=SchedulingOvercommitProtection=true",
        ]);
        assert_eq!(switched, [true, false, false, true, true]);
        let of_karmada = features(&["--feature-gates=AllAlpha=true,AllBeta=true,Failover=false"]);
        assert_eq!(of_karmada, [true; 5]);
    }

    /// A scheduler of another name does not wait for the default one.
    #[test]
    fn named_scheduler_has_own_lease() {
        let default = Args::parse_from(["scheduler"]);
        assert_eq!(default.lease(), "karmada-scheduler");
        let canary = Args::parse_from(["scheduler", "--scheduler-name=canary"]);
        assert_eq!(canary.lease(), "karmada-scheduler-canary");
    }
}
