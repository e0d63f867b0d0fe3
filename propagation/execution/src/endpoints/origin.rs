//! The origin of collected endpoints.

use objects::Key;

/// A Service in a cluster.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) struct Origin {
    pub(crate) cluster: String,
    pub(crate) service: Key,
}

impl Origin {
    pub(crate) fn new(cluster: impl Into<String>, service: Key) -> Self {
        Self {
            cluster: cluster.into(),
            service,
        }
    }
}
