//! Brings one cluster's `status.remedyActions` to what the remedies ask for.

use std::sync::Arc;

use k8s_openapi::apimachinery::pkg::apis::meta::v1::Condition;
use karmada_api::{Cluster, Key, Remedy};
use karmada_rules::remedy::{ActionChange, RemedyPlan};
use karmada_runtime::controller::Controller;
use karmada_runtime::error::BoxError;
use karmada_runtime::events::Events;
use karmada_runtime::write::{WriteErrorKind, Writer};
use kube::api::{Patch, PatchParams};
use kube::runtime::events::{Event, EventType};
use kube::{Api, Resource};
use serde_json::json;

use crate::watch::Index;

/// Reconciles clusters.
pub(crate) struct Reconciler {
    pub(crate) index: Arc<Index>,
    pub(crate) clusters: Api<Cluster>,
    pub(crate) writer: Writer,
    pub(crate) events: Events,
}

impl Controller for Reconciler {
    type Key = Key;

    fn keys(&self) -> Vec<Key> {
        self.index.begin()
    }

    async fn reconcile(&self, key: &Key) -> Result<(), BoxError> {
        let Some(view) = self.index.view(key) else {
            return Ok(());
        };
        for condition in &view.changed {
            self.tell(&view.cluster, condition_changed(condition));
        }
        let remedies = view.remedies.iter().map(|remedy| &**remedy);
        let plan = karmada_rules::remedy::plan(&view.cluster, remedies, view.complete);
        self.index.decided(key, plan != RemedyPlan::Unchanged);
        match plan {
            RemedyPlan::Unchanged => Ok(()),
            RemedyPlan::Write { actions, changes } => {
                self.apply(key, &view.cluster, &actions, &changes).await
            }
        }
    }
}

impl Reconciler {
    /// The actions are ours alone, so a merge patch of them loses nobody's write. It carries no
    /// resourceVersion: clusters change every few seconds, and a decision made on an older view is
    /// made again when the watch shows what it wrote.
    async fn apply(
        &self,
        key: &Key,
        cluster: &Cluster,
        actions: &[String],
        changes: &[ActionChange],
    ) -> Result<(), BoxError> {
        let actions = (!actions.is_empty()).then_some(actions);
        let patch = Patch::Merge(json!({ "status": { "remedyActions": actions } }));
        let parameters = PatchParams::default();
        let call = self.clusters.patch_status(&key.name, &parameters, &patch);
        match self.writer.write("remedy_actions", call).await {
            Ok(_) => {}
            Err(error) if error.kind() == WriteErrorKind::Missing => return Ok(()),
            Err(error) => return Err(error.into()),
        }
        for change in changes {
            tracing::info!(cluster = key.name, %change, "Remedy actions changed");
            self.tell(cluster, action_changed(change));
        }
        Ok(())
    }

    fn tell(&self, cluster: &Cluster, event: Event) {
        self.events.tell(cluster.object_ref(&()), event);
    }
}

fn condition_changed(condition: &Condition) -> Event {
    let healthy = condition.status == karmada_api::condition::TRUE;
    let Condition {
        type_,
        status,
        message,
        ..
    } = condition;
    Event {
        type_: if healthy {
            EventType::Normal
        } else {
            EventType::Warning
        },
        reason: condition.reason.clone(),
        note: Some(format!("{type_} is {status}: {message}")),
        action: "Observe".to_owned(),
        secondary: None,
    }
}

fn action_changed(change: &ActionChange) -> Event {
    let (type_, reason, remedy) = match change {
        ActionChange::Set { remedy, .. } => (EventType::Warning, "RemedyActionSet", Some(remedy)),
        ActionChange::Cleared { .. } => (EventType::Normal, "RemedyActionCleared", None),
    };
    let secondary = remedy.map(|name| {
        let mut reference = Remedy::new(name, karmada_api::RemedySpec::default()).object_ref(&());
        reference.uid = None;
        reference
    });
    Event {
        type_,
        reason: reason.to_owned(),
        note: Some(change.to_string()),
        action: "Remedy".to_owned(),
        secondary,
    }
}
