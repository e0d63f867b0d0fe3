//! Writes this node's vote on a signal to a condition of its Node object. It is written only when the vote changes, and
//! where its message alone does once that lasts: a thousand nodes at rest write nothing, and few writes in an outage whose
//! failures take turns.

use std::time::Duration;

use health::signal::Signal;
use health::threshold::Vote;
use jiff::Timestamp;
use k8s_openapi::api::core::v1::Node;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;
use karmada_api::condition::{FALSE, TRUE};
use karmada_runtime::error::{BoxError, Chain};
use karmada_runtime::write::{WriteError, Writer};
use kube::api::{ApiResource, DynamicObject, Patch, PatchParams};
use kube::{Api, Client};
use objects::condition::transition;
use serde_json::{Value, json};
use tokio::sync::watch;
use tokio::time::{Instant, sleep_until, timeout};
use tokio_util::sync::CancellationToken;

use crate::backoff::Backoff;
use crate::identity::NAME;
use crate::vote::Votes;

/// The interval of reads while the vote stays the same: the Node may have been recreated, without the
/// condition.
const READ_EVERY: Duration = Duration::from_mins(10);
const READ_LIMIT: Duration = Duration::from_secs(10);
const LONGEST_RETRY: Duration = Duration::from_mins(1);
/// The time for which a message must stay the same before it is written without a change of status. One that never does is
/// written with the next read.
const MESSAGE_LASTS: Duration = Duration::from_mins(1);

const UNKNOWN: &str = "Unknown";
const NO_OBSERVATION_REASON: &str = "NoObservation";

/// The condition of this node's Node object that shows its vote on one signal.
pub(crate) struct NodeCondition {
    pub(crate) client: Client,
    pub(crate) node: String,
    pub(crate) signal: &'static Signal,
    pub(crate) votes: watch::Receiver<Votes>,
    pub(crate) writer: Writer,
}

/// The condition as it should be.
#[derive(Debug, PartialEq, Eq)]
struct DesiredCondition {
    status: &'static str,
    reason: &'static str,
    message: String,
}

impl NodeCondition {
    /// Keeps the condition at this node's vote until the program stops.
    pub(crate) async fn run(mut self, stopping: CancellationToken) -> Result<(), BoxError> {
        // Untyped: code to decode all fields of a Node adds a tenth of a megabyte to each agent.
        let nodes: Api<DynamicObject> =
            Api::all_with(self.client.clone(), &ApiResource::erase::<Node>(&()));
        let mut desired = None;
        let mut logged = None;
        let mut backoff = Backoff::default();
        let mut at = None;
        let mut written = None;
        loop {
            tokio::select! {
                biased;
                () = stopping.cancelled() => return Ok(()),
                Ok(()) = self.votes.changed() => {
                    let vote = self.votes.borrow_and_update().get(self.signal).copied().flatten();
                    let Some(changed) = changed(self.signal, vote, desired.as_ref()) else {
                        continue;
                    };
                    let now = Instant::now();
                    let due = match written {
                        Some((status, at)) if status == changed.status => {
                            (now + MESSAGE_LASTS).min(at + READ_EVERY)
                        }
                        _ => now,
                    };
                    desired = Some(changed);
                    // A vote that flaps must not bypass the backoff.
                    if !backoff.is_failing() {
                        at = Some(due);
                    }
                }
                () = sleep_until(at.unwrap_or_else(Instant::now)), if at.is_some() => {
                    let Some(desired) = &desired else {
                        continue;
                    };
                    let delay = match self.put(&nodes, desired).await {
                        Ok(()) => {
                            written = Some((desired.status, Instant::now()));
                            backoff.reset();
                            logged = None;
                            READ_EVERY
                        }
                        Err(error) => {
                            // Once for each error: an API that is away for hours must not fill the log.
                            let error = Chain(&error).to_string();
                            if logged.as_ref() != Some(&error) {
                                tracing::warn!(node = self.node, error, "Could not write the condition of this node, will retry");
                                logged = Some(error);
                            }
                            backoff.next(LONGEST_RETRY)
                        }
                    };
                    at = Some(Instant::now() + delay);
                }
            }
        }
    }

    /// Reads the Node and writes the condition if it differs.
    async fn put(
        &self,
        nodes: &Api<DynamicObject>,
        desired: &DesiredCondition,
    ) -> Result<(), WriteError> {
        let read = timeout(READ_LIMIT, nodes.get(&self.node)).await;
        let node = read.map_err(|_| WriteError::TimedOut(READ_LIMIT))??;
        let conditions = node.data["status"]["conditions"].as_array();
        let mut conditions = conditions.into_iter().flatten();
        let current = conditions.find(|condition| condition["type"] == self.signal.condition);
        if let Some(current) = current
            && current["status"] == desired.status
            && current["reason"] == desired.reason
            && current["message"] == desired.message
        {
            return Ok(());
        }
        // A strategic merge patch merges conditions by type and leaves the kubelet's own alone.
        let condition = condition(self.signal, current, desired);
        let patch = Patch::Strategic(json!({ "status": { "conditions": [condition] } }));
        let parameters = PatchParams::apply(NAME);
        let call = nodes.patch_status(&self.node, &parameters, &patch);
        self.writer.write("node_condition", call).await?;
        let DesiredCondition {
            status,
            reason,
            message,
        } = desired;
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

/// Returns the condition for a vote on `signal`, or `None` if it is `before`. A first success does not count,
/// since it may be the only good round of a node that fails.
fn changed(
    signal: &Signal,
    vote: Option<Vote>,
    before: Option<&DesiredCondition>,
) -> Option<DesiredCondition> {
    let (status, reason, message) = match vote {
        Some(Vote::FirstSuccess) => return None,
        Some(Vote::Healthy) => (TRUE, signal.ready_reason, signal.works.to_owned()),
        Some(Vote::Partial(partial)) => {
            let mut message = vec![signal.works.to_owned()];
            message.extend(partial.sentences());
            (TRUE, signal.ready_reason, message.join("; "))
        }
        Some(Vote::Unhealthy(failure)) => (FALSE, signal.failed_reason, failure.to_string()),
        // Before the first vote there is no condition of this process to retract.
        None if before.is_none() => return None,
        None => (UNKNOWN, NO_OBSERVATION_REASON, signal.unobserved.to_owned()),
    };
    let desired = DesiredCondition {
        status,
        reason,
        message,
    };
    (before != Some(&desired)).then_some(desired)
}

/// Returns the condition to write in place of `current`, whose time stays as long as its status does.
fn condition(signal: &Signal, current: Option<&Value>, desired: &DesiredCondition) -> Value {
    let now = Timestamp::now();
    json!({
        "type": signal.condition,
        "status": desired.status,
        "reason": desired.reason,
        "message": desired.message,
        "lastHeartbeatTime": Time(now),
        "lastTransitionTime": transition(current, desired.status, now),
    })
}

#[cfg(test)]
mod tests;
