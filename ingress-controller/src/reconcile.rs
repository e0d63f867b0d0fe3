//! Brings one `MultiClusterIngress` to its desired state: status, finalizers and load balancer.

use std::sync::Arc;

use karmada_api::{Key, MultiClusterIngress};
use karmada_rules::ingress::{
    ControllerName, Decision, FieldPlan, Release, Serve, StatusPatch, load_balancer,
};
use karmada_runtime::controller::Controller;
use karmada_runtime::error::BoxError;
use karmada_runtime::write::{WriteError, WriteErrorKind, Writer};
use kube::api::{Patch, PatchParams};
use kube::core::PartialObjectMeta;
use kube::{Api, Client};
use serde_json::{Value, json};

use crate::events::{IngressEvents, obstacle};
use crate::provider::{Ensured, LoadBalancer};
use crate::watch::SharedIndex;

/// Reconciles ingresses.
pub(crate) struct Reconciler {
    pub(crate) index: Arc<SharedIndex>,
    pub(crate) controller: ControllerName,
    pub(crate) balancer: Arc<dyn LoadBalancer>,
    pub(crate) client: Client,
    pub(crate) writer: Writer,
    pub(crate) events: IngressEvents,
}

impl Controller for Reconciler {
    type Key = Key;

    fn keys(&self) -> Vec<Key> {
        let mut keys = self.index.keys();
        // Ingresses deleted while nobody led exist only there.
        keys.extend(self.balancer.keys());
        keys
    }

    async fn reconcile(&self, key: &Key) -> Result<(), BoxError> {
        match self.index.decide(key, &self.controller) {
            (_, Decision::Leave) | (None, Decision::Serve(_)) => Ok(()),
            (Some(ingress), Decision::Serve(serve)) => self.serve(&ingress, &serve).await,
            (ingress, Decision::Release(release)) => {
                self.release(key, ingress.as_deref(), &release).await
            }
        }
    }
}

impl Reconciler {
    async fn serve(&self, ingress: &MultiClusterIngress, serve: &Serve) -> Result<(), BoxError> {
        // The finalizer comes first: without it the ingress could be deleted between its creation in
        // the load balancer and the next reconcile.
        if let FieldPlan::Write(finalizers) = &serve.finalizers {
            let version = ingress.metadata.resource_version.as_deref();
            if self.write_finalizers(ingress, version, finalizers).await? == WriteOutcome::Gone {
                return Ok(());
            }
        }
        // Concurrently, so that trouble with either API does not delay the blocking of a cluster in
        // the other.
        let (status, ensured) = futures::join!(
            self.write_locations(ingress, serve),
            self.balancer.ensure(&self.writer, &serve.desired)
        );
        let ensured = ensured?;
        self.record_obstacles(ingress, serve, &ensured);
        status?;
        if let Some(reported) = ensured.load_balancer
            && let FieldPlan::Write(wanted) = load_balancer(ingress.status.as_ref(), reported)
        {
            self.write_status(ingress, "load_balancer", json!({ "loadBalancer": wanted }))
                .await?;
        }
        // No event shows that an obstacle is gone, so it is an error that is retried.
        match ensured.obstacles.into_iter().next() {
            Some(obstacle) => Err(obstacle.into()),
            None => Ok(()),
        }
    }

    async fn release(
        &self,
        key: &Key,
        ingress: Option<&MultiClusterIngress>,
        release: &Release,
    ) -> Result<(), BoxError> {
        let ensured = self.balancer.delete(&self.writer, key).await?;
        self.events.forget(key);
        let Some(ingress) = ingress else {
            return Ok(());
        };
        let mut version = ingress.metadata.resource_version.clone();
        if release.clears_status {
            match self
                .write_status(ingress, "status", cleared(&ensured)?)
                .await?
            {
                WriteOutcome::Stored { version: stored } => version = stored,
                WriteOutcome::Gone => return Ok(()),
            }
        }
        // The finalizer goes last: the API server may delete the ingress in the same moment.
        if let FieldPlan::Write(finalizers) = &release.finalizers {
            self.write_finalizers(ingress, version.as_deref(), finalizers)
                .await?;
            tracing::info!(ingress = %key, "Ingress let go");
        }
        Ok(())
    }

