//! Why a round does not succeed, and the classes of failed connections, which all kinds over TCP share.

use std::io;
use std::net::SocketAddr;

use health::failure::FailureClass;
use health::observation::{Failure, Observation};
use karmada_runtime::error::Chain;

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

/// The longest details of a failure, in characters.
const LONGEST_DETAILS: usize = 300;

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
        // rustls says so of data that the server has sent.
        ErrorKind::InvalidData => TLS,
        _ => return None,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A lack of this node is no observation, and an error of rustls about a server is one of it.
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
}
