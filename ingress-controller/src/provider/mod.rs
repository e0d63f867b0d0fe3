//! Load balancers, which serve the traffic of `MultiClusterIngress`es as `traffic` desires.
//!
//! A provider owns a folder with its flags and errors. Adding one takes that folder and,
//! in this file, a variant of `ProviderName`, its flags in `ProviderArgs`, an arm of `connect` and a row of
//! `reject_unused`. Its tests run the `contract` that all of them keep. `kubernetes` and `gateway-api` share a
//! `gateway_cluster`, and differ in its routes.

mod balancer;
#[cfg(test)]
mod contract;
mod dns;
mod gateway_api;
mod gateway_cluster;
mod haproxy;
mod kubernetes;
mod named;
mod none;
mod webhook;

use clap::ValueEnum;
use karmada_runtime::program::{Program, StartError};
use traffic::ingress::{BackendAddresses, ControllerName, PossibleAddresses};

pub(crate) use self::balancer::Balancers;
pub(crate) use self::balancer::label;
pub use self::balancer::{Ensured, LoadBalancer, NamedBalancer, Obstacle, RelatedObject};
use self::dns::DnsArgs;
use self::gateway_api::GatewayApiArgs;
use self::gateway_cluster::GatewayClusterArgs;
use self::haproxy::HaproxyArgs;
pub use self::kubernetes::Kubernetes;
use self::kubernetes::KubernetesArgs;
use self::none::NoLoadBalancer;
use self::webhook::WebhookArgs;

/// The flags of the providers.
#[derive(clap::Args, Debug)]
pub(crate) struct ProviderArgs {
    /// Load balancer that serves the traffic.
    #[arg(long, env = "KARMADA_PROVIDER", value_enum, default_value_t = ProviderName::None)]
    provider: ProviderName,
    #[command(flatten)]
    gateway_clusters: GatewayClusterArgs,
    #[command(flatten)]
    kubernetes: KubernetesArgs,
    #[command(flatten)]
    gateway_api: GatewayApiArgs,
    #[command(flatten)]
    haproxy: HaproxyArgs,
    #[command(flatten)]
    dns: DnsArgs,
    #[command(flatten)]
    webhook: WebhookArgs,
}

/// The values of `--provider`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum ProviderName {
    /// None of ours: another program reads the status.
    None,
    /// The ingress controller of a gateway cluster, through Services, EndpointSlices and Ingresses.
    Kubernetes,
    /// A Gateway of a gateway cluster, through Services, EndpointSlices and HTTPRoutes.
    GatewayApi,
    /// A running HAProxy, through the servers of its backends.
    Haproxy,
    /// Records in DNS, which ExternalDNS makes.
    Dns,
    /// The program at --provider-url, which configures a load balancer of any kind.
    Webhook,
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
) -> Result<Balancers, StartError> {
    args.reject_unused()?;
    match args.provider {
        ProviderName::None => Ok(Box::new(|_| NamedBalancer::only(NoLoadBalancer))),
        ProviderName::Kubernetes => {
            let (clusters, own) = (&args.gateway_clusters, &args.kubernetes);
            kubernetes::connect(clusters, own, controller, program).await
        }
        ProviderName::GatewayApi => {
            let (clusters, own) = (&args.gateway_clusters, &args.gateway_api);
            gateway_api::connect(clusters, own, controller, program).await
        }
        ProviderName::Haproxy => haproxy::connect(&args.haproxy, controller, program),
        ProviderName::Dns => dns::connect(&args.dns, controller, program).await,
        ProviderName::Webhook => webhook::connect(&args.webhook, controller, program).await,
    }
}

impl ProviderArgs {
    /// Fails if the load balancer can send no request to `addresses`.
    pub(crate) fn reject(&self, addresses: BackendAddresses) -> Result<(), StartError> {
        if self.provider == ProviderName::Dns && addresses == BackendAddresses::Endpoints {
            let asked = "--provider dns needs --backend-addresses load-balancers or ingresses: those who ask DNS do not reach pods";
            return Err(StartError::Config(asked.to_owned()));
        }
        Ok(())
    }

    /// Returns the addresses to which the load balancer can send requests.
    pub(crate) fn possible_addresses(&self) -> PossibleAddresses {
        if self.provider == ProviderName::Dns {
            PossibleAddresses::Reported
        } else {
            PossibleAddresses::All
        }
    }

    /// Returns `true` if the load balancer gets copies of TLS Secrets.
    pub(crate) fn copies_secrets(&self) -> bool {
        self.kubernetes.copy_tls_secrets()
    }

    /// Returns `true` if the load balancer takes the names of hosts, and looks them up itself.
    pub(crate) fn takes_names(&self) -> bool {
        self.gateway_clusters.fqdn_slices()
    }

    fn reject_unused(&self) -> Result<(), StartError> {
        const KUBERNETES: ProviderName = ProviderName::Kubernetes;
        const GATEWAY_API: ProviderName = ProviderName::GatewayApi;
        let flags: [(&[ProviderName], Option<&str>); 6] = [
            (
                &[KUBERNETES, GATEWAY_API],
                self.gateway_clusters.first_set(),
            ),
            (&[KUBERNETES], self.kubernetes.first_set()),
            (&[GATEWAY_API], self.gateway_api.first_set()),
            (&[ProviderName::Haproxy], self.haproxy.first_set()),
            (&[ProviderName::Dns], self.dns.first_set()),
            (&[ProviderName::Webhook], self.webhook.first_set()),
        ];
        for (owners, flag) in flags {
            if let Some(flag) = flag
                && !owners.contains(&self.provider)
            {
                let selected = shown(self.provider);
                let owners: Vec<String> = owners.iter().copied().map(shown).collect();
                let owners = owners.join(" or ");
                return Err(StartError::Config(format!(
                    "{flag} has no use with --provider {selected}; add --provider {owners}, or leave it out"
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
