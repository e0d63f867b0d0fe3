//! The share of the cluster's nodes that are ready. The leader alone counts them, by a watch that lives as long as it leads.

use std::collections::BTreeMap;
use std::fmt;
use std::pin::pin;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use futures::future::BoxFuture;
use futures::{FutureExt, StreamExt};
use health::failure::FailureClass;
use health::signal::Voters;
use k8s_openapi::api::core::v1;
use karmada_api::condition::TRUE;
use karmada_runtime::error::Chain;
use karmada_runtime::partial::Partial;
use kube::runtime::watcher::{Config, Event, watcher};
use kube::{Api, Client, ResourceExt};
use objects::condition::{AnyCondition, find};
use serde::Deserialize;
use serde_json::Value;
use tokio::sync::watch;
use tokio::time::{sleep, timeout_at};
use tokio_util::task::AbortOnDropHandle;

use super::kind::{Attempt, Kind};
use super::unmet::Unmet;

const NOT_READY: FailureClass = FailureClass::new(0, "nodes-not-ready");
/// The type of the condition that the kubelet, or the node controller in its place, keeps.
const READY: &str = "Ready";
/// A page is held as bytes and as objects while it is decoded.
const PAGE: u32 = 100;
/// The pause after a watch that failed.
const RETRY: Duration = Duration::from_secs(5);
const UNLISTED: &str = "the nodes are not listed yet";

/// The nodes of the agent's own cluster.
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub(super) struct Nodes {
    /// The least share of them that is ready, above 0 and at most 1.
    ready_share: f64,
    #[serde(skip)]
    watching: Watching,
}

// A share is a number: `check` refuses any other.
impl Eq for Nodes {}

/// How many nodes there are, and how many of them are ready.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Counts {
    ready: usize,
    all: usize,
}

/// The watch of the nodes, while there is one. It is no part of the declaration.
#[derive(Clone, Default)]
struct Watching(Arc<Mutex<Option<Running>>>);

/// The counts, or why there are none. While the API does not answer, its former answer may be wrong by now.
type Known = Result<Counts, String>;

struct Running {
    counts: watch::Receiver<Known>,
    _task: AbortOnDropHandle<()>,
}

impl Watching {
    /// Returns the counts, and begins the watch if there is none.
    fn counts(&self, client: &Client) -> watch::Receiver<Known> {
        let mut running = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let running = running.get_or_insert_with(|| {
            let (counted, counts) = watch::channel(Err(UNLISTED.to_owned()));
            let task = tokio::spawn(count(Api::all(client.clone()), counted));
            Running {
                counts,
                _task: AbortOnDropHandle::new(task),
            }
        });
        running.counts.clone()
    }

    fn end(&self) {
        let mut running = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        *running = None;
    }
}

impl fmt::Debug for Watching {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Watching").finish_non_exhaustive()
    }
}

impl PartialEq for Watching {
    fn eq(&self, _: &Self) -> bool {
        true
    }
}

impl Kind for Nodes {
    fn check(&self) -> Result<(), String> {
        if self.ready_share > 0.0 && self.ready_share <= 1.0 {
            Ok(())
        } else {
            Err("readyShare is not above 0 and at most 1".to_owned())
        }
    }

    fn classes(&self) -> &'static [FailureClass] {
        &[NOT_READY]
    }

    fn voters(&self) -> Voters {
        Voters::Leader
    }

    fn observe<'a>(&'a self, attempt: &'a Attempt<'a>) -> BoxFuture<'a, Result<(), Unmet>> {
        async move {
            let client = attempt.node.member.as_ref().ok_or_else(|| {
                Unmet::unobserved(
                    "it needs the API of the member cluster: run in it, or set --member-kubeconfig",
                )
            })?;
            let mut counts = self.watching.counts(client);
            // In time or late, the newest count is known.
            drop(timeout_at(attempt.deadline, counts.wait_for(Result::is_ok)).await);
            let known = counts.borrow().clone();
            self.judge(known.map_err(Unmet::unobserved)?)
        }
        .boxed()
    }

    fn rest(&self) {
        self.watching.end();
    }
}

