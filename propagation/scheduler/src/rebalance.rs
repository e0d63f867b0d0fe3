//! Serves the requests to schedule workloads anew, in a fleet without Karmada.

use std::sync::Arc;

use jiff::Timestamp;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;
use karmada_api::rebalancer::RebalancedWorkload;
use karmada_api::{ClusterResourceBinding, ResourceBinding, WorkloadRebalancer, names};
use karmada_runtime::commit::{Committer, Outcome};
use karmada_runtime::controller::Controller;
use karmada_runtime::error::BoxError;
use karmada_runtime::expectations::{Expectations, Subject};
use karmada_runtime::program::Program;
use karmada_runtime::queue::Queue;
use karmada_runtime::store::Store;
use karmada_runtime::wakes::Watch;
use karmada_runtime::write::WriteError;
use kube::api::{ApiResource, DynamicObject};
use kube::{Api, Client};
use objects::write::{Guard, ObjectRef, Write};
use objects::{Key, Metadata};
use parking_lot::Mutex;
use propagation_rules::rebalance;
use serde_json::json;
use tokio::time::Instant;

use crate::binding::AnyBinding;
use crate::index::Index;

/// The topic of writes to a request.
const REQUEST: &str = "request";

/// Serves requests to schedule workloads anew.
pub(crate) struct RebalanceReconciler {
    pub(crate) requests: Arc<Mutex<Store<WorkloadRebalancer>>>,
    pub(crate) queue: Queue<Key>,
    pub(crate) index: Arc<Mutex<Index>>,
    pub(crate) client: Client,
    pub(crate) committer: Committer,
    pub(crate) clock: fn() -> Timestamp,
}

/// Watches the requests, which `queue` gets.
pub(crate) fn watch(
    program: &mut Program,
    client: &Client,
    queue: &Queue<Key>,
    expectations: &Expectations,
) -> Arc<Mutex<Store<WorkloadRebalancer>>> {
    expectations.add_queue(REQUEST, queue);
    let requests: Store<WorkloadRebalancer> = Store::default().expecting(expectations, &());
    let requests = Arc::new(Mutex::new(requests));
    Watch::new(&requests, |requests| requests)
        .wakes(queue, |_, change| [change.key.clone()])
        .start(program, client, "workloadrebalancers");
    requests
}

impl Controller for RebalanceReconciler {
    type Key = Key;

    fn keys(&self) -> Vec<Key> {
        self.requests.lock().keys().cloned().collect()
    }

    fn held_until(&self, key: &Key) -> Option<Instant> {
        self.committer.held_until([Subject::new(REQUEST, key)])
    }

    async fn reconcile(&self, key: &Key) -> Result<(), BoxError> {
        let request = self.requests.lock().get(key).cloned();
        if request.is_none() {
            self.committer.forget("rebalancer", key);
        }
        let Some(request) = request.filter(|request| !request.metadata.is_deleting()) else {
            return Ok(());
        };
        let Some(created) = &request.metadata.creation_timestamp else {
            return Ok(());
        };
        let (mut observed, mut failure) = (rebalance::observed(&request), None);
        for item in observed.iter_mut().filter(|item| item.result.is_none()) {
            match self.trigger(&item.workload, created).await {
                Ok(has_binding) => rebalance::settle(item, has_binding),
                Err(error) => failure = Some(error),
            }
        }
        let now = (self.clock)();
        let status = rebalance::status(&request, observed, now);
        let is_settled = status.is_none();
        let object = ObjectRef::of(&*request, &());
        if let Some(status) = status {
            let body = json!({ "status": status });
            let write = Write::merge("rebalancer", object.clone(), body);
            self.write(key, &write.of_status()).await?;
        }
        if let Some(failure) = failure {
            return Err(failure.into());
        }
        // The write wakes it once more.
        match rebalance::expires(&request).filter(|_| is_settled) {
            Some(at) if at <= now => {
                // Unless it has changed.
                let write = Write::delete("rebalancer", object).guarded(Guard::Version);
                self.write(key, &write).await?;
            }
            Some(at) => self.queue.add_at_time(key.clone(), at, now),
            None => {}
        }
        Ok(())
    }
}

impl RebalanceReconciler {
    async fn write(&self, key: &Key, write: &Write) -> Result<Outcome, WriteError> {
        let subject = Subject::new(REQUEST, key);
        self.committer.write(write, Some(&subject)).await
    }

    /// Asks for the workload to be scheduled anew. Returns `false` if it has no binding.
    async fn trigger(&self, workload: &RebalancedWorkload, at: &Time) -> Result<bool, WriteError> {
        let group = objects::group(&workload.api_version);
        let namespace = &workload.namespace;
        let names = names::bindings(group, &workload.kind, &workload.name);
        let template = Key::new(namespace.clone(), workload.name.clone());
        // One that the watch has still to show may be there, too.
        let mut keys = Vec::new();
        for key in names.map(|name| Key::new(namespace.clone(), name)) {
            let known = self.index.lock().binding(&key);
            if let Some(view) = known.as_ref().map(AnyBinding::view) {
                // A workload of the same name in another group has its own.
                if !view.is_of(group, &workload.kind, &template) {
                    continue;
                }
                if rebalance::is_triggered(view.spec, at) {
                    return Ok(true);
                }
            }
            keys.push(key);
        }
        for key in &keys {
            if self.trigger_binding(key, workload, at).await? {
                return Ok(true);
            }
        }
        Ok(false)
    }

    /// Asks for the binding to be scheduled anew. Returns `false` if there is none of the workload.
    async fn trigger_binding(
        &self,
        key: &Key,
        workload: &RebalancedWorkload,
        at: &Time,
    ) -> Result<bool, WriteError> {
        let client = self.client.clone();
        let (kind, bindings): (_, Api<DynamicObject>) = if key.namespace.is_empty() {
            let kind = ApiResource::erase::<ClusterResourceBinding>(&());
            (kind.clone(), Api::all_with(client, &kind))
        } else {
            let kind = ApiResource::erase::<ResourceBinding>(&());
            let bindings = Api::namespaced_with(client, &key.namespace, &kind);
            (kind, bindings)
        };
        // The watch may have still to show it.
        let Some(found) = bindings.get_opt(&key.name).await? else {
            return Ok(false);
        };
        let object = ObjectRef::of(&found, &kind);
        let Some(write) = rebalance::trigger(&found.data["spec"], object, workload, at) else {
            return Ok(false);
        };
        let outcome = self.committer.write(&write, None).await?;
        Ok(!matches!(outcome, Outcome::Gone(_)))
    }
}

#[cfg(test)]
mod tests;
