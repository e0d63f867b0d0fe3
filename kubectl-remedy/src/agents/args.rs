//! The flags of `join`, `leave` and `renew`.

use std::time::Duration;

use http::Uri;
use karmada_runtime::args::{cluster_name, duration};

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
    pub(super) clusters: Vec<String>,
    /// Every cluster of the API.
    #[arg(long)]
    pub(super) all: bool,
}

#[derive(clap::Args, Debug)]
pub(crate) struct JoinArgs {
    #[command(flatten)]
    pub(super) clusters: ClustersArgs,
    /// Image of the agent, such as registry.example/cluster-health-agent:0.1.0; by default the one that the cluster has.
    #[arg(long, value_name = "IMAGE", value_parser = image)]
    pub(super) image: Option<String>,
    /// Address of the Karmada API as members reach it, such as `https://203.0.113.7:5443`; by default the one that the cluster has, or that of the kubeconfig.
    #[arg(long, value_name = "URL", value_parser = server)]
    pub(super) server: Option<String>,
    /// Name that the certificate of that address contains, if it lacks the address itself. It is compared, and never looked up.
    #[arg(long, value_name = "NAME")]
    pub(super) tls_server_name: Option<String>,
    /// Write the agent directly into the member, by this context of the kubeconfig, and not as a Work. For one cluster.
    #[arg(long, value_name = "CONTEXT")]
    pub(super) member_context: Option<String>,
    /// Print what belongs into the member, its token included, in place of writing it there. For one cluster. Its rights in the Karmada API are written all the same.
    #[arg(short, long, value_enum, conflicts_with = "member_context")]
    pub(super) output: Option<Format>,
    /// Time for which a new token is asked. The API server may grant less.
    #[arg(long, value_name = "DURATION", default_value = "8760h", value_parser = duration)]
    pub(super) token_duration: Duration,
    /// Time to wait until the Works are applied.
    #[arg(long, value_name = "DURATION", default_value = "2m", value_parser = duration)]
    pub(super) timeout: Duration,
}

#[derive(clap::Args, Debug)]
pub(crate) struct LeaveArgs {
    #[command(flatten)]
    pub(super) clusters: ClustersArgs,
    /// Delete the agent directly in the member, by this context of the kubeconfig. For one cluster.
    #[arg(long, value_name = "CONTEXT")]
    pub(super) member_context: Option<String>,
    /// Time to wait until the Works are gone.
    #[arg(long, value_name = "DURATION", default_value = "2m", value_parser = duration)]
    pub(super) timeout: Duration,
}

#[derive(clap::Args, Debug)]
pub(crate) struct RenewArgs {
    /// The clusters; by default all whose agent is a Work of `join`.
    #[arg(value_name = "CLUSTER", value_parser = cluster_name)]
    pub(super) clusters: Vec<String>,
    /// Renew tokens that end sooner than this; by default those that have less than a third of their life left.
    #[arg(long, value_name = "DURATION", value_parser = duration)]
    pub(super) when_less_than: Option<Duration>,
    /// Time for which a new token is asked. The API server may grant less.
    #[arg(long, value_name = "DURATION", default_value = "8760h", value_parser = duration)]
    pub(super) token_duration: Duration,
}

fn image(text: &str) -> Result<String, String> {
    if text.is_empty() || text.contains(char::is_whitespace) {
        return Err(
            "write an image such as registry.example/cluster-health-agent:0.1.0".to_owned(),
        );
    }
    Ok(text.to_owned())
}

fn server(text: &str) -> Result<String, String> {
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
