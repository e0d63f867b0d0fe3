//! The flags of the provider.

use clap::ArgAction;
use clap::builder::NonEmptyStringValueParser;

/// The flags of the provider `kubernetes`.
#[derive(clap::Args, Clone, Debug, PartialEq, Eq)]
pub(crate) struct KubernetesArgs {
    /// Ingress class in the gateway cluster; defaults to that cluster's default class.
    #[arg(long, env = "KARMADA_GATEWAY_INGRESS_CLASS", value_name = "NAME", value_parser = NonEmptyStringValueParser::new())]
    gateway_ingress_class: Option<String>,
    /// Copy the Secrets of type kubernetes.io/tls that a MultiClusterIngress names to the gateway cluster, which takes rights for Secrets in both APIs. Without it, they are the user's to put there.
    #[arg(long, env = "KARMADA_COPY_TLS_SECRETS", default_value_t = false, action = ArgAction::Set, num_args = 0..=1, default_missing_value = "true", value_name = "BOOL")]
    copy_tls_secrets: bool,
}

impl KubernetesArgs {
    /// Returns the first flag that is set.
    pub(in crate::provider) fn first_set(&self) -> Option<&'static str> {
        if self.copy_tls_secrets {
            return Some("--copy-tls-secrets");
        }
        let ingress_class = self.gateway_ingress_class.as_ref();
        ingress_class.map(|_| "--gateway-ingress-class")
    }

    /// Returns `true` if TLS Secrets are copied.
    pub(in crate::provider) fn copy_tls_secrets(&self) -> bool {
        self.copy_tls_secrets
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

    /// The class of the gateway is that of the flag, and Secrets stay where they are.
    #[test]
    fn flags_name_the_class() {
        let mut flags = vec!["ingress-controller", "--provider=kubernetes"];
        for class in [None, Some("web")] {
            flags.extend(class.map(|_| "--gateway-ingress-class=web"));
            let args = Args::try_parse_from(&flags).unwrap().provider;
            assert_eq!(args.provider, ProviderName::Kubernetes);
            assert_eq!(args.kubernetes.ingress_class(), class);
            assert!(!args.kubernetes.copy_tls_secrets());
        }
        flags.push("--copy-tls-secrets");
        let args = Args::try_parse_from(&flags).unwrap().provider;
        assert!(args.kubernetes.copy_tls_secrets());
    }
}
