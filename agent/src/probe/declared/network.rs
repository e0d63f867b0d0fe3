//! The way to a server: the addresses of its name, a connection to one of them, and TLS.

use std::io;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use std::path::Path;
use std::sync::Arc;

use health::failure::FailureClass;
use health::observation::{Failure, Observation};
use karmada_runtime::client::Addresses;
use karmada_runtime::error::Chain;
use kube::Client;
use rustls::crypto::ring;
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, ServerName};
use rustls::{ClientConfig, RootCertStore};
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::TcpStream;
use tokio::time::{Instant, timeout, timeout_at};
use tokio_rustls::TlsConnector;

/// The name has no address.
pub(super) const NO_ADDRESS: FailureClass = FailureClass::new(100, "no-address");
/// There is no TLS, or none with a certificate of the authorities.
pub(super) const TLS: FailureClass = FailureClass::new(101, "tls");
/// The connection is rejected.
pub(super) const REFUSED: FailureClass = FailureClass::new(102, "refused");
/// The connection was made, and then reset or closed before a response.
pub(super) const RESET: FailureClass = FailureClass::new(103, "reset");
/// There is no route.
pub(super) const UNREACHABLE: FailureClass = FailureClass::new(104, "unreachable");
/// No response came in time.
pub(super) const TIMEOUT: FailureClass = FailureClass::new(105, "timeout");

/// The most addresses of a name that a round tries.
const TRIED: usize = 3;
/// The part of a round that a lookup may take while addresses are known.
const LOOKUP_PART: u32 = 4;
/// The longest details of a failure, in characters.
const LONGEST_DETAILS: usize = 300;

/// The addresses at which clouds give a node its credentials (AWS, Azure, Google and others; ECS; Alibaba; AWS by IPv6). A file
/// of signals must be no way to them.
const METADATA_SERVICES: [IpAddr; 4] = [
    IpAddr::V4(Ipv4Addr::new(169, 254, 169, 254)),
    IpAddr::V4(Ipv4Addr::new(169, 254, 170, 2)),
    IpAddr::V4(Ipv4Addr::new(100, 100, 100, 200)),
    IpAddr::V6(Ipv6Addr::new(0xfd00, 0xec2, 0, 0, 0, 0, 0, 0x254)),
];

/// The reason why a round does not succeed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Unmet {
    /// Nothing was observed, for this reason.
    Unobserved(String),
    /// It failed.
    Failed {
        failure: Failure,
        /// For people: logs and `check` have it, and no condition.
        details: String,
    },
}

impl Unmet {
    pub(super) fn unobserved(reason: impl Into<String>) -> Self {
        Self::Unobserved(brief(&reason.into()))
    }

    pub(super) fn failed(
        class: FailureClass,
        server: SocketAddr,
        details: impl Into<String>,
    ) -> Self {
        Self::Failed {
            failure: Failure::new(class, server),
            details: brief(&details.into()),
        }
    }

    /// Returns the failure of a round that is about no server.
    pub(super) fn nowhere(class: FailureClass, details: impl Into<String>) -> Self {
        Self::Failed {
            failure: Failure::without_server(class),
            details: brief(&details.into()),
        }
    }

    /// Returns the end of a connection, or of an attempt at one, by this error.
    pub(super) fn by_io(error: &io::Error, server: SocketAddr) -> Self {
        let details = Chain(error).to_string();
        match class_of(error) {
            Some(class) => Self::failed(class, server, details),
            None => Self::unobserved(details),
        }
    }

    /// Returns the end of a round that has waited for `server` long enough.
    pub(super) fn late(server: SocketAddr) -> Self {
        Self::failed(TIMEOUT, server, "no response in time")
    }

    pub(super) fn observation(&self) -> Observation {
        match self {
            Self::Unobserved(_) => Observation::Internal,
            Self::Failed { failure, .. } => Observation::Failed(*failure),
        }
    }
}

/// Returns a text on one line, and not too long: servers write some of it.
pub(super) fn brief(text: &str) -> String {
    let line = text.split(|c: char| c.is_control() || c.is_whitespace());
    let words: Vec<_> = line.filter(|word| !word.is_empty()).collect();
    words.join(" ").chars().take(LONGEST_DETAILS).collect()
}

/// Returns the class of a failed connection, or `None` where this node lacks or prohibits something, which says nothing about
/// the server.
fn class_of(error: &io::Error) -> Option<FailureClass> {
    use io::ErrorKind;
    Some(match error.kind() {
        ErrorKind::ConnectionRefused => REFUSED,
        ErrorKind::ConnectionReset
        | ErrorKind::ConnectionAborted
        | ErrorKind::BrokenPipe
        | ErrorKind::NotConnected
        | ErrorKind::UnexpectedEof => RESET,
        ErrorKind::HostUnreachable | ErrorKind::NetworkUnreachable => UNREACHABLE,
        ErrorKind::TimedOut => TIMEOUT,
        // rustls says so of what the server has sent.
        ErrorKind::InvalidData => TLS,
        _ => return None,
    })
}

/// Returns `true` for an address that no probe may ask.
pub(super) fn is_metadata_service(ip: IpAddr) -> bool {
    METADATA_SERVICES.contains(&ip.to_canonical())
}

/// The node on which probes run.
#[derive(Clone)]
pub(super) struct Node {
    pub(super) addresses: Addresses,
    /// Its address, if a flag gives it.
    pub(super) ip: Option<IpAddr>,
    /// The API of its cluster.
    pub(super) member: Option<Client>,
}

/// What bytes go through.
pub(super) trait Stream: AsyncRead + AsyncWrite + Send + Unpin {}

impl<S: AsyncRead + AsyncWrite + Send + Unpin> Stream for S {}

