//! The flags of the gateway clusters.

use std::path::PathBuf;

use karmada_runtime::client::Source;
use karmada_runtime::program::{Program, StartError};
use kube::Client;

use crate::provider::balancer::label;
use crate::provider::named::{Named, check_names};

/// The flags of the gateway clusters, of every provider that writes to such.
#[derive(clap::Args, Clone, Debug, PartialEq, Eq)]
pub(crate) struct GatewayClusterArgs {
    /// Kubeconfig of the gateway cluster, which serves the traffic. May be given several times, each with a name: every gateway serves all, and one that does not answer delays no other.
    #[arg(
        long,
        env = "KARMADA_GATEWAY_KUBECONFIG",
        value_name = "[NAME=]PATH",
        value_delimiter = ','
    )]
    gateway_kubeconfig: Vec<Named<PathBuf>>,
    /// Keep the endpoints of blocked clusters in the gateway cluster, in EndpointSlices of no Service, which get no request. Agents on the gateway's nodes see there when a cluster can be reached again.
    #[arg(long, env = "KARMADA_KEEP_BLOCKED_ENDPOINTS")]
    keep_blocked_endpoints: bool,
    /// Write the host names that load balancers of members report into EndpointSlices of type FQDN, for a gateway that looks them up itself, as Traefik does. By default the controller looks them up.
    #[arg(long, env = "KARMADA_FQDN_SLICES")]
    fqdn_slices: bool,
}

impl GatewayClusterArgs {
    /// Returns the first flag that is set.
    pub(in crate::provider) fn first_set(&self) -> Option<&'static str> {
        if !self.gateway_kubeconfig.is_empty() {
            return Some("--gateway-kubeconfig");
        }
        if self.fqdn_slices {
            return Some("--fqdn-slices");
        }
        self.keep_blocked_endpoints
            .then_some("--keep-blocked-endpoints")
    }

    /// Returns `true` if the gateway takes the host names of load balancers.
    pub(in crate::provider) fn fqdn_slices(&self) -> bool {
        self.fqdn_slices
    }

    /// Returns `true` if the endpoints of blocked clusters stay in the gateway cluster.
    pub(super) fn keep_blocked_endpoints(&self) -> bool {
        self.keep_blocked_endpoints
    }

    /// Connects to each cluster, and returns the connections with the clusters' names.
    ///
    /// # Errors
    /// Fails if there is none, which the `provider` needs, if the names are not distinct, or if a file cannot be used.
    pub(super) async fn connect(
        &self,
        provider: &str,
        program: &mut Program,
    ) -> Result<Vec<(&'static str, Client)>, StartError> {
        let mut all = Vec::new();
        for file in self.kubeconfigs(provider)? {
            let name: &'static str = file.name.clone().leak();
            let source = Source {
                kubeconfig: Some(file.value.clone()),
                ..Source::default()
            };
            let client = program.connect(label("gateway", name), &source).await?;
            all.push((name, client));
        }
        Ok(all)
    }

    fn kubeconfigs(&self, provider: &str) -> Result<&[Named<PathBuf>], StartError> {
        let files = &self.gateway_kubeconfig;
        if files.is_empty() {
            return Err(StartError::Config(format!(
                "--provider {provider} needs --gateway-kubeconfig: name the kubeconfig of the cluster that serves the traffic"
            )));
        }
        check_names("--gateway-kubeconfig", "PATH", files)?;
        Ok(files)
    }
}

#[cfg(test)]
mod tests {
    use clap::Parser;

    use crate::args::Args;

    fn names(files: &[&str]) -> Option<String> {
        let flags = files
            .iter()
            .map(|file| format!("--gateway-kubeconfig={file}"));
        let all = ["i".to_owned(), "--provider=kubernetes".to_owned()];
        let args = Args::try_parse_from(all.into_iter().chain(flags)).unwrap();
        let clusters = args.provider.gateway_clusters;
        let files = clusters.kubeconfigs("kubernetes").ok()?.iter();
        let shown = files.map(|file| format!("{}:{}", file.name, file.value.display()));
        Some(shown.collect::<Vec<_>>().join(" "))
    }

    /// Several gateways have names of their own.
    #[test]
    fn several_gateways_have_names() {
        assert_eq!(names(&["eu=/a", "us-1=/b=c"]).unwrap(), "eu:/a us-1:/b=c");
        assert_eq!(names(&["eu=/a,us=/b"]).unwrap(), "eu:/a us:/b");
        assert_eq!(names(&["eu=/a"]).unwrap(), "eu:/a");
        assert_eq!(names(&["/a=b"]).unwrap(), ":/a=b");
        for wrong in [
            &[][..],
            &["/a", "us=/b"],
            &["eu=/a", "eu=/b"],
            &["/a", "/b"],
        ] {
            assert_eq!(names(wrong), None, "{wrong:?}");
        }
    }
}
