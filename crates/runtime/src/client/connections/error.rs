//! Why a request has no answer.

use std::error::Error;
use std::sync::Arc;

/// Errors of a connection that is not opened. All who wait for it share one.
#[derive(Clone, Debug, thiserror::Error)]
pub(in crate::client) enum OpenError {
    #[error("cannot connect")]
    Failed(#[source] Arc<dyn Error + Send + Sync>),
    #[error("cannot connect in time")]
    TimedOut,
}

/// Errors of a request without an answer.
#[derive(Debug, thiserror::Error)]
pub(in crate::client) enum SendError {
    #[error(transparent)]
    Open(#[from] OpenError),
    #[error(transparent)]
    Http2(#[from] hyper::Error),
    #[error(transparent)]
    Http1(#[from] hyper_util::client::legacy::Error),
}
