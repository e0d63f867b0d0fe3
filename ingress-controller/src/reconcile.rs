//! Brings one `MultiClusterIngress` to where it should be: its status, its finalizers and the load
//! balancer.

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

use crate::notices::{Notices, Wrong};
use crate::provider::{Ensured, LoadBalancer, Obstacle};
use crate::watch::Index;

/// Reconciles ingresses.
pub(crate) struct Reconciler<L> {
    pub(crate) index: Arc<Index>,
    pub(crate) controller: ControllerName,
    pub(crate) balancer: L,
    pub(crate) client: Client,
    pub(crate) writer: Writer,
    pub(crate) notices: Notices,
}

/// Why an ingress is not served as it says; looked at again later.
#[derive(Debug, thiserror::Error)]
#[error("{0}")]
struct InTheWay(Obstacle);

impl<L: LoadBalancer> Controller for Reconciler<L> {
    type Key = Key;

    fn keys(&self) -> Vec<Key> {
        let mut keys = self.index.ingresses();
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

impl<L: LoadBalancer> Reconciler<L> {
    /// The status and the load balancer do not wait for each other, so that neither API's trouble
    /// keeps a cluster in that is blocked.
    async fn serve(&self, ingress: &MultiClusterIngress, serve: &Serve) -> Result<(), BoxError> {
        if let FieldPlan::Write(finalizers) = &serve.finalizers {
            let version = ingress.metadata.resource_version.as_deref();
            if self.write_finalizers(ingress, version, finalizers).await? == Stored::Gone {
                return Ok(());
            }
        }
        let (status, ensured) = futures::join!(
            self.write_locations(ingress, serve),
            self.balancer.ensure(&serve.desired)
        );
        let ensured = ensured?;
        self.tell_of_wrongs(ingress, serve, &ensured);
        status?;
        if let Some(reported) = ensured.load_balancer
            && let FieldPlan::Write(wanted) = load_balancer(ingress.status.as_ref(), reported)
        {
            self.write_status(ingress, "load_balancer", json!({ "loadBalancer": wanted }))
                .await?;
        }
        match ensured.obstacles.into_iter().next() {
            Some(obstacle) => Err(InTheWay(obstacle).into()),
            None => Ok(()),
        }
    }

    async fn release(
        &self,
        key: &Key,
        ingress: Option<&MultiClusterIngress>,
        release: &Release,
    ) -> Result<(), BoxError> {
        let ensured = self.balancer.delete(key).await?;
        self.notices.forget(key);
        let Some(ingress) = ingress else {
            return Ok(());
        };
        let mut version = ingress.metadata.resource_version.clone();
        if release.clears_status {
            match self
                .write_status(ingress, "status", cleared(&ensured)?)
                .await?
            {
                Stored::As(stored) => version = stored,
                Stored::Gone => return Ok(()),
            }
        }
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
            if self.write_status(ingress, "status", patch).await? != Stored::Gone {
                self.notices.changed(ingress, &serve.change);
            }
        }
        Ok(())
    }

    fn tell_of_wrongs(&self, ingress: &MultiClusterIngress, serve: &Serve, ensured: &Ensured) {
        let problems = serve.desired.problems().into_iter().map(Wrong::Problem);
        let obstacles = ensured.obstacles.iter().cloned().map(Wrong::Obstacle);
        let wrong = problems.chain(obstacles).collect();
        self.notices.wrong(ingress, &wrong);
    }

    /// What we write of the status is ours alone, so a merge patch of it loses nobody's write. It
    /// carries no resourceVersion: a decision made on an older view is made again when the watch
    /// shows what it wrote.
    async fn write_status(
        &self,
        ingress: &MultiClusterIngress,
        target: &'static str,
        status: Value,
    ) -> Result<Stored, WriteError> {
        let key = Key::of(ingress);
        let api = self.api(&key);
        let patch = Patch::Merge(json!({ "status": status }));
        let parameters = PatchParams::default();
        let call = api.patch_status(&key.name, &parameters, &patch);
        Stored::from(self.writer.write(target, call).await)
    }

    /// Finalizers are everybody's, so they are written only if nothing was since `version`.
    async fn write_finalizers(
        &self,
        ingress: &MultiClusterIngress,
        version: Option<&str>,
        finalizers: &[String],
    ) -> Result<Stored, BoxError> {
        let key = Key::of(ingress);
        let api = self.api(&key);
        let steps = json!([
            { "op": "replace", "path": "/metadata/resourceVersion", "value": version },
            { "op": "add", "path": "/metadata/finalizers", "value": finalizers },
        ]);
        let patch: Patch<()> = Patch::Json(serde_json::from_value(steps)?);
        let parameters = PatchParams::default();
        let call = api.patch(&key.name, &parameters, &patch);
        Ok(Stored::from(self.writer.write("finalizers", call).await)?)
    }

    fn api(&self, key: &Key) -> Api<PartialObjectMeta<MultiClusterIngress>> {
        Api::namespaced(self.client.clone(), &key.namespace)
    }
}

/// What became of an ingress that was written.
#[derive(Clone, Debug, PartialEq, Eq)]
enum Stored {
    /// It is stored with this resource version.
    As(Option<String>),
    /// It does not exist any more.
    Gone,
}

impl Stored {
    fn from(
        written: Result<PartialObjectMeta<MultiClusterIngress>, WriteError>,
    ) -> Result<Self, WriteError> {
        match written {
            Ok(stored) => Ok(Self::As(stored.metadata.resource_version)),
            Err(error) if error.kind() == WriteErrorKind::Missing => Ok(Self::Gone),
            Err(error) => Err(error),
        }
    }
}

/// The merge patch that clears our part of a status.
fn cleared(ensured: &Ensured) -> serde_json::Result<Value> {
    let mut status = serde_json::to_value(StatusPatch::default())?;
    if ensured.load_balancer.is_some() {
        status["loadBalancer"] = Value::Null;
    }
    Ok(status)
}

#[cfg(test)]
mod tests;
