//! The flags.

use std::time::Duration;

use karmada_runtime::args::{ClientArgs, CommonArgs, LeaderElectionArgs, PullArgs, duration};
use karmada_runtime::events::EventBudget;
use objects::condition_taint::ConditionTaint;

use crate::usage::NodeAddressType;

/// Keeps the Clusters of a fleet without Karmada: their namespaces, health, taints, kinds and capacity. Never run it beside a Karmada, except with --pull, inside a member of mode Pull, for the status of that one.
#[derive(clap::Parser, Debug)]
#[command(name = crate::identity::NAME, version)]
pub struct Args {
    #[command(flatten)]
    pub(crate) client: ClientArgs,
    #[command(flatten)]
    pub(crate) pull: PullArgs,
    #[command(flatten)]
    pub(crate) leader_election: LeaderElectionArgs,
    #[command(flatten)]
    pub(crate) events: EventBudget,
    /// Taint a cluster with `NoExecute` too once it has not been ready for this long. By default it is not: workloads stay.
    #[arg(long, env = "KARMADA_TAINT_NO_EXECUTE_AFTER", value_name = "DURATION", value_parser = duration, conflicts_with = "pull")]
    pub(crate) taint_no_execute_after: Option<Duration>,
    /// Taint a cluster for a condition: it has the taint `cluster.karmada-rs.io/TYPE=STATUS:EFFECT` while its condition `TYPE` is `STATUS`. May be repeated.
    #[arg(
        long = "taint-on-condition",
        env = "KARMADA_TAINT_ON_CONDITION",
        value_name = "TYPE=STATUS:EFFECT",
        value_delimiter = ',',
        conflicts_with = "pull"
    )]
    pub(crate) condition_taints: Vec<ConditionTaint>,
    /// Publish the nodes of each cluster with their addresses of this type, in EndpointSlices of its execution namespace: the ingress-controller sends requests there for Services of type `NodePort`. By default none are published.
    #[arg(long, env = "KARMADA_PUBLISH_NODE_ADDRESSES", value_enum, value_name = "TYPE", num_args = 0..=1, default_missing_value = "InternalIP", conflicts_with = "pull")]
    pub(crate) publish_node_addresses: Option<NodeAddressType>,
    /// Decide everything and write nothing; the metric `would_write_total` counts what would be written.
    #[arg(long, env = "KARMADA_OBSERVE_ONLY")]
    pub(crate) observe_only: bool,
    #[command(flatten)]
    pub(crate) common: CommonArgs,
}

#[cfg(test)]
mod tests {
    use clap::{CommandFactory, Parser};

    #[test]
    fn the_flags_are_well_formed() {
        super::Args::command().debug_assert();
    }

    /// Flags of the control plane alone are refused in a member.
    #[test]
    fn member_is_no_control_plane() {
        for flag in [
            "--taint-no-execute-after=1m",
            "--taint-on-condition=DnsReady=False:NoExecute",
            "--publish-node-addresses",
        ] {
            let pull = [
                "p",
                "--pull",
                "--cluster-name=m1",
                "--karmada-kubeconfig=/k",
            ];
            let flags = pull.into_iter().chain([flag]);
            let error = super::Args::try_parse_from(flags).unwrap_err().to_string();
            assert!(
                error.contains("'--pull' cannot be used with '--"),
                "{error}"
            );
        }
    }
}
