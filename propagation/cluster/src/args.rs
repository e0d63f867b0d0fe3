//! The flags.

use std::time::Duration;

use karmada_rules::cluster::ConditionTaint;
use karmada_runtime::args::{ClientArgs, CommonArgs, EventArgs, LeaderElectionArgs, duration};

/// Keeps the Clusters of a fleet without Karmada: their namespaces, health, taints, kinds and capacity. Never run it beside a Karmada.
#[derive(clap::Parser, Debug)]
#[command(name = crate::identity::NAME, version)]
pub struct Args {
    #[command(flatten)]
    pub(crate) client: ClientArgs,
    #[command(flatten)]
    pub(crate) leader_election: LeaderElectionArgs,
    #[command(flatten)]
    pub(crate) events: EventArgs,
    /// Taint a cluster with `NoExecute` too once it has not been ready for this long. By default it is not: workloads stay.
    #[arg(long, env = "KARMADA_TAINT_NO_EXECUTE_AFTER", value_name = "DURATION", value_parser = duration)]
    pub(crate) taint_no_execute_after: Option<Duration>,
    /// Taint a cluster for a condition: it has the taint `cluster.karmada-rs.io/TYPE=STATUS:EFFECT` while its condition `TYPE` is `STATUS`. May be repeated.
    #[arg(
        long = "taint-on-condition",
        env = "KARMADA_TAINT_ON_CONDITION",
        value_name = "TYPE=STATUS:EFFECT",
        value_delimiter = ','
    )]
    pub(crate) condition_taints: Vec<ConditionTaint>,
    /// Decide everything and write nothing; the metric `would_write_total` counts what would be written.
    #[arg(long, env = "KARMADA_OBSERVE_ONLY")]
    pub(crate) observe_only: bool,
    #[command(flatten)]
    pub(crate) common: CommonArgs,
}

impl AsRef<CommonArgs> for Args {
    fn as_ref(&self) -> &CommonArgs {
        &self.common
    }
}

#[cfg(test)]
mod tests {
    use clap::CommandFactory;

    #[test]
    fn the_flags_are_well_formed() {
        super::Args::command().debug_assert();
    }
}
