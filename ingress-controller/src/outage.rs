//! Outages of the load balancer: while it does not answer, nothing is tried; when it is back, everything
//! that waited is tried at once, without the rest of its backoff.

use std::collections::BTreeSet;
use std::future::Future;
use std::sync::Arc;
use std::time::Duration;

use karmada_runtime::error::{BoxError, Chain};
use karmada_runtime::queue::Queue;
use objects::Key;
use parking_lot::Mutex;
use tokio::sync::{Notify, watch};
use tokio::time::{sleep, timeout};

use crate::provider::LoadBalancer;

/// The pause between two probes of a load balancer that does not answer.
const PAUSE: Duration = Duration::from_secs(1);
const PROBE_LIMIT: Duration = Duration::from_secs(5);

#[derive(Debug)]
pub(crate) struct Outage {
    /// The name of the load balancer, for the log.
    name: &'static str,
    queue: Queue<Key>,
    /// The ingresses to try when the load balancer is back.
    waiting: Mutex<BTreeSet<Key>>,
    suspected: Notify,
    is_down: watch::Sender<bool>,
}

impl Outage {
    /// Creates the outages of the load balancer `name`; those who waited for it are added to `queue`.
    pub(crate) fn new(name: &'static str, queue: Queue<Key>) -> Self {
        Self {
            name,
            queue,
            waiting: Mutex::default(),
            suspected: Notify::new(),
            is_down: watch::Sender::new(false),
        }
    }

    /// Runs `call`, which concerns `key`. Returns `None` while the load balancer is down: then the key
    /// waits for its return.
    pub(crate) async fn unless_down<T>(
        &self,
        key: &Key,
        call: impl Future<Output = T>,
    ) -> Option<T> {
        let mut is_down = self.is_down.subscribe();
        tokio::select! {
            biased;
            // The sender is a field of `self`, so this never fails. A request in progress is dropped:
            // it would end with its timeout only, after the load balancer is back.
            _ = is_down.wait_for(|is_down| *is_down) => {
                self.waiting.lock().insert(key.clone());
                None
            }
            result = call => Some(result),
        }
    }

    /// Finds out whether the load balancer answers at all, after a request for `key` was not answered.
    pub(crate) fn suspect(&self, key: &Key) {
        self.waiting.lock().insert(key.clone());
        self.suspected.notify_one();
    }

    /// Returns the number of ingresses that wait for the load balancer to answer again.
    pub(crate) fn waiting(&self) -> usize {
        if *self.is_down.borrow() {
            self.waiting.lock().len()
        } else {
            0
        }
    }

    /// Forgets who waits: every ingress is tried anyway.
    pub(crate) fn clear(&self) {
        self.waiting.lock().clear();
    }

    /// Probes `balancer` after each suspicion and until it answers again, until `stopping` returns.
    pub(crate) async fn probe(
        self: Arc<Self>,
        balancer: Arc<dyn LoadBalancer>,
        stopping: impl Future<Output = ()>,
    ) -> Result<(), BoxError> {
        let probing = async {
            loop {
                self.suspected.notified().await;
                self.examine(&*balancer).await;
            }
        };
        tokio::select! {
            biased;
            () = stopping => Ok(()),
            () = probing => Ok(()),
        }
    }

    async fn examine(&self, balancer: &dyn LoadBalancer) {
        let Err(error) = probe(balancer).await else {
            // It answers: who failed has a backoff of its own.
            self.clear();
            return;
        };
        self.is_down.send_replace(true);
        tracing::warn!(gateway = self.name, error = %Chain(&*error), "Load balancer does not answer, its ingresses wait");
        loop {
            sleep(PAUSE).await;
            if probe(balancer).await.is_ok() {
                break;
            }
        }
        self.is_down.send_replace(false);
        let waited = std::mem::take(&mut *self.waiting.lock());
        tracing::info!(
            gateway = self.name,
            ingresses = waited.len(),
            "Load balancer answers again, what waited is tried"
        );
        self.queue.add_all(waited);
    }
}

async fn probe(balancer: &dyn LoadBalancer) -> Result<(), BoxError> {
    match timeout(PROBE_LIMIT, balancer.probe()).await {
        Ok(result) => result,
        Err(elapsed) => Err(elapsed.into()),
    }
}
