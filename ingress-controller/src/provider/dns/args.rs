//! The flags of the provider.

use std::path::PathBuf;
use std::time::Duration;

use clap::builder::NonEmptyStringValueParser;
use karmada_runtime::args::duration;
use karmada_runtime::client::Source;
use karmada_runtime::program::StartError;
use traffic::ingress::ControllerName;
use traffic::ingress::dns::Publisher;

const NAMESPACE: &str = "karmada-rs";
const TTL: Duration = Duration::from_mins(1);

/// The flags of records in DNS.
#[derive(clap::Args, Clone, Debug, PartialEq, Eq)]
#[expect(
    clippy::struct_field_names,
    reason = "the flags are called as the fields are"
)]
pub(crate) struct DnsArgs {
    /// Kubeconfig of the cluster in which ExternalDNS runs, with --provider dns.
    #[arg(long, env = "KARMADA_DNS_KUBECONFIG", value_name = "PATH")]
    dns_kubeconfig: Option<PathBuf>,
    /// Namespace of the DNSEndpoints there, which must exist; defaults to karmada-rs.
    #[arg(long, env = "KARMADA_DNS_NAMESPACE", value_name = "NAME", value_parser = NonEmptyStringValueParser::new())]
    dns_namespace: Option<String>,
    /// Time to live of the records, in whole seconds; defaults to 1m.
    #[arg(long, env = "KARMADA_DNS_TTL", value_name = "DURATION", value_parser = duration)]
    dns_ttl: Option<Duration>,
    /// Identifier of the records, where a second fleet publishes the same hosts.
    #[arg(long, env = "KARMADA_DNS_SET_IDENTIFIER", value_name = "NAME", value_parser = NonEmptyStringValueParser::new())]
    dns_set_identifier: Option<String>,
}

impl DnsArgs {
    /// Returns the first flag that is set.
    pub(crate) fn first_set(&self) -> Option<&'static str> {
        let flags = [
            (self.dns_kubeconfig.is_some(), "--dns-kubeconfig"),
            (self.dns_namespace.is_some(), "--dns-namespace"),
            (self.dns_ttl.is_some(), "--dns-ttl"),
            (self.dns_set_identifier.is_some(), "--dns-set-identifier"),
        ];
        let set = flags.into_iter().find(|(is_set, _)| *is_set);
        set.map(|(_, flag)| flag)
    }

    /// Returns how the cluster is reached.
    pub(super) fn source(&self) -> Result<Source, StartError> {
        let Some(path) = &self.dns_kubeconfig else {
            let asked = "--provider dns needs --dns-kubeconfig: name the kubeconfig of the cluster in which ExternalDNS runs";
            return Err(StartError::Config(asked.to_owned()));
        };
        Ok(Source {
            kubeconfig: Some(path.clone()),
            ..Source::default()
        })
    }

    /// Returns the factory of the objects.
    pub(super) fn publisher(&self, controller: &ControllerName) -> Publisher {
        let namespace = self.dns_namespace.as_deref().unwrap_or(NAMESPACE);
        let ttl = self.dns_ttl.unwrap_or(TTL);
        let set_identifier = self.dns_set_identifier.clone().unwrap_or_default();
        Publisher::new(controller, namespace.to_owned(), ttl, set_identifier)
    }
}

#[cfg(test)]
mod tests {
    use clap::Parser;
    use traffic::ingress::PossibleAddresses;

    use super::*;
    use crate::args::Args;
    use crate::provider::ProviderName;

    fn publisher(flags: &[&str]) -> Publisher {
        let all = [
            "ingress-controller",
            "--provider=dns",
            "--dns-kubeconfig=/k",
        ];
        let args = Args::try_parse_from(all.iter().chain(flags))
            .unwrap()
            .provider;
        assert_eq!(args.provider, ProviderName::Dns);
        assert_eq!(args.possible_addresses(), PossibleAddresses::Reported);
        assert!(args.dns.source().is_ok());
        args.dns.publisher(&"example.com/ours".parse().unwrap())
    }

    /// The flags say where records are written, and how long they live.
    #[test]
    fn flags_describe_records() {
        let default = publisher(&[]);
        assert_eq!((default.namespace(), default.ttl()), (NAMESPACE, TTL));
        assert!(!default.shares_names());
        let flags = [
            "--dns-namespace=dns",
            "--dns-ttl=1500ms",
            "--dns-set-identifier=eu",
        ];
        let other = publisher(&flags);
        let two = Duration::from_secs(2);
        assert_eq!((other.namespace(), other.ttl()), ("dns", two));
        assert!(other.shares_names());
    }
}
