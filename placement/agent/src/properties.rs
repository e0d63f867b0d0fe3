//! The properties of the member that the hub hears of on request: the costs of its nodes, and the ways to its API.

use std::path::{Path, PathBuf};
use std::time::Duration;

use kube::Client;
use objects::usage::ClusterUsage;
use parking_lot::Mutex;
use placement_rules::heartbeat::{Collected, Entrypoint, Prices, read_prices};
use tokio::time::{Instant, timeout};

/// The time for which the version of the member's API is taken for the same.
const VERSION_PERIOD: Duration = Duration::from_mins(15);
/// The longest that it may take to tell its version.
const VERSION_LIMIT: Duration = Duration::from_secs(5);

/// What is asked for.
#[derive(clap::Args, Clone, Debug, Default)]
pub(crate) struct PropertyArgs {
    /// File with the price of each type of machine for an hour, a map in YAML or JSON: the hub hears what a core and a GiB of memory cost here on average, and of how many nodes of each type, by the names of KubeFleet's `kubernetes.azure.com` properties. It is read again with each heartbeat.
    #[arg(long, value_name = "PATH")]
    instance_prices: Option<PathBuf>,
    /// URL by which others reach the member's API: the hub hears of it and of the version, for ClusterProfiles.
    #[arg(long, value_name = "URL")]
    cluster_entrypoint: Option<String>,
    /// File of the certificates by which that URL is known.
    #[arg(long, value_name = "PATH", requires = "cluster_entrypoint")]
    cluster_entrypoint_authority: Option<PathBuf>,
}

/// Collects the properties on request.
pub(crate) struct Properties {
    args: PropertyArgs,
    member: Client,
    version: Mutex<Option<(Instant, String)>>,
}

impl Properties {
    pub(crate) fn new(args: PropertyArgs, member: Client) -> Self {
        Self {
            args,
            member,
            version: Mutex::default(),
        }
    }

    /// Returns the known properties; the costs only once the nodes are known.
    pub(crate) async fn collect(&self, usage: Option<&ClusterUsage>) -> Collected {
        let mut collected = Collected::default();
        if let (Some(path), Some(usage)) = (&self.args.instance_prices, usage) {
            collected.add_costs(usage, &prices(path));
        }
        if let Some(url) = &self.args.cluster_entrypoint {
            let authority = self.args.cluster_entrypoint_authority.as_deref();
            collected.add_entrypoint(&Entrypoint {
                url: url.clone(),
                authority: authority.and_then(authority_in),
                version: self.version().await,
            });
        }
        collected
    }

    /// Returns the version of the member's API; that of before while it does not answer.
    async fn version(&self) -> Option<String> {
        let known = self.version.lock().clone();
        if let Some((at, version)) = &known
            && at.elapsed() < VERSION_PERIOD
        {
            return Some(version.clone());
        }
        let asked = timeout(VERSION_LIMIT, self.member.apiserver_version()).await;
        let Ok(Ok(info)) = asked else {
            return known.map(|(_, version)| version);
        };
        let version = info.git_version;
        *self.version.lock() = Some((Instant::now(), version.clone()));
        Some(version)
    }
}

fn prices(path: &Path) -> Result<Prices, String> {
    let text = std::fs::read_to_string(path).map_err(|error| error.to_string());
    let prices = text.and_then(|text| read_prices(&text));
    prices.map_err(|problem| format!("{}: {problem}", path.display()))
}

fn authority_in(path: &Path) -> Option<String> {
    std::fs::read_to_string(path)
        .inspect_err(|error| {
            let path = path.display();
            tracing::warn!(%path, %error, "Cannot read the certificates of the entrypoint, will retry");
        })
        .ok()
}
