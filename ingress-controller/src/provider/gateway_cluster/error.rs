//! The errors and obstacles of the provider.

use karmada_runtime::write::{WriteError, WriteErrorKind};
use objects::Key;
use traffic::ingress::kubernetes::Clash;

use crate::provider::balancer::{Obstacle, RelatedObject};
use crate::reason::Reason;

/// Errors that a retry may overcome.
#[derive(Debug, thiserror::Error)]
pub(in crate::provider) enum GatewayError {
    /// A write failed.
    #[error("could not write {kind} {key} to the gateway cluster")]
    Write {
        kind: &'static str,
        key: Key,
        source: Box<WriteError>,
    },
    /// A read failed.
    #[error("could not read {kind} {key} from the gateway cluster")]
    Read {
        kind: &'static str,
        key: Key,
        source: Box<kube::Error>,
    },
    /// An object changed since the index saw it.
    #[error("{kind} {key} in the gateway cluster is not as it was last seen")]
    Stale { kind: &'static str, key: Key },
    /// A patch does not serialize.
    #[error("could not write down what to change")]
    Edit(#[from] serde_json::Error),
}

impl GatewayError {
    /// Returns `true` if the gateway cluster may not answer at all.
    pub(in crate::provider) fn is_outage(&self) -> bool {
        match self {
            Self::Write { source, .. } => {
                source.kind() == WriteErrorKind::Transient
                    && !matches!(**source, WriteError::NotLeading)
            }
            Self::Read { .. } => true,
            Self::Stale { .. } | Self::Edit(_) => false,
        }
    }
}

/// Obstacles in the gateway cluster.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(in crate::provider) enum GatewayObstacle {
    /// An object of another owner has the name of one of ours.
    Clash(Clash),
    /// The API server rejects an object, by validation, admission or authorization.
    Rejected {
        kind: &'static str,
        key: Key,
        /// The message of the API server.
        message: String,
    },
    /// Another writer undoes every write to an object.
    Contested { kind: &'static str, key: Key },
}

impl From<GatewayObstacle> for Obstacle {
    fn from(obstacle: GatewayObstacle) -> Self {
        let (reason, kind, key, message) = match obstacle {
            GatewayObstacle::Clash(clash) => {
                let message = clash.to_string();
                (Reason::GatewayClash, clash.kind, clash.key, message)
            }
            GatewayObstacle::Rejected { kind, key, message } => {
                let message = format!("the gateway cluster refuses {kind} {key}: {message}");
                (Reason::GatewayRefused, kind, key, message)
            }
            GatewayObstacle::Contested { kind, key } => {
                let message = format!(
                    "another client undoes every write to {kind} {key} in the gateway cluster; this controller writes again after growing pauses, up to 5 minutes"
                );
                (Reason::GatewayContested, kind, key, message)
            }
        };
        let object = RelatedObject {
            api_version: None,
            kind,
            key,
        };
        Self {
            reason,
            object,
            message,
        }
    }
}
