//! Errors of webhooks.

use std::sync::Arc;

use propagation_rules::customization::webhook::Webhook;

/// Errors of a call.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum WebhookError {
    /// Nobody has answered.
    #[error("failed to call webhook: {0}")]
    Unanswered(String),
    /// It cannot be asked, or has given an answer that it must not.
    #[error("{0}")]
    Invalid(String),
}

/// The error of a webhook.
#[derive(Clone, Debug, thiserror::Error)]
#[error("failed calling webhook {:?}: {error}", .webhook.name)]
pub struct Failure {
    webhook: Arc<Webhook>,
    /// The error.
    pub error: WebhookError,
}

impl Failure {
    pub(crate) fn new(webhook: &Arc<Webhook>, error: WebhookError) -> Self {
        Self {
            webhook: Arc::clone(webhook),
            error,
        }
    }
}
