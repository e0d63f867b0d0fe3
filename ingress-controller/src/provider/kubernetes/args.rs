//! The flags of the provider.

use std::collections::BTreeSet;
use std::convert::Infallible;
use std::path::PathBuf;
use std::str::FromStr;

use clap::ArgAction;
use clap::builder::NonEmptyStringValueParser;
use karmada_runtime::program::StartError;

/// The flags of the gateway clusters.
#[derive(clap::Args, Clone, Debug, PartialEq, Eq)]
pub(crate) struct KubernetesArgs {
    /// Kubeconfig of the gateway cluster, whose ingress controller serves the traffic. May be given several times, each with a name: every gateway serves all, and one that does not answer delays no other.
    #[arg(
        long,
        env = "KARMADA_GATEWAY_KUBECONFIG",
        value_name = "[NAME=]PATH",
        value_delimiter = ','
    )]
    gateway_kubeconfig: Vec<GatewayFile>,
    /// Ingress class in the gateway cluster; defaults to that cluster's default class.
    #[arg(long, env = "KARMADA_GATEWAY_INGRESS_CLASS", value_name = "NAME", value_parser = NonEmptyStringValueParser::new())]
    gateway_ingress_class: Option<String>,
    /// Copy the Secrets of type kubernetes.io/tls that a MultiClusterIngress names to the gateway cluster. Without it, they are the user's to put there.
    #[arg(long, env = "KARMADA_COPY_TLS_SECRETS", default_value_t = true, action = ArgAction::Set, num_args = 0..=1, default_missing_value = "true", value_name = "BOOL")]
    copy_tls_secrets: bool,
    /// Keep the endpoints of blocked clusters in the gateway cluster, in EndpointSlices of no Service, which get no request. Agents on the gateway's nodes see there when a cluster can be reached again.
    #[arg(long, env = "KARMADA_KEEP_BLOCKED_ENDPOINTS")]
    keep_blocked_endpoints: bool,
}

impl KubernetesArgs {
    /// Returns the first flag that is set.
    pub(crate) fn first_set(&self) -> Option<&'static str> {
        if !self.gateway_kubeconfig.is_empty() {
            return Some("--gateway-kubeconfig");
        }
        let ingress_class = self.gateway_ingress_class.as_ref();
        ingress_class.map(|_| "--gateway-ingress-class")
    }

    /// Returns `true` if TLS Secrets are copied.
    pub(crate) fn copy_tls_secrets(&self) -> bool {
        self.copy_tls_secrets
    }

    /// Returns `true` if the endpoints of blocked clusters stay in the gateway cluster.
    pub(super) fn keep_blocked_endpoints(&self) -> bool {
        self.keep_blocked_endpoints
    }

    pub(super) fn kubeconfigs(&self) -> Result<&[GatewayFile], StartError> {
        let files = &self.gateway_kubeconfig;
        let wrong = |text: &str| Err(StartError::Config(text.to_owned()));
        if files.is_empty() {
            return wrong(
                "--provider kubernetes needs --gateway-kubeconfig: name the kubeconfig of the cluster whose ingress controller serves the traffic",
            );
        }
        let names: BTreeSet<&str> = files.iter().map(|file| file.name.as_str()).collect();
        if files.len() > 1 && (names.len() < files.len() || names.contains("")) {
            return wrong(
                "each of several --gateway-kubeconfig needs a name of its own: --gateway-kubeconfig NAME=PATH",
            );
        }
        Ok(files)
    }

    pub(super) fn ingress_class(&self) -> Option<&str> {
        self.gateway_ingress_class.as_deref()
    }
}

/// The kubeconfig of a gateway cluster.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct GatewayFile {
    /// The gateway's name, empty without one.
    pub(super) name: String,
    pub(super) path: PathBuf,
}

impl FromStr for GatewayFile {
    type Err = Infallible;

    /// Reads a path, with a name if what is before a first `=` is one: lower-case letters, digits and dashes.
    fn from_str(text: &str) -> Result<Self, Infallible> {
        let is_name = |name: &str| {
            let mut bytes = name.bytes();
            !name.is_empty()
                && bytes.all(|b| b.is_ascii_lowercase() || b.is_ascii_digit() || b == b'-')
        };
        let named = text.split_once('=').filter(|(name, _)| is_name(name));
        let (name, path) = named.unwrap_or(("", text));
        Ok(Self {
            name: name.to_owned(),
            path: path.into(),
        })
    }
}

#[cfg(test)]
mod tests {
    use clap::Parser;

    use crate::args::Args;
    use crate::provider::ProviderName;

    /// The kubernetes provider writes to the gateway of its flags.
    #[test]
    fn flags_name_the_gateway() {
        let mut flags = vec![
            "ingress-controller",
            "--provider=kubernetes",
            "--gateway-kubeconfig=/k",
        ];
        for class in [None, Some("web")] {
            flags.extend(class.map(|_| "--gateway-ingress-class=web"));
            let args = Args::try_parse_from(&flags).unwrap().provider;
            assert_eq!(args.provider, ProviderName::Kubernetes);
            let [file] = args.kubernetes.kubeconfigs().unwrap() else {
                panic!("{args:?}");
            };
            assert_eq!((file.name.as_str(), file.path.to_str()), ("", Some("/k")));
            assert_eq!(args.kubernetes.ingress_class(), class);
        }
    }

    /// Several gateways have names of their own.
    #[test]
    fn several_gateways_have_names() {
        let names = |files: &[&str]| {
            let flags = files
                .iter()
                .map(|file| format!("--gateway-kubeconfig={file}"));
            let all = ["i".to_owned(), "--provider=kubernetes".to_owned()];
            let args = Args::try_parse_from(all.into_iter().chain(flags)).unwrap();
            let files = args.provider.kubernetes.kubeconfigs().ok()?.iter();
            let shown = files.map(|file| format!("{}:{}", file.name, file.path.display()));
            Some(shown.collect::<Vec<_>>().join(" "))
        };
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
