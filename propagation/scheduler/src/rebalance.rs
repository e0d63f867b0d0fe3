//! Serves the requests to schedule workloads anew, in a fleet without Karmada.

use std::sync::Arc;

use jiff::Timestamp;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;
use karmada_api::rebalancer::RebalancedWorkload;
use karmada_api::{ClusterResourceBinding, ResourceBinding, WorkloadRebalancer, names};
use karmada_runtime::controller::Controller;
use karmada_runtime::error::BoxError;
use karmada_runtime::program::Program;
use karmada_runtime::queue::Queue;
use karmada_runtime::store::Store;
use karmada_runtime::wakes::Watch;
use karmada_runtime::write::{WriteError, WriteErrorKind, WriteMode};
use kube::api::{ApiResource, DeleteParams, DynamicObject, Patch, PatchParams, Preconditions};
use kube::{Api, Client};
use objects::{Key, Metadata};
use parking_lot::Mutex;
use propagation_rules::rebalance;
use serde_json::json;

use crate::identity::NAME;
use crate::index::Index;

/// Serves requests to schedule workloads anew.
pub(crate) struct RebalanceReconciler {
    pub(crate) requests: Arc<Mutex<Store<WorkloadRebalancer>>>,
    pub(crate) queue: Queue<Key>,
    pub(crate) index: Arc<Mutex<Index>>,
    pub(crate) client: Client,
    pub(crate) writes: WriteMode,
    pub(crate) clock: fn() -> Timestamp,
}

/// Watches the requests, which `queue` gets.
pub(crate) fn watch(
    program: &mut Program,
    client: &Client,
    queue: &Queue<Key>,
) -> Arc<Mutex<Store<WorkloadRebalancer>>> {
    let requests: Arc<Mutex<Store<WorkloadRebalancer>>> = Arc::default();
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

    async fn reconcile(&self, key: &Key) -> Result<(), BoxError> {
        let request = self.requests.lock().get(key).cloned();
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
        if let Some(status) = status {
            let requests: Api<WorkloadRebalancer> = Api::all(self.client.clone());
            let patch = Patch::Merge(json!({ "status": status }));
            let parameters = PatchParams::apply(NAME);
            let call = requests.patch_status(&key.name, &parameters, &patch);
            unless_missing(self.writes.write("rebalancer", call).await)?;
        }
        if let Some(failure) = failure {
            return Err(failure.into());
        }
        // What was written wakes it once more.
        match rebalance::expires(&request).filter(|_| is_settled) {
            Some(at) if at <= now => self.delete(&request).await,
            Some(at) => {
                self.queue.add_at_time(key.clone(), at, now);
                Ok(())
            }
            None => Ok(()),
        }
    }
}

impl RebalanceReconciler {
    /// Asks for the workload to be scheduled anew. Returns `false` if it has no binding.
    async fn trigger(&self, workload: &RebalancedWorkload, at: &Time) -> Result<bool, WriteError> {
        let group = objects::group(&workload.api_version);
        let namespace = &workload.namespace;
        let names = names::bindings(group, &workload.kind, &workload.name);
        let keys: Vec<_> = names
            .map(|name| Key::new(namespace.clone(), name))
            .collect();
        let template = Key::new(namespace.clone(), workload.name.clone());
        let is_own = |key: &Key| {
            let binding = self.index.lock().binding(key)?;
            let view = binding.view();
            view.is_of(group, &workload.kind, &template)
                .then(|| rebalance::is_triggered(view.spec, at))
        };
        if keys.iter().any(|key| is_own(key) == Some(true)) {
            return Ok(true);
        }
        // One that the watch has still to show may be there, too; a workload of the same name in another group has its own.
        let is_others =
            |key: &&Key| is_own(key).is_none() && self.index.lock().binding(key).is_some();
        for key in keys.iter().filter(|key| !is_others(key)) {
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
        let bindings: Api<DynamicObject> = if key.namespace.is_empty() {
            Api::all_with(client, &ApiResource::erase::<ClusterResourceBinding>(&()))
        } else {
            let kind = ApiResource::erase::<ResourceBinding>(&());
            Api::namespaced_with(client, &key.namespace, &kind)
        };
        // The watch may have still to show it.
        let Some(found) = bindings.get_opt(&key.name).await? else {
            return Ok(false);
        };
        let version = found.metadata.resource_version.as_deref();
        let Some(patch) = rebalance::trigger(&found.data["spec"], version, workload, at) else {
            return Ok(false);
        };
        let (parameters, patch) = (PatchParams::apply(NAME), Patch::Merge(patch));
        let call = bindings.patch_metadata(&key.name, &parameters, &patch);
        match self.writes.write("trigger", call).await {
            Err(error) if error.kind() == WriteErrorKind::Missing => Ok(false),
            written => written.map(|_| true),
        }
    }

    /// Deletes a request whose time is over, unless it has changed.
    async fn delete(&self, request: &WorkloadRebalancer) -> Result<(), BoxError> {
        let requests: Api<WorkloadRebalancer> = Api::all(self.client.clone());
        let parameters = DeleteParams {
            preconditions: Some(Preconditions {
                resource_version: request.metadata.resource_version.clone(),
                uid: request.metadata.uid.clone(),
            }),
            ..DeleteParams::default()
        };
        let call = requests.delete(request.metadata.name(), &parameters);
        unless_missing(self.writes.write("rebalancer", call).await)
    }
}

/// Fails unless the object was written, or was deleted meanwhile.
fn unless_missing<T>(written: Result<Option<T>, WriteError>) -> Result<(), BoxError> {
    match written {
        Err(error) if error.kind() != WriteErrorKind::Missing => Err(error.into()),
        _ => Ok(()),
    }
}

#[cfg(test)]
mod tests;
