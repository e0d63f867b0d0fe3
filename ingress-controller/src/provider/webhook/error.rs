//! The errors of the provider, and the obstacles among them.

use std::error::Error;

use http::StatusCode;
use http_body_util::LengthLimitError;
use karmada_runtime::error::Chain;
use karmada_runtime::write::WriteError;
use objects::{Key, Mistake};

use super::endpoint::LARGEST_ANSWER;
use crate::provider::balancer::{Obstacle, RelatedObject};
use crate::reason::Reason;

/// Errors of requests to the load balancer's own program.
#[derive(Debug, thiserror::Error)]
pub(super) enum ProviderError {
    /// Its ingresses have not been listed yet.
    #[error("the provider has not said yet what it holds")]
    Unlisted,
    /// Nobody has answered.
    #[error("the provider does not answer {request}: {reason}")]
    Unanswered { request: String, reason: String },
    /// The answer is another than success.
    #[error(
        "the provider answered {request} with {status}{}",
        after_colon(message)
    )]
    Refused {
        request: String,
        status: StatusCode,
        /// Its words, on one line.
        message: String,
    },
    /// The answer is nonsense.
    #[error("the provider's answer to {request} cannot be used: {reason}")]
    Unusable { request: String, reason: String },
    /// Another replica leads now.
    #[error("not leading")]
    NotLeading,
    /// A document does not serialize.
    #[error("could not write down what to serve")]
    Document(#[from] serde_json::Error),
}

fn after_colon(message: &str) -> String {
    if message.is_empty() {
        String::new()
    } else {
        format!(": {message}")
    }
}

impl ProviderError {
    /// Returns the error of a request.
    pub(super) fn new(request: String, error: WriteError) -> Self {
        let reason = match error {
            WriteError::NotLeading => return Self::NotLeading,
            WriteError::TimedOut(limit) => format!("no answer within {limit:?}"),
            WriteError::Api(kube::Error::Api(status)) => {
                return Self::Refused {
                    request,
                    status: StatusCode::from_u16(status.code).unwrap_or_default(),
                    message: status.message.clone(),
                };
            }
            WriteError::Api(kube::Error::SerdeError(error)) => {
                let reason = Mistake::from(&error).to_string();
                return Self::Unusable { request, reason };
            }
            WriteError::Api(kube::Error::Service(error)) if is_too_long(&*error) => {
                let megabytes = LARGEST_ANSWER >> 20;
                let reason = format!("it is larger than {megabytes} MiB");
                return Self::Unusable { request, reason };
            }
            WriteError::Api(error) => Chain(&error).to_string(),
        };
        Self::Unanswered { request, reason }
    }

    /// Returns `true` if the program may not answer at all.
    pub(super) fn is_outage(&self) -> bool {
        match self {
            Self::Unlisted | Self::Unanswered { .. } => true,
            Self::Refused { status, .. } => {
                status.is_server_error() || *status == StatusCode::TOO_MANY_REQUESTS
            }
            Self::Unusable { .. } | Self::NotLeading | Self::Document(_) => false,
        }
    }

    /// Returns `true` if the request may have had its effect all the same.
    pub(super) fn is_uncertain(&self) -> bool {
        match self {
            Self::Unanswered { .. } | Self::Unusable { .. } | Self::NotLeading => true,
            Self::Refused { status, .. } => status.is_server_error(),
            Self::Unlisted | Self::Document(_) => false,
        }
    }

    /// Returns `true` if the answer is 404.
    pub(super) fn is_missing(&self) -> bool {
        matches!(self, Self::Refused { status, .. } if *status == StatusCode::NOT_FOUND)
    }

    /// Returns the obstacle, if it is the ingress `key` that the program refuses, and not whoever asks.
    pub(super) fn obstacle(&self, key: &Key) -> Option<Obstacle> {
        let Self::Refused {
            status, message, ..
        } = self
        else {
            return None;
        };
        let reason = match status.as_u16() {
            409 => Reason::GatewayClash,
            401 | 404 | 407 | 408 | 425 | 429 => return None,
            400..500 => Reason::GatewayRefused,
            _ => return None,
        };
        let message = match reason {
            Reason::GatewayClash => format!(
                "the provider has an ingress {key} of another controller; give each its own --provider-url{}",
                after_colon(message)
            ),
            _ => format!(
                "the provider refuses {key} with {status}{}",
                after_colon(message)
            ),
        };
        Some(obstacle(reason, key, message))
    }
}

/// Returns the obstacle that the program itself reports of an ingress.
pub(super) fn reported(key: &Key, problem: &str) -> Obstacle {
    let message = format!("the provider does not serve {key} as desired: {problem}");
    obstacle(Reason::GatewayRefused, key, message)
}

fn obstacle(reason: Reason, key: &Key, message: String) -> Obstacle {
    Obstacle {
        reason,
        object: RelatedObject {
            api_version: None,
            kind: "MultiClusterIngress",
            key: key.clone(),
        },
        message,
    }
}

fn is_too_long(error: &(dyn Error + Send + Sync + 'static)) -> bool {
    error.is::<LengthLimitError>()
}
