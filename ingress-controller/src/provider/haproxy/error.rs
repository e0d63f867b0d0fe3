//! The errors and obstacles of the provider.

use std::io;

use k8s_openapi::Resource as _;
use k8s_openapi::api::core::v1::Service;
use karmada_runtime::write::{WriteError, WriteErrorKind};
use objects::Key;
use traffic::ingress::haproxy::OpenConnections;
use traffic::ingress::{Problem, Unusable};

use crate::provider::balancer::{Obstacle, RelatedObject};
use crate::reason::Reason;

/// Errors that a retry may overcome.
#[derive(Debug, thiserror::Error)]
pub(super) enum HaproxyError {
    /// The state was not read.
    #[error("could not read the servers of HAProxy at {socket}")]
    Read { socket: String, source: io::Error },
    /// The other end is no Runtime API, or closes before it has answered.
    #[error("HAProxy at {socket} does not tell its state")]
    Answer { socket: String },
    /// Commands were not sent, or not answered.
    #[error("could not change the servers of backend {backend} of HAProxy")]
    Write {
        backend: String,
        source: Box<WriteError>,
    },
    /// HAProxy was restarted or reloaded meanwhile.
    #[error("HAProxy at {socket} was started anew meanwhile")]
    Restarted { socket: String },
    /// HAProxy accepts commands that change nothing.
    #[error("the servers of backend {backend} of HAProxy are not yet as they were set")]
    Unchanged { backend: String },
    /// Servers of an ingress are left that have connections.
    #[error("servers of ingress {key} are left in HAProxy until their connections end")]
    Left { key: Key },
}

impl HaproxyError {
    /// Returns `true` if HAProxy may not answer at all.
    pub(super) fn is_outage(&self) -> bool {
        match self {
            Self::Read { .. } | Self::Answer { .. } => true,
            Self::Write { source, .. } => {
                source.kind() == WriteErrorKind::Transient
                    && !matches!(**source, WriteError::NotLeading)
            }
            Self::Restarted { .. } | Self::Unchanged { .. } | Self::Left { .. } => false,
        }
    }
}

/// Obstacles in HAProxy.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum HaproxyObstacle {
    /// The configuration lacks a backend.
    BackendMissing(String),
    /// HAProxy refuses commands.
    Refused {
        backend: String,
        /// Its words.
        message: String,
    },
    /// Connections stay open.
    ConnectionsOpen(OpenConnections),
    /// An address of a Service can get no request.
    Unusable { service: Key, address: Unusable },
}

impl From<HaproxyObstacle> for Obstacle {
    fn from(obstacle: HaproxyObstacle) -> Self {
        let (reason, backend, message) = match obstacle {
            HaproxyObstacle::BackendMissing(backend) => {
                let message = format!(
                    "the configuration of HAProxy has no backend {backend}; add `backend {backend}` and what routes to it, and reload"
                );
                (Reason::BackendMissing, backend, message)
            }
            HaproxyObstacle::Refused { backend, message } => {
                let message =
                    format!("HAProxy refuses to change servers of backend {backend}: {message}");
                (Reason::GatewayRefused, backend, message)
            }
            HaproxyObstacle::ConnectionsOpen(open) => {
                let message = open.to_string();
                (Reason::ConnectionsOpen, open.backend, message)
            }
            HaproxyObstacle::Unusable {
                service: key,
                address,
            } => {
                let service = key.name.clone();
                return Self {
                    reason: Reason::AddressUnusable,
                    object: RelatedObject {
                        api_version: Some(Service::API_VERSION),
                        kind: Service::KIND,
                        key,
                    },
                    message: Problem::Unusable { service, address }.to_string(),
                };
            }
        };
        let object = RelatedObject {
            api_version: None,
            kind: "Backend",
            key: Key::cluster_scoped(backend),
        };
        Self {
            reason,
            object,
            message,
        }
    }
}
