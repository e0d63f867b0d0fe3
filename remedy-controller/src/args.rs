//! The flags.

use std::time::Duration;

use karmada_runtime::args::{ClientArgs, CommonArgs, LeaderElectionArgs, duration};
use karmada_runtime::events::EventBudget;
use traffic::ClusterKind;
use traffic::remedy::MaxBlocked;

/// Compares the conditions of every cluster with the Remedy objects and writes the required actions to Cluster.status.remedyActions.
#[derive(clap::Parser, Debug)]
#[command(name = crate::identity::NAME, version)]
pub struct Args {
    #[command(flatten)]
    pub(crate) client: ClientArgs,
    #[command(flatten)]
    pub(crate) leader_election: LeaderElectionArgs,
    #[command(flatten)]
    pub(crate) events: EventBudget,
    /// Kind of object that stands for a cluster: `Cluster`, or `MemberCluster` on the hub of a KubeFleet. The actions of a MemberCluster are conditions.
    #[arg(
        long,
        env = "KARMADA_CLUSTER_KIND",
        default_value = "Cluster",
        value_name = "KIND"
    )]
    pub(crate) cluster_kind: ClusterKind,
    /// The most clusters that conditions may block with `TrafficControl`: a number, or a percentage of all clusters, rounded down. A Remedy without matches is not bounded. Advice: 50%, so that a probe that is wrong everywhere leaves half of the fleet in service.
    #[arg(
        long,
        env = "KARMADA_MAX_BLOCKED_CLUSTERS",
        default_value = "100%",
        value_name = "NUMBER|PERCENT"
    )]
    pub(crate) max_blocked_clusters: MaxBlocked,
    /// Time beyond its lease for which a cluster's reporter may be silent before `HealthReporterReady` becomes False with reason `ReporterSilent`.
    #[arg(
        long,
        env = "KARMADA_REPORTER_GRACE_PERIOD",
        default_value = "60s",
        value_name = "DURATION",
        value_parser = duration
    )]
    pub(crate) reporter_grace_period: Duration,
    #[command(flatten)]
    pub(crate) common: CommonArgs,
}

#[cfg(test)]
mod tests {
    use clap::CommandFactory;

    #[test]
    fn the_flags_are_well_formed() {
        super::Args::command().debug_assert();
    }
}
