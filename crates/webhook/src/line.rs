//! The line to one webhook.

use std::sync::Arc;

use bytes::Bytes;
use parking_lot::Mutex;
use propagation_rules::customization::webhook::Webhook;
use tokio::sync::Semaphore;
use tokio::time::{Instant, timeout_at};

use crate::breaker::Breaker;
use crate::connection::Connection;
use crate::directory::Directory;
use crate::error::WebhookError;

/// The number of calls that a webhook gets at a time.
const CALLS: usize = 8;

/// The line to a webhook as it is configured now.
#[derive(Debug)]
pub(crate) struct Line {
    pub(crate) webhook: Arc<Webhook>,
    calls: Semaphore,
    breaker: Mutex<Breaker>,
    connection: Mutex<Option<Arc<Connection>>>,
}

impl Line {
    pub(crate) fn new(webhook: &Arc<Webhook>) -> Self {
        Self {
            webhook: Arc::clone(webhook),
            calls: Semaphore::new(CALLS),
            breaker: Mutex::default(),
            connection: Mutex::default(),
        }
    }

    /// Calls the webhook, unless it has not answered a short while ago, and returns its answer.
    pub(crate) async fn call(
        &self,
        directory: &Directory,
        body: &Bytes,
    ) -> Result<Bytes, WebhookError> {
        let _call = self.calls.acquire().await;
        let limit = self.webhook.timeout;
        let start = Instant::now();
        self.breaker.lock().admit(start, limit)?;
        let deadline = start + limit;
        let outcome = timeout_at(deadline, self.ask(directory, body, deadline)).await;
        let outcome = outcome.unwrap_or_else(|_| {
            let late = format!("no answer within {} s", limit.as_secs());
            Err(WebhookError::Unanswered(late))
        });
        let falls_silent = self.breaker.lock().note(&outcome, Instant::now());
        if let Err(error @ WebhookError::Unanswered(_)) = &outcome {
            // It may be somewhere else by now, or the connection dead.
            *self.connection.lock() = None;
            if falls_silent {
                let webhook = &self.webhook.name;
                tracing::warn!(webhook, %error, "The webhook does not answer");
            }
        }
        outcome
    }

    async fn ask(
        &self,
        directory: &Directory,
        body: &Bytes,
        deadline: Instant,
    ) -> Result<Bytes, WebhookError> {
        let known = self.connection.lock().clone();
        let connection = if let Some(usable) = known.filter(|connection| !connection.is_old()) {
            usable
        } else {
            let new = Arc::new(directory.connect(&self.webhook).await?);
            *self.connection.lock() = Some(Arc::clone(&new));
            new
        };
        connection.post(body, deadline).await
    }
}
