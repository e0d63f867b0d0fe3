//! The program's flags.

use std::path::PathBuf;

use clap::ValueEnum;
use clap::builder::NonEmptyStringValueParser;
use karmada_rules::ingress::ControllerName;
use karmada_runtime::args::{ClientArgs, CommonArgs, LeaderElectionArgs};
use karmada_runtime::program::StartError;

/// Takes clusters that a Remedy blocks out of each MultiClusterIngress whose Services run there, and has the load balancer follow.
#[derive(clap::Parser, Debug)]
#[command(name = crate::NAME, version)]
pub struct Args {
    #[command(flatten)]
    pub(crate) client: ClientArgs,
    #[command(flatten)]
    pub(crate) leader_election: LeaderElectionArgs,
    #[command(flatten)]
    pub(crate) common: CommonArgs,
    /// What serves the traffic.
    #[arg(long, env = "KARMADA_PROVIDER", value_enum, default_value_t = Provider::None)]
    pub(crate) provider: Provider,
    /// The spec.controller of each IngressClass that is ours; also the name of our finalizer. Control planes that share a gateway cluster need different ones.
    #[arg(
        long,
        env = "KARMADA_INGRESS_CLASS_CONTROLLER",
        default_value = "karmada-rs.io/ingress-controller",
        value_name = "NAME"
    )]
    pub(crate) ingress_class_controller: ControllerName,
    /// Kubeconfig of the gateway cluster, whose own ingress controller serves the traffic.
    #[arg(long, env = "KARMADA_GATEWAY_KUBECONFIG", value_name = "PATH")]
    pub(crate) gateway_kubeconfig: Option<PathBuf>,
    /// Ingress class in the gateway cluster; without it that cluster's default one.
    #[arg(long, env = "KARMADA_GATEWAY_INGRESS_CLASS", value_name = "NAME", value_parser = NonEmptyStringValueParser::new())]
    pub(crate) gateway_ingress_class: Option<String>,
}

/// What serves the traffic.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum Provider {
    /// Something else that reads the status.
    None,
    /// The ingress controller of a gateway cluster, given Services, EndpointSlices and Ingresses.
    Kubernetes,
}

/// The gateway cluster of the `kubernetes` provider.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct GatewayArgs {
    pub(crate) kubeconfig: PathBuf,
    pub(crate) ingress_class: Option<String>,
}

impl Args {
    /// The gateway cluster, if the provider has one.
    pub(crate) fn gateway(&self) -> Result<Option<GatewayArgs>, StartError> {
        let unused = |flag: &str| {
            StartError::Config(format!(
                "{flag} has no use with --provider none; add --provider kubernetes or leave it out"
            ))
        };
        match (self.provider, &self.gateway_kubeconfig) {
            (Provider::None, Some(_)) => Err(unused("--gateway-kubeconfig")),
            (Provider::None, None) if self.gateway_ingress_class.is_some() => {
                Err(unused("--gateway-ingress-class"))
            }
            (Provider::None, None) => Ok(None),
            (Provider::Kubernetes, None) => Err(StartError::Config(
                "--provider kubernetes needs --gateway-kubeconfig: name the kubeconfig of the cluster whose ingress controller serves the traffic".to_owned(),
            )),
            (Provider::Kubernetes, Some(kubeconfig)) => Ok(Some(GatewayArgs {
                kubeconfig: kubeconfig.clone(),
                ingress_class: self.gateway_ingress_class.clone(),
            })),
        }
    }
}

impl AsRef<CommonArgs> for Args {
    fn as_ref(&self) -> &CommonArgs {
        &self.common
    }
}

#[cfg(test)]
mod tests {
    use clap::{CommandFactory, Parser};

    use super::*;

    fn parsed(flags: &[&str]) -> Args {
        Args::try_parse_from([&["ingress-controller"], flags].concat()).unwrap()
    }

    #[test]
    fn the_flags_are_well_formed() {
        Args::command().debug_assert();
    }

    #[test]
    fn without_flags_only_the_status_is_written_for_our_own_class() {
        let args = parsed(&[]);
        assert_eq!(args.gateway().unwrap(), None);
        assert_eq!(
            args.ingress_class_controller.as_str(),
            "karmada-rs.io/ingress-controller"
        );
        assert!(args.leader_election.leader_elect);
    }

    #[test]
    fn the_kubernetes_provider_writes_to_the_gateway_it_is_given() {
        let mut flags = vec!["--provider=kubernetes", "--gateway-kubeconfig=/k"];
        let gateway = |ingress_class| GatewayArgs {
            kubeconfig: "/k".into(),
            ingress_class,
        };
        assert_eq!(parsed(&flags).gateway().unwrap(), Some(gateway(None)));
        flags.push("--gateway-ingress-class=web");
        assert_eq!(
            parsed(&flags).gateway().unwrap(),
            Some(gateway(Some("web".to_owned())))
        );
    }
}
