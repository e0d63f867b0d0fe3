//! One connection: whoever answers it, the cluster is reached.
//!
//! Without a request, the network stack of the backend answers, even by a refusal: the cluster is there, and whether its
//! programs work is not the question. A load balancer, though, accepts connections for backends that are gone, so where it
//! stands in front of a member a request must have a response.

use std::io;
use std::net::SocketAddr;

use health::reachability::ReachabilityClass;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;

/// The number of bytes of a response that are read: `HTTP/1.1 200`.
const STATUS_AT: std::ops::Range<usize> = 9..12;

/// A request to send over a connection.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct HttpRequest {
    pub(super) host: String,
    pub(super) path: String,
}

/// The reason why a cluster was not reached at an address.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Unreached {
    /// No connection could be tried, for example without a free port.
    Internal,
    /// The connection failed.
    Failed(ReachabilityClass),
}

/// Connects to `address`, and sends the request if there is one.
pub(super) async fn exchange(
    address: SocketAddr,
    request: Option<&HttpRequest>,
) -> Result<(), Unreached> {
    let Some(request) = request else {
        let connected = TcpStream::connect(address).await;
        return match connected.map_err(|error| unreached(&error)) {
            Err(Unreached::Failed(ReachabilityClass::Refused | ReachabilityClass::Reset)) => Ok(()),
            connected => connected.map(drop),
        };
    };
    let status = status(address, request).await;
    match status.map_err(|error| unreached(&error))? {
        Some(..500) => Ok(()),
        Some(_) => Err(Unreached::Failed(ReachabilityClass::ServerError)),
        // Closed early, or no HTTP: the request came to nobody that it was for.
        None => Err(Unreached::Failed(ReachabilityClass::Reset)),
    }
}

/// Returns the status of the response, if it is one of HTTP/1. Whatever follows is not read.
async fn status(address: SocketAddr, request: &HttpRequest) -> io::Result<Option<u16>> {
    let mut stream = TcpStream::connect(address).await?;
    let HttpRequest { host, path } = request;
    let agent = crate::identity::NAME;
    let request = format!(
        "GET {path} HTTP/1.1\r\nHost: {host}\r\nUser-Agent: {agent}\r\nConnection: close\r\n\r\n"
    );
    stream.write_all(request.as_bytes()).await?;
    let mut start = Vec::new();
    let length = u64::try_from(STATUS_AT.end).unwrap_or_default();
    stream.take(length).read_to_end(&mut start).await?;
    let is_http = start.starts_with(b"HTTP/1.");
    let status = start.get(STATUS_AT).filter(|_| is_http);
    let status = status.and_then(|status| std::str::from_utf8(status).ok());
    Ok(status.and_then(|status| status.parse().ok()))
}

fn unreached(error: &io::Error) -> Unreached {
    use io::ErrorKind;
    Unreached::Failed(match error.kind() {
        ErrorKind::ConnectionRefused => ReachabilityClass::Refused,
        ErrorKind::ConnectionReset
        | ErrorKind::ConnectionAborted
        | ErrorKind::BrokenPipe
        | ErrorKind::NotConnected => ReachabilityClass::Reset,
        ErrorKind::HostUnreachable | ErrorKind::NetworkUnreachable => {
            ReachabilityClass::Unreachable
        }
        ErrorKind::TimedOut => ReachabilityClass::Timeout,
        // A filter on this node that prohibits it, for example, says nothing about the cluster.
        _ => return Unreached::Internal,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A fault of this node itself, which lacks or prohibits something, is no observation.
    #[test]
    fn own_trouble_is_no_failure() {
        use io::ErrorKind::{AddrNotAvailable, HostUnreachable, PermissionDenied};
        for kind in [PermissionDenied, AddrNotAvailable] {
            assert_eq!(unreached(&kind.into()), Unreached::Internal, "{kind}");
        }
        let exhausted = io::Error::from_raw_os_error(24);
        assert_eq!(unreached(&exhausted), Unreached::Internal);
        let unreachable = Unreached::Failed(ReachabilityClass::Unreachable);
        assert_eq!(unreached(&HostUnreachable.into()), unreachable);
    }
}
