//! The flags.

use std::path::PathBuf;

use clap::ArgAction;
use karmada_runtime::args::{CommonArgs, LeaderElectionArgs};
use karmada_runtime::client::{Server, Source};
use karmada_runtime::events::EventBudget;
use karmada_runtime::program::StartError;

use crate::properties::PropertyArgs;

/// Applies in one cluster of a fleet what the hub's placements place there, and tells the hub how it is.
#[derive(clap::Parser, Debug)]
#[command(name = crate::identity::NAME, version)]
pub struct Args {
    /// Kubeconfig of the member cluster; defaults to $KUBECONFIG, ~/.kube/config, or the pod's service account.
    #[arg(long, value_name = "PATH")]
    kubeconfig: Option<PathBuf>,
    /// Context of the member's kubeconfig; defaults to the current one.
    #[arg(long, value_name = "NAME")]
    context: Option<String>,
    /// Name of the MemberCluster on the hub.
    #[arg(long, env = "MEMBER_CLUSTER_NAME", value_name = "NAME")]
    pub(crate) cluster_name: String,
    #[command(flatten)]
    hub: HubArgs,
    #[command(flatten)]
    pub(crate) leader_election: LeaderElectionArgs,
    #[command(flatten)]
    pub(crate) events: EventBudget,
    /// Tell the hub which namespaces the member has: placements of a namespace go to it only if it has that.
    #[arg(long, default_value_t = true, action = ArgAction::Set, num_args = 0..=1, default_missing_value = "true", value_name = "BOOL")]
    pub(crate) collect_namespaces: bool,
    /// Collect the endpoints of placed Services into this cluster's namespace on the hub, where an ingress-controller reads them.
    #[arg(long)]
    pub(crate) collect_endpoints: bool,
    #[command(flatten)]
    pub(crate) properties: PropertyArgs,
    /// Decide everything and write nothing, neither on the hub nor in the member; the metric `would_write_total` counts what would be written.
    #[arg(long)]
    pub(crate) observe_only: bool,
    #[command(flatten)]
    pub(crate) common: CommonArgs,
}

/// The flags of the connection to the hub: a kubeconfig, or else a server and the files of its credentials. The
/// variables are those of KubeFleet's member-agent.
#[derive(clap::Args, Debug)]
struct HubArgs {
    /// Kubeconfig of the hub.
    #[arg(long, value_name = "PATH", conflicts_with = "hub_server_url")]
    hub_kubeconfig: Option<PathBuf>,
    /// Context of the hub's kubeconfig; defaults to the current one.
    #[arg(long, value_name = "NAME", requires = "hub_kubeconfig")]
    hub_context: Option<String>,
    /// URL of the hub, in place of a kubeconfig.
    #[arg(long, env = "HUB_SERVER_URL", value_name = "URL")]
    hub_server_url: Option<String>,
    /// File of the token for the hub.
    #[arg(long, env = "CONFIG_PATH", value_name = "PATH")]
    hub_token_file: Option<PathBuf>,
    /// File of the client certificate for the hub.
    #[arg(
        long,
        env = "IDENTITY_CERT",
        value_name = "PATH",
        requires = "hub_client_key"
    )]
    hub_client_certificate: Option<PathBuf>,
    /// File of the key of that certificate.
    #[arg(
        long,
        env = "IDENTITY_KEY",
        value_name = "PATH",
        requires = "hub_client_certificate"
    )]
    hub_client_key: Option<PathBuf>,
    /// File of the certificates by which the hub is known.
    #[arg(long, env = "CA_BUNDLE", value_name = "PATH")]
    hub_certificate_authority: Option<PathBuf>,
    /// The same certificates themselves, in Base64.
    #[arg(
        long,
        env = "HUB_CERTIFICATE_AUTHORITY",
        value_name = "BASE64",
        conflicts_with = "hub_certificate_authority"
    )]
    hub_certificate_authority_data: Option<String>,
    /// Do not verify the hub's certificate.
    #[arg(long, alias = "tls-insecure")]
    hub_insecure: bool,
    /// Accepted for KubeFleet's manifests: a client certificate is used if one is named.
    #[arg(long, hide = true)]
    use_ca_auth: bool,
}

impl Args {
    /// Returns the source of the connection to the member.
    pub(crate) fn member(&self) -> Source {
        Source {
            kubeconfig: self.kubeconfig.clone(),
            context: self.context.clone(),
            ..Source::default()
        }
    }

    /// Returns the source of the connection to the hub.
    pub(crate) fn hub(&self) -> Result<Source, StartError> {
        let hub = &self.hub;
        if hub.hub_kubeconfig.is_some() {
            return Ok(Source {
                kubeconfig: hub.hub_kubeconfig.clone(),
                context: hub.hub_context.clone(),
                ..Source::default()
            });
        }
        let Some(url) = &hub.hub_server_url else {
            let asked = "no hub: name a kubeconfig with --hub-kubeconfig, or a server with --hub-server-url";
            return Err(StartError::Config(asked.to_owned()));
        };
        if hub.hub_token_file.is_none() && hub.hub_client_certificate.is_none() {
            let asked = "no credentials for the hub: name a token with --hub-token-file, or a certificate with \
                         --hub-client-certificate and --hub-client-key";
            return Err(StartError::Config(asked.to_owned()));
        }
        Ok(Source {
            server: Some(Server {
                url: url.clone(),
                ca_file: hub.hub_certificate_authority.clone(),
                ca_data: hub.hub_certificate_authority_data.clone(),
                insecure: hub.hub_insecure,
                token_file: hub.hub_token_file.clone(),
                certificate_file: hub.hub_client_certificate.clone(),
                key_file: hub.hub_client_key.clone(),
            }),
            ..Source::default()
        })
    }
}

#[cfg(test)]
mod tests {
    use clap::{CommandFactory, Parser};

    use super::*;

    fn parsed(flags: &[&str]) -> Args {
        Args::try_parse_from([&[crate::identity::NAME, "--cluster-name=a"], flags].concat())
            .unwrap()
    }

    #[test]
    fn flags_are_well_formed() {
        Args::command().debug_assert();
    }

    /// A server is known by its parts, or by a kubeconfig that has them all.
    #[test]
    fn hub_has_two_forms() {
        let hub = parsed(&["--hub-kubeconfig=/hub", "--hub-context=b"])
            .hub()
            .unwrap();
        assert_eq!(hub.kubeconfig, Some("/hub".into()));
        assert_eq!(hub.context.as_deref(), Some("b"));
        let server = [
            "--hub-server-url=https://hub",
            "--hub-token-file=/token",
            "--tls-insecure",
        ];
        let server = parsed(&server).hub().unwrap().server.unwrap();
        assert_eq!(server.url, "https://hub");
        assert_eq!(server.token_file, Some("/token".into()));
        assert!(server.insecure);
    }
}
