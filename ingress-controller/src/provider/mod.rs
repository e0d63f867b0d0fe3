//! Load balancers, which serve the traffic of `MultiClusterIngress`es as `rules` desires.
//!
//! A provider owns a folder with its flags and errors. Adding one takes that folder and,
//! in this file, a variant of `ProviderName`, its flags in `ProviderArgs`, and an arm of `connect`. Its tests run the
//! `contract` that all of them keep.

mod balancer;
#[cfg(test)]
mod contract;
mod haproxy;
mod kubernetes;
mod named;
mod none;

use clap::ValueEnum;
use karmada_rules::ingress::ControllerName;
use karmada_runtime::program::{Program, StartError};

pub(crate) use self::balancer::label;
pub use self::balancer::{Ensured, LoadBalancer, NamedBalancer, Obstacle, RelatedObject};
use self::haproxy::HaproxyArgs;
pub use self::kubernetes::Kubernetes;
use self::kubernetes::KubernetesArgs;
use self::none::NoLoadBalancer;

/// The flags of the providers.
#[derive(clap::Args, Debug)]
pub(crate) struct ProviderArgs {
    /// Load balancer that serves the traffic.
    #[arg(long, env = "KARMADA_PROVIDER", value_enum, default_value_t = ProviderName::None)]
    pub(crate) provider: ProviderName,
    #[command(flatten)]
    pub(crate) kubernetes: KubernetesArgs,
    #[command(flatten)]
    pub(crate) haproxy: HaproxyArgs,
}

/// The values of `--provider`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum ProviderName {
    /// None of ours: another program reads the status.
    None,
    /// The ingress controller of a gateway cluster, through Services, EndpointSlices and Ingresses.
    Kubernetes,
    /// A running HAProxy, through the servers of its backends.
    Haproxy,
}

/// Connects to the load balancers that the flags select.
///
/// # Errors
/// Fails if a flag of another provider is set, or if the provider's flags are incomplete or name a file
/// that cannot be used.
pub(crate) async fn connect(
    args: &ProviderArgs,
    controller: &ControllerName,
    program: &mut Program,
) -> Result<Vec<NamedBalancer>, StartError> {
    args.reject_unused()?;
    match args.provider {
        ProviderName::None => Ok(NamedBalancer::only(NoLoadBalancer)),
        ProviderName::Kubernetes => {
            kubernetes::connect(&args.kubernetes, controller, program).await
        }
        ProviderName::Haproxy => haproxy::connect(&args.haproxy, controller),
    }
}

impl ProviderArgs {
    /// Returns `true` if the Secrets of TLS are needed. HAProxy's are in its configuration.
    pub(crate) fn copies_tls_secrets(&self) -> bool {
        self.provider != ProviderName::Haproxy && self.kubernetes.copy_tls_secrets()
    }

    fn reject_unused(&self) -> Result<(), StartError> {
        let flags = [
            (ProviderName::Kubernetes, self.kubernetes.first_set()),
            (ProviderName::Haproxy, self.haproxy.first_set()),
        ];
        for (owner, flag) in flags {
            if let Some(flag) = flag
                && owner != self.provider
            {
                let [selected, owner] = [self.provider, owner].map(shown);
                return Err(StartError::Config(format!(
                    "{flag} has no use with --provider {selected}; add --provider {owner} or leave it out"
                )));
            }
        }
        Ok(())
    }
}

/// Returns the value of `--provider` as the user writes it.
fn shown(name: ProviderName) -> String {
    let value = name.to_possible_value();
    value.map_or_else(String::new, |value| value.get_name().to_owned())
}
