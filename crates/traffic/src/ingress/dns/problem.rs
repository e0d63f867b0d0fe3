use std::collections::BTreeSet;
use std::fmt;
use std::net::IpAddr;

use objects::Key;

/// A reason why a host is not published as it is written, for the user to fix.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum DnsProblem {
    /// No rule names a host.
    NoHost,
    /// A host is no DNS name.
    InvalidHost {
        /// The host.
        host: String,
    },
    /// Another ingress publishes the host, and leads it elsewhere.
    Taken {
        /// The host.
        host: String,
        /// The ingress.
        by: Key,
    },
    /// No address serves every Service of the host.
    Apart {
        /// The host.
        host: String,
        /// The Services.
        services: BTreeSet<String>,
    },
    /// A target is left out.
    Unusable {
        /// The host.
        host: String,
        /// The cluster.
        cluster: String,
        /// The address or the name.
        target: String,
        /// The reason.
        reason: &'static str,
    },
    /// The name does not resolve to the published addresses.
    NotServed {
        /// The host.
        host: String,
        /// The targets that are published.
        published: BTreeSet<String>,
        /// The addresses that were found.
        found: BTreeSet<IpAddr>,
    },
}

impl fmt::Display for DnsProblem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::NoHost => f.write_str(
                "no rule names a host, so there is no name to publish; add the host to a rule",
            ),
            Self::InvalidHost { host } => {
                write!(f, "{host:?} is no DNS name and is not published")
            }
            Self::Taken { host, by } => write!(
                f,
                "host {host} is published for MultiClusterIngress {by} and leads to other addresses; name it in one of them"
            ),
            Self::Apart { host, services } => write!(
                f,
                "no address serves every Service of host {host} ({}), and DNS does not choose by path: requests for one may reach another; give the Services the same clusters, or use the addresses of ingress controllers (--backend-addresses ingresses)",
                joined(services)
            ),
            Self::Unusable {
                host,
                cluster,
                target,
                reason,
            } => write!(
                f,
                "host {host} does not lead to {target} of cluster {cluster}: it {reason}"
            ),
            Self::NotServed {
                host,
                published,
                found,
            } if found.is_empty() => write!(
                f,
                "host {host} does not resolve, though {} was published: ExternalDNS does not run, or does not have this zone",
                joined(published)
            ),
            Self::NotServed {
                host,
                published,
                found,
            } => write!(
                f,
                "host {host} resolves to {}, and {} was published: the record belongs to somebody else, or ExternalDNS does not follow",
                joined(found),
                joined(published)
            ),
        }
    }
}

fn joined<T: ToString>(all: &BTreeSet<T>) -> String {
    let all: Vec<String> = all.iter().map(ToString::to_string).collect();
    all.join(", ")
}