impl Nodes {
    fn judge(&self, counts: Counts) -> Result<(), Unmet> {
        let Counts { ready, all } = counts;
        if all == 0 {
            return Err(Unmet::unobserved("there is no node"));
        }
        if share(ready, all) >= self.ready_share {
            return Ok(());
        }
        Err(Unmet::nowhere(
            NOT_READY,
            format!("{ready} of {all} nodes are ready"),
        ))
    }
}

#[expect(
    clippy::cast_precision_loss,
    reason = "no cluster has so many nodes that a fraction of them is lost"
)]
fn share(part: usize, whole: usize) -> f64 {
    part as f64 / whole as f64
}

type Node = Partial<v1::Node, IsReady>;

/// The readiness of a Node: nothing else is kept of it.
#[derive(Clone, Copy, Debug, Default)]
struct IsReady(bool);

impl From<&Value> for IsReady {
    fn from(node: &Value) -> Self {
        let conditions = node.pointer("/status/conditions");
        let conditions = conditions.and_then(Value::as_array);
        let ready = find(conditions.into_iter().flatten(), READY);
        Self(ready.is_some_and(|ready| ready.status() == TRUE))
    }
}

/// Keeps `counted` at the nodes that the API lists, until nobody asks.
async fn count(nodes: Api<Node>, counted: watch::Sender<Known>) {
    loop {
        let mut listed = BTreeMap::new();
        let mut events = pin!(watcher(nodes.clone(), Config::default().page_size(PAGE)));
        let mut reason = UNLISTED.to_owned();
        while let Some(event) = events.next().await {
            let event = match event {
                Ok(event) => event,
                Err(error) => {
                    reason = format!("the nodes cannot be listed: {}", Chain(&error));
                    break;
                }
            };
            let is_listing = matches!(event, Event::Init | Event::InitApply(_));
            take_in(&mut listed, event);
            if !is_listing {
                let ready = listed.values().filter(|is_ready| **is_ready).count();
                let all = listed.len();
                counted.send_modify(|known| *known = Ok(Counts { ready, all }));
            }
        }
        counted.send_modify(|known| *known = Err(reason));
        sleep(RETRY).await;
    }
}

fn take_in(listed: &mut BTreeMap<String, bool>, event: Event<Node>) {
    match event {
        Event::Init => listed.clear(),
        Event::InitApply(node) | Event::Apply(node) => {
            listed.insert(node.name_any(), node.part.0);
        }
        Event::Delete(node) => {
            listed.remove(&node.name_any());
        }
        Event::InitDone => {}
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn is_ready(status: &Value) -> bool {
        IsReady::from(&json!({ "status": status })).0
    }

    fn ready(status: &str) -> bool {
        let conditions = json!([{ "type": "DiskPressure", "status": "True" }, { "type": "Ready", "status": status }]);
        is_ready(&json!({ "conditions": conditions }))
    }

    /// Whoever leaves the condition out, or says that it is unknown, is not ready.
    #[test]
    fn only_true_is_ready() {
        assert!(ready("True"));
        assert!(!ready("False") && !ready("Unknown"));
        assert!(!is_ready(&Value::Null));
        assert!(!is_ready(&json!({ "conditions": null })));
    }

    fn nodes(ready_share: f64) -> Nodes {
        Nodes {
            ready_share,
            watching: Watching::default(),
        }
    }

    fn judged(share: f64, ready: usize, all: usize) -> Result<(), Unmet> {
        nodes(share).judge(Counts { ready, all })
    }

    #[test]
    fn share_is_exact() {
        assert_eq!(judged(0.7, 7, 10), Ok(()));
        let few = Unmet::nowhere(NOT_READY, "6 of 10 nodes are ready");
        assert_eq!(judged(0.7, 6, 10), Err(few));
        assert_eq!(judged(1.0, 3, 3), Ok(()));
        judged(0.5, 0, 0).unwrap_err();
        for wrong in [0.0, 1.01, -1.0, f64::NAN] {
            nodes(wrong).check().unwrap_err();
        }
    }
}
