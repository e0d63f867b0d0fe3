//! The flags of the provider.

use std::path::{Path, PathBuf};

use clap::builder::NonEmptyStringValueParser;
use karmada_runtime::program::StartError;

/// The flags of the gateway cluster.
#[derive(clap::Args, Clone, Debug, PartialEq, Eq)]
pub(crate) struct KubernetesArgs {
    /// Kubeconfig of the gateway cluster, whose ingress controller serves the traffic.
    #[arg(long, env = "KARMADA_GATEWAY_KUBECONFIG", value_name = "PATH")]
    gateway_kubeconfig: Option<PathBuf>,
    /// Ingress class in the gateway cluster; defaults to that cluster's default class.
    #[arg(long, env = "KARMADA_GATEWAY_INGRESS_CLASS", value_name = "NAME", value_parser = NonEmptyStringValueParser::new())]
    gateway_ingress_class: Option<String>,
}

impl KubernetesArgs {
    /// Returns the first flag that is set.
    pub(crate) fn first_set(&self) -> Option<&'static str> {
        if self.gateway_kubeconfig.is_some() {
            return Some("--gateway-kubeconfig");
        }
        let ingress_class = self.gateway_ingress_class.as_ref();
        ingress_class.map(|_| "--gateway-ingress-class")
    }

    pub(super) fn kubeconfig(&self) -> Result<&Path, StartError> {
        self.gateway_kubeconfig.as_deref().ok_or_else(|| {
            StartError::Config("--provider kubernetes needs --gateway-kubeconfig: name the kubeconfig of the cluster whose ingress controller serves the traffic".to_owned())
        })
    }

    pub(super) fn ingress_class(&self) -> Option<&str> {
        self.gateway_ingress_class.as_deref()
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
            assert_eq!(args.kubernetes.kubeconfig().unwrap().to_str(), Some("/k"));
            assert_eq!(args.kubernetes.ingress_class(), class);
        }
    }
}
