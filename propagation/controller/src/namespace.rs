//! Brings the Works of one Namespace up to date, in every cluster.

use std::sync::Arc;

use karmada_api::execution_namespace;
use karmada_runtime::commit::Outcome;
use karmada_runtime::controller::Controller;
use karmada_runtime::error::BoxError;
use karmada_runtime::queue::Queue;
use kube::Resource;
use objects::Key;
use parking_lot::Mutex;
use propagation_rules::namespaces;
use propagation_rules::overrides::Overrides;
use propagation_rules::template::Skipped;
use serde_json::json;
use uuid::Uuid;

use crate::events::Events;
use crate::index::Index;
use crate::reason::Reason;
use crate::work_writer::WorkWriter;

/// Reconciles Namespaces.
pub(crate) struct NamespaceReconciler {
    pub(crate) index: Arc<Mutex<Index>>,
    pub(crate) writer: WorkWriter,
    pub(crate) events: Arc<Events>,
    /// The queue of this loop, for the key of all Namespaces, which has no name.
    pub(crate) queue: Queue<Key>,
    pub(crate) skipped: Skipped,
}

impl Controller for NamespaceReconciler {
    type Key = Key;

    fn keys(&self) -> Vec<Key> {
        self.index.lock().namespace_keys()
    }

    async fn reconcile(&self, key: &Key) -> Result<(), BoxError> {
        if key.name.is_empty() {
            self.queue.add_all(self.keys());
            return Ok(());
        }
        let Some(stored) = self.index.lock().namespaces.get(key).cloned() else {
            return Ok(());
        };
        let mut namespace = serde_json::to_value(&*stored)?;
        if let Some(fields) = namespace.as_object_mut() {
            // The elements of a list lack them.
            fields.insert("apiVersion".to_owned(), json!("v1"));
            fields.insert("kind".to_owned(), json!("Namespace"));
        }
        if !namespaces::is_propagated(&namespace, &self.skipped) {
            return Ok(());
        }
        let (policies, clusters) = {
            let index = self.index.lock();
            (index.overrides_for("").0, index.clusters())
        };
        let overrides = Overrides {
            cluster_policies: policies.iter().map(|policy| &**policy).collect(),
            policies: Vec::new(),
        };
        let name = namespaces::work_name(&key.name);
        let reference = &stored.object_ref(&());
        let mut writes = Vec::new();
        let mut refused = None;
        for cluster in clusters {
            let of = cluster.metadata.name.as_deref().unwrap_or_default();
            let work_key = Key::new(execution_namespace(of), &name);
            let current = self.index.lock().works.get(&work_key).cloned();
            let current = current.map(|work| work.object());
            let new_id = || Uuid::new_v4().to_string();
            match namespaces::plan(&namespace, &cluster, &overrides, current.as_ref(), new_id) {
                Ok(Some(write)) => writes.push(self.writer.write(write, reference)),
                Ok(None) => {}
                Err(error) => refused = Some(format!("{error} for cluster {of}")),
            }
        }
        match refused {
            Some(note) => {
                let reason = Reason::ApplyOverridePolicyFailed;
                self.events.trouble(reference, reason, note);
            }
            None => self.events.settled(reference),
        }
        // One cluster without its own namespace yet must not keep the others from theirs.
        let results = futures::future::join_all(writes).await;
        for result in results {
            if let Outcome::Contended(until) = result? {
                self.queue.add_at(key.clone(), until);
            }
        }
        Ok(())
    }
}
