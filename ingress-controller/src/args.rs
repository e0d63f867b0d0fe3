//! The flags.

use clap::ArgAction;
use karmada_runtime::args::{ClientArgs, CommonArgs, LeaderElectionArgs};
use karmada_runtime::events::EventBudget;
use karmada_runtime::program::StartError;
use traffic::ClusterKind;
use traffic::ingress::{
    BackendAddresses, ControllerName, PossibleAddresses, WhenAllBlocked, Withheld,
};

use crate::provider::ProviderArgs;

/// Takes the clusters that a Remedy blocks out of every MultiClusterIngress with Services there, in its status and in the load balancer.
#[derive(clap::Parser, Debug)]
#[command(name = crate::identity::NAME, version)]
pub struct Args {
    #[command(flatten)]
    pub(crate) client: ClientArgs,
    #[command(flatten)]
    pub(crate) leader_election: LeaderElectionArgs,
    #[command(flatten)]
    pub(crate) events: EventBudget,
    #[command(flatten)]
    pub(crate) common: CommonArgs,
    /// Kind of object that stands for a cluster: `Cluster`, or `MemberCluster` on the hub of a KubeFleet. There Services run where placements bring them, and have the endpoints that placement-agents collect.
    #[arg(
        long,
        env = "KARMADA_CLUSTER_KIND",
        default_value = "Cluster",
        value_name = "KIND"
    )]
    pub(crate) cluster_kind: ClusterKind,
    /// The spec.controller of every IngressClass that this controller serves, and the name of its finalizer. Control planes that share a gateway cluster need different ones.
    #[arg(
        long,
        env = "KARMADA_INGRESS_CLASS_CONTROLLER",
        default_value = "karmada-rs.io/ingress-controller",
        value_name = "NAME"
    )]
    pub(crate) ingress_class_controller: ControllerName,
    /// The spec.controllerName of every GatewayClass whose Gateways this controller serves: their HTTPRoutes in the Karmada API are read as MultiClusterIngresses. Control planes that share an API need different ones.
    #[arg(
        long,
        env = "KARMADA_GATEWAY_CLASS_CONTROLLER",
        default_value = "karmada-rs.io/multi-cluster",
        value_name = "NAME"
    )]
    pub(crate) gateway_class_controller: ControllerName,
    /// Behaviour while every cluster of a backend Service is blocked: fail-open readmits those that a condition blocked, fail-closed serves none. The annotation networking.karmada-rs.io/when-all-blocked overrides it for one MultiClusterIngress.
    #[arg(
        long,
        env = "KARMADA_WHEN_ALL_BLOCKED",
        default_value_t = WhenAllBlocked::FailOpen,
        value_name = "fail-open|fail-closed"
    )]
    pub(crate) when_all_blocked: WhenAllBlocked,
    /// Where requests for a backend are sent in a member: to the endpoints of the Service, to the addresses of its load balancer there, or to those of the member's own ingress controller for the Ingress of the same name. The annotation networking.karmada-rs.io/backend-addresses overrides it for one MultiClusterIngress.
    #[arg(
        long,
        env = "KARMADA_BACKEND_ADDRESSES",
        default_value_t = BackendAddresses::Endpoints,
        value_name = "endpoints|load-balancers|ingresses"
    )]
    pub(crate) backend_addresses: BackendAddresses,
    /// Patterns of annotations that the gateway does not get, separated by commas; by default those that are code in its proxy. Empty: it gets all.
    #[arg(
        long,
        env = "KARMADA_WITHHOLD_ANNOTATIONS",
        default_value_t = Withheld::default(),
        value_name = "PATTERN,…"
    )]
    pub(crate) withhold_annotations: Withheld,
    /// With a load balancer of ours: export the backend Services of every MultiClusterIngress, by an export and a policy that propagates it for each, because Karmada collects the endpoints of exported Services only.
    #[arg(long, env = "KARMADA_EXPORT_SERVICES", default_value_t = true, action = ArgAction::Set, num_args = 0..=1, default_missing_value = "true", value_name = "BOOL")]
    pub(crate) export_services: bool,
    #[command(flatten)]
    pub(crate) provider: ProviderArgs,
}

impl Args {
    /// Fails if the flags contradict each other.
    pub(crate) fn check(&self) -> Result<(), StartError> {
        let is_hub = self.cluster_kind == ClusterKind::MemberCluster;
        if is_hub && self.backend_addresses != BackendAddresses::Endpoints {
            let asked = "--cluster-kind MemberCluster needs --backend-addresses endpoints: a hub does not know the addresses of load balancers in members";
            return Err(StartError::Config(asked.to_owned()));
        }
        if is_hub && self.provider.copies_secrets() {
            let asked = "--copy-tls-secrets has no use with --cluster-kind MemberCluster: none is copied from a hub; leave it out";
            return Err(StartError::Config(asked.to_owned()));
        }
        self.provider.reject(self.backend_addresses)
    }

    /// Returns the addresses that an ingress may choose.
    pub(crate) fn possible_addresses(&self) -> PossibleAddresses {
        match self.cluster_kind {
            ClusterKind::MemberCluster => PossibleAddresses::Endpoints,
            ClusterKind::Cluster => self.provider.possible_addresses(),
        }
    }
}

#[cfg(test)]
mod tests {
    use clap::{CommandFactory, Parser};

    use karmada_runtime::program::Program;

    use super::*;
    use crate::fixtures::writer;
    use crate::provider::connect;

    #[test]
    fn the_flags_are_well_formed() {
        Args::command().debug_assert();
    }

    /// Without flags only the status is written for our own class.
    #[tokio::test]
    async fn defaults_write_only_status() {
        let args = Args::try_parse_from(["ingress-controller"]).unwrap();
        assert_eq!(
            args.ingress_class_controller.as_str(),
            "karmada-rs.io/ingress-controller"
        );
        assert_eq!(
            args.gateway_class_controller.as_str(),
            "karmada-rs.io/multi-cluster"
        );
        assert!(args.leader_election.leader_elect);
        assert!(args.export_services);
        assert_eq!(args.when_all_blocked, WhenAllBlocked::FailOpen);
        let mut program = Program::new(crate::identity::IDENTITY, args.common.listen_address);
        let controller = &args.ingress_class_controller;
        let balancers = connect(&args.provider, controller, &mut program).await;
        assert!(!balancers.unwrap()(&writer())[0].balancer.serves());
    }
}
