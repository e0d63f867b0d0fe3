use std::fmt;

use objects::Key;

/// A reason why requests are not served as an ingress says, for the user to remove.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum RouteProblem {
    /// A route cannot have the host.
    Host {
        /// The host.
        host: String,
    },
    /// A route cannot have the path.
    Path {
        /// The host; empty for all.
        host: String,
        /// The path.
        path: String,
        /// The reason.
        reason: &'static str,
    },
    /// Another ingress of ours has the host and path.
    Taken {
        /// The ingress.
        by: Key,
        /// The host; empty for all.
        host: String,
        /// The path, with its type.
        path: String,
    },
    /// A route of somebody else has the host and path.
    Conflict {
        /// The route.
        route: Key,
        /// The host; empty for all.
        host: String,
        /// The path, with its type.
        path: String,
    },
    /// The Gateway does not exist.
    NoGateway {
        /// The Gateway.
        gateway: Key,
    },
    /// The Gateway's controller has not taken it up.
    NotProgrammed {
        /// The Gateway.
        gateway: Key,
        /// The reason and message of its controller.
        said: String,
    },
    /// The Gateway refuses a route, or does not serve all of it.
    Refused {
        /// The Gateway.
        gateway: Key,
        /// The route.
        route: Key,
        /// The reason and message of its controller.
        said: String,
    },
    /// No listener of the Gateway serves the host with TLS.
    NoTls {
        /// The Gateway.
        gateway: Key,
        /// The host; empty for all.
        host: String,
    },
}

impl fmt::Display for RouteProblem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Host { host } => write!(
                f,
                "{host:?} is not served: it cannot be the host of an HTTPRoute, which is a DNS name in lower case and may begin with \"*.\""
            ),
            Self::Path { host, path, reason } => {
                let host = shown(host);
                write!(f, "path {path:?} of {host} is not served: it {reason}")
            }
            Self::Taken { by, host, path } => {
                let host = shown(host);
                write!(
                    f,
                    "{path} of {host} is not served for this MultiClusterIngress: {by} has it already; remove it from one of the two"
                )
            }
            Self::Conflict { route, host, path } => {
                let host = shown(host);
                write!(
                    f,
                    "HTTPRoute {route}, which is not ours, has {path} of {host} as well, and nothing says which of the two is served; remove it there or here"
                )
            }
            Self::NoGateway { gateway } => write!(
                f,
                "Gateway {gateway} does not exist; create it, or name another with --gateway"
            ),
            Self::NotProgrammed { gateway, said } => {
                write!(f, "Gateway {gateway} is not in service: {said}")
            }
            Self::Refused {
                gateway,
                route,
                said,
            } => write!(
                f,
                "Gateway {gateway} does not serve all of HTTPRoute {route}: {said}"
            ),
            Self::NoTls { gateway, host } => {
                let host = shown(host);
                write!(
                    f,
                    "no listener of Gateway {gateway} serves {host} with TLS; add one with protocol HTTPS, this host and a certificate"
                )
            }
        }
    }
}

fn shown(host: &str) -> &str {
    if host.is_empty() { "any host" } else { host }
}