impl Node {
    /// Connects to a host, at the first of its addresses that accepts.
    pub(super) async fn connect(
        &self,
        host: &str,
        port: u16,
        deadline: Instant,
    ) -> Result<(TcpStream, SocketAddr), Unmet> {
        let addresses = self.addresses_of(host, deadline).await?;
        let mut left = u32::try_from(addresses.len()).unwrap_or(u32::MAX);
        let mut first: Option<Unmet> = None;
        for ip in addresses {
            if is_metadata_service(ip) {
                let problem =
                    format!("{host} is the metadata service of a cloud, which no probe may ask");
                return Err(Unmet::unobserved(problem));
            }
            let server = SocketAddr::new(ip, port);
            // One that is silent leaves time for the others.
            let share = deadline.saturating_duration_since(Instant::now()) / left.max(1);
            left = left.saturating_sub(1);
            let unmet = match timeout(share, TcpStream::connect(server)).await {
                Ok(Ok(stream)) => return Ok((stream, server)),
                Ok(Err(error)) => Unmet::by_io(&error, server),
                Err(_) => Unmet::late(server),
            };
            // The first of several, so that the message of a verdict stays the same.
            first.get_or_insert(unmet);
        }
        Err(first.unwrap_or_else(|| Unmet::nowhere(NO_ADDRESS, format!("{host} has no address"))))
    }

    /// Looks a name up. While DNS fails, its last addresses are used: a probe is not about that.
    async fn addresses_of(&self, host: &str, deadline: Instant) -> Result<Vec<IpAddr>, Unmet> {
        if let Ok(ip) = host.parse() {
            return Ok(vec![ip]);
        }
        let left = deadline.saturating_duration_since(Instant::now());
        let limit = if self.addresses.known(host).is_empty() {
            left
        } else {
            left / LOOKUP_PART
        };
        // Whatever comes of it: what counts is what is known then.
        let looked_up = timeout(limit, self.addresses.refresh(host)).await;
        let mut known = self.addresses.known(host);
        known.truncate(TRIED);
        if known.is_empty() {
            let problem = match looked_up {
                Ok(_) => format!("{host} has no address"),
                Err(_) => format!("no answer from DNS for {host} in time"),
            };
            return Err(Unmet::nowhere(NO_ADDRESS, problem));
        }
        Ok(known)
    }
}

/// Speaks TLS over `stream` with a server that has a certificate of one of the authorities in the file `ca`.
pub(super) async fn secured(
    (stream, server): (TcpStream, SocketAddr),
    host: &str,
    ca: &Path,
    protocol: &[u8],
    deadline: Instant,
) -> Result<Box<dyn Stream>, Unmet> {
    let mut config = trusting(ca).map_err(Unmet::unobserved)?;
    config.alpn_protocols = vec![protocol.to_vec()];
    let name = ServerName::try_from(host.to_owned())
        .map_err(|_| Unmet::unobserved(format!("{host} is no name of a server")))?;
    let connecting = TlsConnector::from(Arc::new(config)).connect(name, stream);
    match timeout_at(deadline, connecting).await {
        Ok(Ok(secured)) => Ok(Box::new(secured)),
        Ok(Err(error)) => Err(Unmet::by_io(&error, server)),
        Err(_) => Err(Unmet::late(server)),
    }
}

/// Returns what trusts the authorities in a file. It is read anew for each round, as a Secret may change.
fn trusting(ca: &Path) -> Result<ClientConfig, String> {
    let path = ca.display();
    let certificates = CertificateDer::pem_file_iter(ca)
        .and_then(Iterator::collect::<Result<Vec<_>, _>>)
        .map_err(|error| format!("cannot read {path}: {}", Chain(&error)))?;
    let mut roots = RootCertStore::empty();
    let (added, _) = roots.add_parsable_certificates(certificates);
    if added == 0 {
        return Err(format!("{path} has no certificate of an authority"));
    }
    let config = ClientConfig::builder_with_provider(Arc::new(ring::default_provider()))
        .with_safe_default_protocol_versions()
        .map_err(|error| error.to_string())?;
    Ok(config.with_root_certificates(roots).with_no_client_auth())
}

#[cfg(test)]
mod tests {
    use super::*;

    /// What this node lacks is no observation, and what rustls says of a server is one of it.
    #[test]
    fn own_trouble_is_no_failure() {
        use io::ErrorKind::{ConnectionRefused, InvalidData, PermissionDenied};
        let server = SocketAddr::from(([10, 0, 0, 7], 443));
        for (kind, class) in [(ConnectionRefused, REFUSED), (InvalidData, TLS)] {
            let unmet = Unmet::by_io(&kind.into(), server);
            let failure = Failure::new(class, server);
            assert_eq!(unmet.observation(), Observation::Failed(failure), "{kind}");
        }
        let exhausted = Unmet::by_io(&io::Error::from_raw_os_error(24), server);
        assert_eq!(exhausted.observation(), Observation::Internal);
        let filtered = Unmet::by_io(&PermissionDenied.into(), server);
        assert_eq!(filtered.observation(), Observation::Internal);
    }

    /// A server's words come on one line, and not all of them.
    #[test]
    fn details_are_brief() {
        assert_eq!(brief(" a\r\n\tb\u{1b}[31m  c"), "a b [31m c");
        assert_eq!(brief(&"x".repeat(10_000)).len(), LONGEST_DETAILS);
    }

    /// In any form of its address.
    #[test]
    fn metadata_service_is_known() {
        for text in ["169.254.169.254", "::ffff:169.254.169.254", "fd00:ec2::254"] {
            assert!(is_metadata_service(text.parse().unwrap()), "{text}");
        }
        // The node's own cache of DNS, for example, is no such service.
        assert!(!is_metadata_service("169.254.20.10".parse().unwrap()));
    }
}
