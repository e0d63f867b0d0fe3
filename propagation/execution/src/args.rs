//! The flags.

use karmada_runtime::args::{ClientArgs, CommonArgs, LeaderElectionArgs, PullArgs};
use karmada_runtime::events::EventBudget;

/// Applies the manifests of every Work to its member cluster, and reports what has become of them there.
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
    /// Decide everything and write nothing, neither in Karmada nor in a member; the metric `would_write_total` counts what would be written.
    #[arg(long, env = "KARMADA_OBSERVE_ONLY")]
    pub(crate) observe_only: bool,
    /// Collect the EndpointSlices of exported Services from the members, for a fleet without Karmada: a Karmada does that itself.
    #[arg(long, env = "KARMADA_COLLECT_ENDPOINTS", conflicts_with = "pull")]
    pub(crate) collect_endpoints: bool,
    /// Withhold from each member the EndpointSlices that Works bring there from a cluster whose traffic a Remedy blocks, as long as another cluster serves the Service.
    #[arg(
        long,
        env = "KARMADA_BLOCK_MULTICLUSTER_SERVICES",
        conflicts_with = "pull"
    )]
    pub(crate) block_multicluster_services: bool,
    #[command(flatten)]
    pub(crate) common: CommonArgs,
}

#[cfg(test)]
mod tests {
    use clap::{CommandFactory, Parser};

    #[test]
    fn flags_are_well_formed() {
        super::Args::command().debug_assert();
    }

    /// Flags that depend on other members are refused in one.
    #[test]
    fn member_knows_no_others() {
        for flag in ["--collect-endpoints", "--block-multicluster-services"] {
            let flags = format!("p --pull --cluster-name=m1 --karmada-kubeconfig=/k {flag}");
            let error = super::Args::try_parse_from(flags.split(' ')).unwrap_err();
            let message = format!("'--pull' cannot be used with '{flag}'");
            assert!(error.to_string().contains(&message), "{error}");
        }
    }
}
