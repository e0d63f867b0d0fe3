//! The flags of the provider.

use std::path::PathBuf;

use clap::ArgAction;
use clap::builder::NonEmptyStringValueParser;
use karmada_runtime::program::StartError;

use crate::provider::named::{Named, check_names};

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
    gateway_kubeconfig: Vec<Named<PathBuf>>,
    /// Ingress class in the gateway cluster; defaults to that cluster's default class.
    #[arg(long, env = "KARMADA_GATEWAY_INGRESS_CLASS", value_name = "NAME", value_parser = NonEmptyStringValueParser::new())]
    gateway_ingress_class: Option<String>,
    /// Copy the Secrets of type kubernetes.io/tls that a MultiClusterIngress names to the gateway cluster. Without it, they are the user's to put there.
    #[arg(long, env = "KARMADA_COPY_TLS_SECRETS", default_value_t = true, action = ArgAction::Set, num_args = 0..=1, default_missing_value = "true", value_name = "BOOL")]
    copy_tls_secrets: bool,
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

    pub(super) fn kubeconfigs(&self) -> Result<&[Named<PathBuf>], StartError> {
        let files = &self.gateway_kubeconfig;
        if files.is_empty() {
            return Err(StartError::Config(
                "--provider kubernetes needs --gateway-kubeconfig: name the kubeconfig of the cluster whose ingress controller serves the traffic".to_owned(),
            ));
        }
        check_names("--gateway-kubeconfig", "PATH", files)?;
        Ok(files)
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
            let [file] = args.kubernetes.kubeconfigs().unwrap() else {
                panic!("{args:?}");
            };
            assert_eq!((file.name.as_str(), file.value.to_str()), ("", Some("/k")));
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
            let shown = files.map(|file| format!("{}:{}", file.name, file.value.display()));
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
