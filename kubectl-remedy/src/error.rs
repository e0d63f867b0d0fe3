//! The errors that end a command without an answer.

use std::{fmt, io};

use karmada_runtime::client::ClientError;
use karmada_runtime::error::Chain;

/// An error for the user, in one line.
#[derive(Debug)]
pub enum Error {
    /// The kubeconfig leads to no server.
    Connect(ClientError),
    /// A request failed.
    Request {
        /// The attempt: a verb and its object.
        attempt: String,
        /// The cause.
        source: kube::Error,
    },
    /// Something that was named does not exist, or cannot be used.
    Unusable(String),
    /// The process cannot start.
    Runtime(io::Error),
}

impl Error {
    /// Returns the error of a request that attempted to do `attempt`.
    pub(crate) fn request(attempt: impl Into<String>, source: kube::Error) -> Self {
        Self::Request {
            attempt: attempt.into(),
            source,
        }
    }
}

impl From<ClientError> for Error {
    fn from(error: ClientError) -> Self {
        Self::Connect(error)
    }
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Connect(error) => Chain(error).fmt(f),
            Self::Request { attempt, source } => {
                write!(f, "cannot {attempt}: {}", Chain(source))?;
                match source {
                    kube::Error::Api(status) if [403, 404].contains(&status.code) => {
                        f.write_str("; `kubectl remedy check` shows what is missing")
                    }
                    _ => Ok(()),
                }
            }
            Self::Unusable(problem) => f.write_str(problem),
            Self::Runtime(error) => write!(f, "cannot start: {}", Chain(error)),
        }
    }
}
