//! One connection, with one small request: who answers it is an agent of this cluster, or nobody.
//!
//! That a connection is made proves little: a relay, a mesh's sidecar or a SYN proxy accepts it for an
//! endpoint that is not there. So the agent's own `GET /v1/observation` is read over it, without the
//! parameters of a leader, which an agent answers without any effect. HTTP/1.0, whose server closes the
//! connection: each round has a new one, since a kept one goes on through conntrack when the rule that made
//! it is gone.

use std::io;
use std::net::SocketAddr;

use health::service_network::ServiceNetworkClass;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;

use crate::peers::{OBSERVATION_PATH, VoteDocument};

/// The largest response read, in bytes.
const LARGEST: u64 = 64 * 1024;

/// The reason why no agent answered. A failure outweighs an attempt that could not be made.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Unanswered {
    /// No connection could be tried, for example without a free port.
    Internal,
    /// The connection failed.
    Failed(ServiceNetworkClass),
}

/// Connects to `server` and returns whether an agent of `cluster` answered.
pub(super) async fn exchange(server: SocketAddr, cluster: &str) -> Result<(), Unanswered> {
    let response = request(server).await.map_err(|error| unanswered(&error))?;
    if is_agents(&response, cluster) {
        Ok(())
    } else {
        // Closed early, or answered by somebody else: the request came to nobody that it was for.
        Err(Unanswered::Failed(ServiceNetworkClass::Reset))
    }
}

async fn request(server: SocketAddr) -> io::Result<Vec<u8>> {
    let mut stream = TcpStream::connect(server).await?;
    let request = format!("GET {OBSERVATION_PATH} HTTP/1.0\r\nHost: {server}\r\n\r\n");
    stream.write_all(request.as_bytes()).await?;
    let mut response = Vec::new();
    stream.take(LARGEST).read_to_end(&mut response).await?;
    Ok(response)
}

fn unanswered(error: &io::Error) -> Unanswered {
    use io::ErrorKind;
    Unanswered::Failed(match error.kind() {
        // An ICMP error is as quick and as clear as a refusal. Cilium says EPERM of a Service without endpoints
        // (https://github.com/cilium/cilium/issues/45184), and the kernel EACCES where a filter prohibits it.
        ErrorKind::ConnectionRefused
        | ErrorKind::HostUnreachable
        | ErrorKind::NetworkUnreachable
        | ErrorKind::PermissionDenied => ServiceNetworkClass::Refused,
        ErrorKind::ConnectionReset
        | ErrorKind::ConnectionAborted
        | ErrorKind::BrokenPipe
        | ErrorKind::NotConnected => ServiceNetworkClass::Reset,
        ErrorKind::TimedOut => ServiceNetworkClass::Timeout,
        _ => return Unanswered::Internal,
    })
}

/// Returns `true` for the response of an agent of `cluster`.
fn is_agents(response: &[u8], cluster: &str) -> bool {
    const END_OF_HEAD: &[u8] = b"\r\n\r\n";
    let Some(head) = response
        .windows(END_OF_HEAD.len())
        .position(|window| window == END_OF_HEAD)
    else {
        return false;
    };
    let is_ok = response.starts_with(b"HTTP/1.0 200 ") || response.starts_with(b"HTTP/1.1 200 ");
    let body = &response[head + END_OF_HEAD.len()..];
    let document = serde_json::from_slice(body);
    is_ok && document.is_ok_and(|document: VoteDocument| document.cluster == cluster)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A Service without endpoints is refused, however the network of the node says so; a lack of the node itself is no
    /// observation.
    #[test]
    fn refusals_are_told_apart() {
        use io::ErrorKind::{ConnectionRefused, HostUnreachable, PermissionDenied};
        for kind in [ConnectionRefused, HostUnreachable, PermissionDenied] {
            let refused = Unanswered::Failed(ServiceNetworkClass::Refused);
            assert_eq!(unanswered(&kind.into()), refused, "{kind}");
        }
        let exhausted = io::Error::from_raw_os_error(24);
        assert_eq!(unanswered(&exhausted), Unanswered::Internal);
    }
}
