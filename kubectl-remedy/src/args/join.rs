//! The flags of `join`, `leave` and `renew`.

use std::path::PathBuf;
use std::time::Duration;

use clap::ArgAction;
use http::Uri;
use karmada_runtime::args::{cluster_name, duration};

use propagation_rules::rights::GroupResource;

use crate::manifest::Format;

/// The clusters that are meant.
#[derive(clap::Args, Debug)]
pub(crate) struct ClustersArgs {
    /// The clusters.
    #[arg(
        value_name = "CLUSTER",
        required_unless_present = "all",
        conflicts_with = "all",
        value_parser = cluster_name
    )]
    pub(crate) clusters: Vec<String>,
    /// Every cluster of the API.
    #[arg(long)]
    pub(crate) all: bool,
}

#[derive(clap::Args, Debug)]
pub(crate) struct JoinArgs {
    #[command(flatten)]
    pub(crate) clusters: ClustersArgs,
    /// Let the clusters join a fleet without Karmada: an account with its role in the member, a Secret and a Cluster here. The member is reached by the context of the kubeconfig that has the cluster's name.
    #[arg(long, conflicts_with_all = ["all", "image", "tls_server_name", "output"])]
    pub(crate) fleet: bool,
    /// With --fleet: the kinds that may be propagated there, such as apps/deployments,configmaps; by default those that the role of the member has, or the usual ones without roles, their bindings and definitions.
    #[arg(
        long,
        value_name = "GROUP/RESOURCE,...",
        value_delimiter = ',',
        requires = "fleet"
    )]
    pub(crate) kinds: Vec<GroupResource>,
    /// Image of the agent, such as registry.example/cluster-health-agent:0.1.0; by default the one that the cluster has.
    #[arg(long, value_name = "IMAGE", value_parser = image)]
    pub(crate) image: Option<String>,
    /// Address of the Karmada API as members reach it, or with --fleet of the member's as the fleet reaches it, such as `https://203.0.113.7:5443`; by default the one that the cluster has, or that of the kubeconfig.
    #[arg(long, value_name = "URL", value_parser = server)]
    pub(crate) server: Option<String>,
    /// Name that the certificate of that address contains, if it lacks the address itself. It is compared, and never looked up.
    #[arg(long, value_name = "NAME")]
    pub(crate) tls_server_name: Option<String>,
    /// Folder of a kustomize component that changes the agent, such as manifests/openshift. It may be given several times; the agent keeps them, and the next join applies them again.
    #[arg(long, value_name = "DIR", conflicts_with = "fleet")]
    pub(crate) kustomize: Vec<PathBuf>,
    /// Forget the components that the agent has kept.
    #[arg(long, conflicts_with_all = ["fleet", "kustomize"])]
    pub(crate) no_kustomize: bool,
    /// Write the agent directly into the member, by this context of the kubeconfig, and not as a Work; with --fleet, reach the member by it. For one cluster.
    #[arg(long, value_name = "CONTEXT")]
    pub(crate) member_context: Option<String>,
    /// Print what belongs into the member, its token included, in place of writing it there. For one cluster. Its rights in the Karmada API are written all the same.
    #[arg(short, long, value_enum, conflicts_with = "member_context")]
    pub(crate) output: Option<Format>,
    /// Time for which a new token is asked. The API server may grant less.
    #[arg(long, value_name = "DURATION", default_value = "8760h", value_parser = duration)]
    pub(crate) token_duration: Duration,
    /// Whether to wait until the agents report, or only until their Works are applied.
    #[arg(
        long,
        value_name = "BOOL",
        default_value_t = true,
        num_args = 0..=1,
        require_equals = true,
        default_missing_value = "true",
        action = ArgAction::Set,
        conflicts_with = "fleet"
    )]
    pub(crate) wait: bool,
    /// Time to wait until the Works are applied, and as much until the agents report; or with --fleet until the clusters are ready.
    #[arg(long, value_name = "DURATION", default_value = "2m", value_parser = duration)]
    pub(crate) timeout: Duration,
}

#[derive(clap::Args, Debug)]
pub(crate) struct LeaveArgs {
    #[command(flatten)]
    pub(crate) clusters: ClustersArgs,
    /// Let the clusters leave a fleet without Karmada: what `join --fleet` has made is deleted, and what was propagated there with it. The member is reached by the context of the kubeconfig that has the cluster's name.
    #[arg(long)]
    pub(crate) fleet: bool,
    /// Delete the agent directly in the member, by this context of the kubeconfig; with --fleet, reach the member by it. For one cluster.
    #[arg(long, value_name = "CONTEXT")]
    pub(crate) member_context: Option<String>,
    /// Time to wait until the Works are gone, or with --fleet the clusters.
    #[arg(long, value_name = "DURATION", default_value = "2m", value_parser = duration)]
    pub(crate) timeout: Duration,
}

#[derive(clap::Args, Debug)]
pub(crate) struct RenewArgs {
    /// The clusters; by default all whose agent is a Work of `join`, and with --fleet all that `join --fleet` has let join.
    #[arg(value_name = "CLUSTER", value_parser = cluster_name)]
    pub(crate) clusters: Vec<String>,
    /// Renew the tokens in the Secrets of the programs on the host, too, by this context of the kubeconfig. Each account is asked with the token that it gave last.
    #[arg(
        long,
        value_name = "CONTEXT",
        group = "host",
        conflicts_with = "clusters"
    )]
    pub(crate) host_context: Option<String>,
    /// The same, by the service account of the pod in which this runs.
    #[arg(long, group = "host", conflicts_with = "clusters")]
    pub(crate) in_host: bool,
    /// Namespace of those Secrets; by default that of the pod, or karmada-system.
    #[arg(long, value_name = "NAMESPACE", requires = "host")]
    pub(crate) host_namespace: Option<String>,
    /// Renew no tokens of agents, and those Secrets that the programs of a hub have, and in members those of a hub or of mode Pull. No Karmada is asked.
    #[arg(long, requires = "host", conflicts_with = "fleet")]
    pub(crate) only_programs: bool,
    /// Renew the tokens by which a fleet without Karmada reaches its members, too. Each member is asked with the token that it gave last.
    #[arg(long)]
    pub(crate) fleet: bool,
    /// Renew tokens that end sooner than this; by default those that have less than a third of their life left.
    #[arg(long, value_name = "DURATION", value_parser = duration)]
    pub(crate) when_less_than: Option<Duration>,
    /// Time for which a new token is asked. The API server may grant less.
    #[arg(long, value_name = "DURATION", default_value = "8760h", value_parser = duration)]
    pub(crate) token_duration: Duration,
}

impl RenewArgs {
    /// Returns `true` if the tokens of the programs on the host are meant, too.
    pub(crate) fn has_host(&self) -> bool {
        self.in_host || self.host_context.is_some()
    }
}

fn image(text: &str) -> Result<String, String> {
    if text.is_empty() || text.contains(char::is_whitespace) {
        return Err(
            "write an image such as registry.example/cluster-health-agent:0.1.0".to_owned(),
        );
    }
    Ok(text.to_owned())
}

/// Parses the URL of a server.
pub(super) fn server(text: &str) -> Result<String, String> {
    const HELP: &str = "write a URL such as https://203.0.113.7:5443";
    let url: Uri = text.parse().map_err(|_| HELP.to_owned())?;
    let is_url = matches!(url.scheme_str(), Some("https" | "http"))
        && url.host().is_some_and(|host| !host.is_empty());
    if is_url {
        Ok(text.to_owned())
    } else {
        Err(HELP.to_owned())
    }
}
