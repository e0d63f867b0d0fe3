//! The errors of creating a client.

use std::path::PathBuf;

use super::kubeconfig::KubeconfigError;
use crate::error::ExecError;

/// Errors of creating a client, all for the user to correct.
#[derive(Debug, thiserror::Error)]
pub enum ClientError {
    /// The file cannot be read or is no kubeconfig.
    #[error("cannot read kubeconfig {}", path.display())]
    Unreadable {
        /// The file.
        path: PathBuf,
        /// The cause.
        source: KubeconfigError,
    },
    /// None of the files exists.
    #[error("no kubeconfig: {0} does not exist; name one with --kubeconfig")]
    Absent(String),
    /// The kubeconfig does not lead to a cluster: an unknown context, a missing file.
    #[error("cannot use kubeconfig {origin}")]
    Unusable {
        /// The file, or the places searched.
        origin: String,
        /// The cause.
        source: kube::config::KubeconfigError,
    },
    /// No file was given and none was found.
    #[error("no kubeconfig: name one with --kubeconfig")]
    Missing(#[source] kube::config::InferConfigError),
    /// A proxy is none by HTTP. Its origin is told, and not its text, which may have a password.
    #[error("cannot use the proxy of {0}: write http://[USER:PASSWORD@]HOST[:PORT]")]
    Proxy(String),
    /// A header for the proxy is none.
    #[error("cannot use the header {0:?} for the proxy: its name or its value is invalid")]
    ProxyHeader(String),
    /// Addresses are given for a server whose name a proxy looks up.
    #[error(
        "{0} names a proxy, which looks the server up itself: leave out the other addresses, or the proxy"
    )]
    ProxiedAddresses(String),
    /// Addresses are given for a server whose URL in the file contains an address.
    #[error(
        "the kubeconfig names the server by its address {0}: leave out the other addresses, or have it name the server by its host name"
    )]
    NoHostName(String),
    /// The pod's service account is missing or cannot be read.
    #[error("cannot use the pod's service account")]
    ServiceAccount(#[source] kube::config::InClusterError),
    /// The command that the kubeconfig names for credentials gives none.
    #[error(transparent)]
    Exec(#[from] ExecError),
    /// Certificates or credentials in the file are invalid.
    #[error("cannot use the credentials of the kubeconfig")]
    Credentials(#[source] kube::Error),
    /// A token is none.
    #[error("the token is none: it may have no spaces, line breaks or characters beyond ASCII")]
    Token,
    /// The URL of the server is too long.
    #[error("the server's URL is longer than {0} characters")]
    LongUrl(usize),
    /// The token file cannot be read. Its path is not told: somebody may have put the token in its place.
    #[error("cannot read the token file")]
    TokenFile {
        /// The file.
        path: PathBuf,
        /// The cause.
        source: std::io::Error,
    },
    /// `tls-server-name` is neither a DNS name nor an address.
    #[error("cannot use tls-server-name {0:?} of the kubeconfig: it is no DNS name or address")]
    ServerName(String),
    /// The user agent is no valid header value.
    #[error("cannot use {0:?} as user agent")]
    UserAgent(String),
}
