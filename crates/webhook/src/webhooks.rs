//! The webhooks of a fleet.

use std::collections::BTreeMap;
use std::sync::Arc;

use bytes::Bytes;
use karmada_runtime::client::Addresses;
use karmada_runtime::permits::release_permit;
use kube::Client;
use parking_lot::Mutex;
use prometheus_client::encoding::EncodeLabelSet;
use prometheus_client::metrics::counter::Counter;
use prometheus_client::metrics::family::Family;
use propagation_rules::customization::Customized;
use propagation_rules::customization::webhook::{Request, Response, Webhook};
use uuid::Uuid;

use crate::directory::Directory;
use crate::error::{Failure, WebhookError};
use crate::line::Line;

/// The lines to the webhooks that were asked.
#[derive(Debug)]
pub struct Webhooks {
    directory: Directory,
    pub(crate) lines: Mutex<BTreeMap<String, Arc<Line>>>,
    calls: Family<CallLabels, Counter>,
}

/// The labels of the counter of calls.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash, EncodeLabelSet)]
pub struct CallLabels {
    operation: &'static str,
    outcome: &'static str,
}

impl Webhooks {
    /// Creates lines that find Services by `client`, which is connected to the API of the fleet, and names in
    /// `addresses`. `program` is the user agent.
    pub fn new(client: Client, addresses: Addresses, program: &'static str) -> Self {
        Self {
            directory: Directory::new(client, addresses, program),
            lines: Mutex::default(),
            calls: Family::default(),
        }
    }

    /// Forgets the webhooks that are gone.
    pub fn keep(&self, customized: &Customized) {
        let mut lines = self.lines.lock();
        lines.retain(|_, line| customized.webhooks().any(|one| *one == line.webhook));
    }

    /// Returns the counter of calls, by operation and outcome.
    pub fn calls(&self) -> Family<CallLabels, Counter> {
        self.calls.clone()
    }

    /// Asks a webhook, and reads its answer.
    ///
    /// # Errors
    /// Fails if it does not answer, or not as it must.
    pub async fn ask<T>(
        &self,
        webhook: &Arc<Webhook>,
        request: &Request<'_>,
        read: impl FnOnce(&Response) -> Result<T, String>,
    ) -> Result<T, Failure> {
        let uid = Uuid::new_v4().to_string();
        let body = Bytes::from(request.body(&uid).to_string());
        let line = self.line(webhook);
        let answer = release_permit(line.call(&self.directory, &body)).await;
        let answer = answer.and_then(|answer| {
            let response = Response::read(&uid, &answer);
            let answer = response.and_then(|response| read(&response));
            answer.map_err(WebhookError::Invalid)
        });
        let labels = CallLabels {
            operation: request.operation.name(),
            outcome: match &answer {
                Ok(_) => "answered",
                Err(WebhookError::Unanswered(_)) => "unanswered",
                Err(WebhookError::Invalid(_)) => "failed",
            },
        };
        self.calls.get_or_create(&labels).inc();
        answer.map_err(|error| Failure::new(webhook, error))
    }

    fn line(&self, webhook: &Arc<Webhook>) -> Arc<Line> {
        let mut lines = self.lines.lock();
        let line = lines.get(&webhook.name);
        if let Some(line) = line.filter(|line| line.webhook == *webhook) {
            return Arc::clone(line);
        }
        let line = Arc::new(Line::new(webhook));
        lines.insert(webhook.name.clone(), Arc::clone(&line));
        line
    }
}
