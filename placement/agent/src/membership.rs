//! Tells the hub of the member, on the channel of its cluster.

use std::sync::Arc;
use std::time::Duration;

use http::{Request, Uri};
use jiff::Timestamp;
use karmada_runtime::commit::Committer;
use karmada_runtime::controller::Controller;
use karmada_runtime::error::{BoxError, Chain};
use kube::Client;
use objects::Key;
use objects::write::Plan;
use placement_rules::heartbeat::{HeartbeatFacts, plan};
use tokio::time::{Instant, timeout};

use crate::index::Agent;
use crate::namespaces::MemberNamespaces;
use crate::properties::Properties;
use crate::usage::Usage;

/// The longest time from one look at the member's health to the next.
const PROBE_PERIOD: Duration = Duration::from_secs(10);
/// The longest that the member may take to answer.
const PROBE_LIMIT: Duration = Duration::from_secs(5);

/// Sends heartbeats.
pub(crate) struct MembershipReconciler {
    pub(crate) agent: Arc<Agent>,
    pub(crate) usage: Arc<Usage>,
    /// Absent if the hub is not to hear of them.
    pub(crate) namespaces: Option<Arc<MemberNamespaces>>,
    pub(crate) properties: Properties,
    pub(crate) member: Client,
    /// That to the hub.
    pub(crate) committer: Committer,
    pub(crate) clock: fn() -> Timestamp,
}

impl Controller for MembershipReconciler {
    type Key = Key;

    fn keys(&self) -> Vec<Key> {
        let channel = self.agent.index.lock().channel();
        channel.iter().map(|channel| Key::of(&**channel)).collect()
    }

    async fn reconcile(&self, key: &Key) -> Result<(), BoxError> {
        let channel = self.agent.index.lock().channel();
        let Some(channel) = channel else {
            return Ok(());
        };
        let trouble = self.trouble().await;
        let usage = self.usage.sum();
        let namespaces = self.namespaces.as_ref().and_then(|all| all.known());
        let collected = self.properties.collect(usage.as_ref()).await;
        let now = (self.clock)();
        let Plan {
            writes, wake_at, ..
        } = plan(&HeartbeatFacts {
            channel: &channel,
            trouble: trouble.as_deref(),
            usage: usage.as_ref(),
            namespaces: namespaces.as_ref(),
            collected: &collected,
            holds_works: self.agent.index.lock().holds_works(),
            now,
        });
        self.committer.commit(&writes, None).await?;
        if let Some(next) = wake_at {
            let mut wait = Duration::try_from(next.duration_since(now)).unwrap_or_default();
            // A write that is only counted never shows as the last heartbeat: each look would count it again.
            if !self.committer.is_dry_run() {
                wait = wait.min(PROBE_PERIOD);
            }
            let queue = &self.agent.queues.membership;
            queue.add_at(key.clone(), Instant::now() + wait);
        }
        Ok(())
    }
}

impl MembershipReconciler {
    /// Returns why the member's API is not healthy, unless it is.
    async fn trouble(&self) -> Option<String> {
        let mut request = Request::new(Vec::new());
        *request.uri_mut() = Uri::from_static("/readyz");
        match timeout(PROBE_LIMIT, self.member.request_text(request)).await {
            Ok(Ok(_)) => None,
            Ok(Err(error)) => Some(format!("GET /readyz: {}", Chain(&error))),
            Err(_) => Some(format!("GET /readyz: no answer within {PROBE_LIMIT:?}")),
        }
    }
}