    async fn write_locations(
        &self,
        ingress: &MultiClusterIngress,
        serve: &Serve,
    ) -> Result<(), BoxError> {
        if let FieldPlan::Write(patch) = &serve.status {
            let patch = serde_json::to_value(patch)?;
            if self.write_status(ingress, "status", patch).await? != WriteOutcome::Gone {
                self.events.traffic_changed(ingress, &serve.change);
            }
        }
        Ok(())
    }

    /// Records the obstacles in the ingress's own routes and in the load balancer.
    fn record_obstacles(&self, ingress: &MultiClusterIngress, serve: &Serve, ensured: &Ensured) {
        let key = &serve.desired.key;
        let problems = serve.desired.problems();
        let problems = problems
            .iter()
            .map(|problem| obstacle(problem, &key.namespace));
        let all = problems.chain(ensured.obstacles.iter().cloned()).collect();
        self.events.obstacles(ingress, &all);
    }

    /// Merges `status` into the status of `ingress`. No other writer has these fields, so a merge
    /// patch overwrites nobody's change. It carries no resourceVersion: a decision on an older version
    /// is made again when the watch shows this write.
    async fn write_status(
        &self,
        ingress: &MultiClusterIngress,
        target: &'static str,
        status: Value,
    ) -> Result<WriteOutcome, WriteError> {
        let key = Key::of(ingress);
        let api = self.api(&key);
        let patch = Patch::Merge(json!({ "status": status }));
        let parameters = PatchParams::default();
        let call = api.patch_status(&key.name, &parameters, &patch);
        WriteOutcome::of(self.writer.write(target, call).await)
    }

    /// Replaces the finalizers of `ingress`, provided that its resource version is still `version`.
    async fn write_finalizers(
        &self,
        ingress: &MultiClusterIngress,
        version: Option<&str>,
        finalizers: &[String],
    ) -> Result<WriteOutcome, BoxError> {
        let key = Key::of(ingress);
        let api = self.api(&key);
        // The list is shared with other controllers, and a patch replaces it as a whole. Replacing the
        // resource version too makes the API server compare it: 409 if anything changed.
        let steps = json!([
            { "op": "replace", "path": "/metadata/resourceVersion", "value": version },
            { "op": "add", "path": "/metadata/finalizers", "value": finalizers },
        ]);
        let patch: Patch<()> = Patch::Json(serde_json::from_value(steps)?);
        let parameters = PatchParams::default();
        let call = api.patch(&key.name, &parameters, &patch);
        Ok(WriteOutcome::of(
            self.writer.write("finalizers", call).await,
        )?)
    }

    fn api(&self, key: &Key) -> Api<PartialObjectMeta<MultiClusterIngress>> {
        Api::namespaced(self.client.clone(), &key.namespace)
    }
}

/// The outcome of a write to an ingress.
#[derive(Clone, Debug, PartialEq, Eq)]
enum WriteOutcome {
    /// The ingress is stored with this resource version.
    Stored { version: Option<String> },
    /// The ingress no longer exists.
    Gone,
}

impl WriteOutcome {
    fn of(
        result: Result<PartialObjectMeta<MultiClusterIngress>, WriteError>,
    ) -> Result<Self, WriteError> {
        match result {
            Ok(stored) => Ok(Self::Stored {
                version: stored.metadata.resource_version,
            }),
            Err(error) if error.kind() == WriteErrorKind::Missing => Ok(Self::Gone),
            Err(error) => Err(error),
        }
    }
}

/// Returns the merge patch that clears our part of a status. The addresses are ours only if the load
/// balancer is.
fn cleared(ensured: &Ensured) -> serde_json::Result<Value> {
    let mut status = serde_json::to_value(StatusPatch::default())?;
    if ensured.load_balancer.is_some() {
        status["loadBalancer"] = Value::Null;
    }
    Ok(status)
}

#[cfg(test)]
mod tests;
