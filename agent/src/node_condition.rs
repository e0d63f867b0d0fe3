//! Writes this node's vote as a condition of its Node object, for those who look at nodes. It is
//! written only when it turns: a thousand nodes at rest write nothing.

use std::time::Duration;

use jiff::Timestamp;
use k8s_openapi::api::core::v1::Node;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;
use karmada_api::condition::{DNS_FAILED_REASON, DNS_READY, DNS_READY_REASON, FALSE, TRUE};
use karmada_rules::health::threshold::Vote;
use karmada_runtime::error::{BoxError, Chain};
use karmada_runtime::write::{WriteError, Writer};
use kube::api::{ApiResource, DynamicObject, Patch, PatchParams};
use kube::{Api, Client};
use serde_json::{Value, json};
use tokio::sync::watch;
use tokio::time::{Instant, sleep_until, timeout};
use tokio_util::sync::CancellationToken;

/// How often the Node is read when nothing turns: it may be another one under the same name.
const LOOK_EVERY: Duration = Duration::from_mins(10);
const READ_LIMIT: Duration = Duration::from_secs(10);
/// Before a failed call is made again: doubled for each failure in a row.
const FIRST_RETRY: Duration = Duration::from_secs(1);
const LONGEST_RETRY: Duration = Duration::from_mins(1);

const UNKNOWN: &str = "Unknown";
const NO_OBSERVATION_REASON: &str = "NoObservation";

/// The condition of one node.
pub(crate) struct NodeConditions {
    pub(crate) client: Client,
    pub(crate) node: String,
    pub(crate) votes: watch::Receiver<Option<Vote>>,
    pub(crate) writer: Writer,
}

/// What the condition should say.
#[derive(Debug)]
struct Wanted {
    status: &'static str,
    reason: &'static str,
    message: String,
}

impl NodeConditions {
    /// Keeps the condition at what this node votes, until the program stops.
    pub(crate) async fn run(mut self, stopping: CancellationToken) -> Result<(), BoxError> {
        // Read as it comes: code for all that a Node has is a tenth of a megabyte in each agent.
        let nodes: Api<DynamicObject> =
            Api::all_with(self.client.clone(), &ApiResource::erase::<Node>(&()));
        let mut wanted = None;
        let mut told = None;
        let mut failures = 0;
        let mut at = None;
        loop {
            tokio::select! {
                biased;
                () = stopping.cancelled() => return Ok(()),
                Ok(()) = self.votes.changed() => {
                    let Some(turned) = turned(*self.votes.borrow_and_update(), wanted.as_ref()) else {
                        continue;
                    };
                    wanted = Some(turned);
                    // What waits for a retry goes on waiting.
                    if failures == 0 {
                        at = Some(Instant::now());
                    }
                }
                () = sleep_until(at.unwrap_or_else(Instant::now)), if at.is_some() => {
                    let Some(wanted) = &wanted else {
                        continue;
                    };
                    let delay = match self.put(&nodes, wanted).await {
                        Ok(()) => {
                            (failures, told) = (0, None);
                            LOOK_EVERY
                        }
                        Err(error) => {
                            let error = Chain(&error).to_string();
                            if told.as_ref() != Some(&error) {
                                tracing::warn!(node = self.node, error, "Could not write the condition of this node, will retry");
                                told = Some(error);
                            }
                            let delay = FIRST_RETRY * 2_u32.saturating_pow(failures);
                            failures = (failures + 1).min(16);
                            delay.min(LONGEST_RETRY)
                        }
                    };
                    at = Some(Instant::now() + delay);
                }
            }
        }
    }

    /// Reads the Node and writes the condition if it says something else.
    async fn put(&self, nodes: &Api<DynamicObject>, wanted: &Wanted) -> Result<(), WriteError> {
        let read = timeout(READ_LIMIT, nodes.get(&self.node)).await;
        let node = read.map_err(|_| WriteError::TimedOut(READ_LIMIT))??;
        let conditions = node.data["status"]["conditions"].as_array();
        let ours = |condition: &&Value| condition["type"] == DNS_READY;
        let current = conditions.into_iter().flatten().find(ours);
        let says = |condition: &Value| {
            condition["status"] == wanted.status && condition["reason"] == wanted.reason
        };
        if current.is_some_and(says) {
            return Ok(());
        }
        // Merged by its type: the kubelet's own conditions stay as they are.
        let patch = Patch::Strategic(json!({ "status": { "conditions": [condition(wanted)] } }));
        let parameters = PatchParams::default();
        let call = nodes.patch_status(&self.node, &parameters, &patch);
        self.writer.write("node_condition", call).await?;
        let Wanted {
            status,
            reason,
            message,
        } = wanted;
        tracing::info!(
            node = self.node,
            status,
            reason,
            note = message,
            "Node condition written"
        );
        Ok(())
    }
}

/// What the condition should say instead of `before`; none while the vote has not turned. A first
/// success is no verdict on a node.
fn turned(vote: Option<Vote>, before: Option<&Wanted>) -> Option<Wanted> {
    let (status, reason, message) = match vote {
        Some(Vote::FirstSuccess) => return None,
        Some(Vote::Healthy) => (TRUE, DNS_READY_REASON, "names resolve".to_owned()),
        Some(Vote::Unhealthy(failure)) => (FALSE, DNS_FAILED_REASON, failure.to_string()),
        // Before the first vote there is nothing to take back.
        None if before.is_none() => return None,
        None => (
            UNKNOWN,
            NO_OBSERVATION_REASON,
            "DNS could not be asked".to_owned(),
        ),
    };
    if before.is_some_and(|before| before.status == status) {
        return None;
    }
    Some(Wanted {
        status,
        reason,
        message,
    })
}

fn condition(wanted: &Wanted) -> Value {
    let now = Time(Timestamp::now());
    json!({
        "type": DNS_READY,
        "status": wanted.status,
        "reason": wanted.reason,
        "message": wanted.message,
        "lastHeartbeatTime": now,
        "lastTransitionTime": now,
    })
}

#[cfg(test)]
mod tests;
