//! Brings the Works of one binding up to date, and the status of the binding and its template.

mod gauges;
mod known;
mod leaving;
mod status;
pub(crate) mod steps;
mod versions;
mod wanted;

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use jiff::Timestamp;
use k8s_openapi::api::core::v1::ObjectReference;
use karmada_api::{Work, execution_namespace};
use karmada_runtime::commit::{Committer, Outcome};
use karmada_runtime::controller::Controller;
use karmada_runtime::error::BoxError;
use karmada_runtime::queue::Queue;
use kube::{Client, Resource};
use objects::patch::JsonPatch;
use objects::write::{Guard, Write};
use objects::{Key, Metadata, api_version, kind};
use parking_lot::Mutex;
use propagation_rules::binding;
use propagation_rules::binding_ref::BindingRef;
use propagation_rules::interpret::Timed;
use propagation_rules::template::Skipped;
use propagation_rules::works::{self, Step, Unwritten, WorkFacts};
use serde_json::Value;
use tokio::time::Instant;
use uuid::Uuid;

use self::gauges::Counts;
pub(crate) use self::gauges::WorkGauges;
use self::known::{Known, is_everywhere};
use self::wanted::is_left;
pub(crate) use self::wanted::{is_dispatched, is_free};
use crate::events::Events;
use crate::index::{Index, StoredBinding, template_of};
use crate::latest::SharedReads;
use crate::preferred::PreferredVersions;
use crate::templates::Templates;
use crate::work_writer::WorkWriter;

/// The time after which a binding whose policy is not known as it is now is looked at again, should nothing wake it.
const BEHIND: Duration = Duration::from_secs(1);

/// Reconciles bindings of both scopes.
pub(crate) struct BindingReconciler {
    pub(crate) index: Arc<Mutex<Index>>,
    pub(crate) templates: Arc<Templates>,
    pub(crate) client: Client,
    /// The policies as the API has them.
    pub(crate) policies: SharedReads,
    pub(crate) committer: Committer,
    pub(crate) skipped: Skipped,
    /// The writes of the Works.
    pub(crate) writer: WorkWriter,
    /// The queue of this loop.
    pub(crate) queue: Queue<Key>,
    pub(crate) events: Arc<Events>,
    /// Of the statuses of templates, which may have other troubles.
    pub(crate) status_events: Arc<Events>,
    /// The time that conditions show.
    pub(crate) clock: fn() -> Timestamp,
    pub(crate) gauges: WorkGauges,
    pub(crate) preferred: PreferredVersions,
    /// True if templates of Deployments get conditions.
    pub(crate) conditions: bool,
}

/// The part of a binding that is its ID and its finalizer.
const IDENTITY: &str = "identity";

impl Controller for BindingReconciler {
    type Key = Key;

    fn keys(&self) -> Vec<Key> {
        // Those of an earlier term.
        self.gauges.clear();
        self.index.lock().bindings_where(|_| true)
    }

    async fn reconcile(&self, key: &Key) -> Result<(), BoxError> {
        let Some(stored) = self.index.lock().binding(key) else {
            self.gauges.set(key, Counts::default());
            return Ok(());
        };
        let binding = stored.view();
        let works = self.works(binding);
        if binding.metadata.deletion_timestamp.is_some() {
            self.events.settled(&reference(&stored));
            // The end of the template wakes it.
            if self.is_outlived(binding).await? {
                return Ok(());
            }
            return self.release(binding, &works).await;
        }
        self.watch_preferred(binding).await;
        let Some(template) = self.templates.bound(binding) else {
            return Ok(());
        };
        let is_left = is_left(&self.index.lock(), binding, &template);
        // In a namespace that is going, policies go one by one, and nobody wants the states between.
        let is_dispatched = is_dispatched(binding) && !is_left && !self.is_leaving(binding);
        if is_dispatched {
            self.identify(&stored, &template, &works).await?;
        }
        // Without an ID nobody can tell which Works are its own. The write of one wakes it again.
        if binding.id().is_none() {
            return Ok(());
        }
        // A template without a policy stays in its clusters as it is.
        let is_settled = is_dispatched && self.dispatch(&stored, &template, &works).await?;
        self.report(&stored, &template, &works).await?;
        self.aggregate(binding, &template, &works, is_settled).await
    }
}

impl BindingReconciler {
    /// Returns the Works of a binding. They are parsed without the lock, which every watch needs.
    fn works(&self, binding: BindingRef<'_>) -> Vec<Work> {
        let stored = self.index.lock().works_of(binding);
        stored.iter().map(|work| work.object()).collect()
    }

    /// Deletes the Works of a binding that is being deleted, and lets it go. Members are not waited for:
    /// the Works stay until these have let go.
    async fn release(&self, binding: BindingRef<'_>, works: &[Work]) -> Result<(), BoxError> {
        if !binding.metadata.has_finalizer(binding.finalizer()) {
            return Ok(());
        }
        (self.committer).forget_part("binding", &binding.key(), IDENTITY);
        let id = works::id(binding, works);
        let own = works.iter().filter(|work| {
            let is_own = id.is_some() && work.metadata.label(binding.id_label()) == id;
            is_own && !work.metadata.is_deleting()
        });
        let key = template_of(binding.spec);
        let is_listed = self.templates.is_listed(&key.kind);
        let template = self.templates.get(&key);
        let is_namespace = (&*key.kind.group, &*key.kind.kind) == ("", "Namespace");
        // Nobody knows yet whether the Namespace is there. The end of the list wakes it.
        if is_namespace && template.is_none() && !is_listed {
            return Ok(());
        }
        let namespace = template.filter(|template| is_everywhere(template, &self.skipped));
        if let Some(namespace) = &namespace {
            // With a copy everything in it would go.
            let reference = template_reference(namespace);
            for work in own {
                let write = works::to_namespace(namespace, binding, work);
                self.writer.write(write, &reference).await?;
            }
            return self.remove_finalizer(binding).await;
        }
        let mut targets: BTreeMap<Key, Option<String>> = own
            .map(|work| (Key::of(work), work.metadata.uid.clone()))
            .collect();
        // A Work that was just made may not be in the cache yet.
        for target in binding.spec.all_targets() {
            let key = Key::new(execution_namespace(&target.name), works::work_name(binding));
            let is_known = works.iter().any(|work| Key::of(work) == key);
            if !is_known && self.index.lock().cluster(&target.name).is_some() {
                targets.insert(key, None);
            }
        }
        let deletions = targets.into_iter().map(|(key, uid)| async move {
            let write = works::deletion(key, uid);
            self.writer.delete(&write).await
        });
        futures::future::try_join_all(deletions).await?;

        self.remove_finalizer(binding).await
    }

    /// Removes our finalizer from a binding.
    async fn remove_finalizer(&self, binding: BindingRef<'_>) -> Result<(), BoxError> {
        let mut patch = JsonPatch::default();
        patch.remove_finalizer(binding.metadata, binding.finalizer());
        let write = Write::json("finalizer", binding.object(), patch).guarded(Guard::Version);
        self.committer.write(&write, None).await?;
        Ok(())
    }

    /// Writes the Works that the binding needs, and deletes those that nobody needs. Returns `true` if
    /// every Work was as it should be before.
    async fn dispatch(
        &self,
        stored: &StoredBinding,
        template: &Value,
        works: &[Work],
    ) -> Result<bool, BoxError> {
        let binding = stored.view();
        let revised = self.revised(binding, template).await;
        let known = Known::read(&self.index.lock(), binding, template);
        let facts = WorkFacts {
            revised,
            ..known.facts(binding, template, works, &self.skipped)
        };
        let steps = works::plan(&facts, || Uuid::new_v4().to_string());

        let is_settled = steps.values().all(is_done);
        let counts = Counts {
            suspended: works.iter().filter(|work| work.is_suspended()).count(),
            held: steps
                .values()
                .filter(|step| matches!(step, Err(Unwritten::HoldWhilePaused)))
                .count(),
            taken: steps
                .values()
                .filter(|step| matches!(step, Err(Unwritten::Taken(_))))
                .count(),
        };
        self.gauges.set(&binding.key(), counts);
        let Some(outcome) = self.take_steps(stored, &known, steps).await else {
            tracing::debug!(binding = %binding.key(), "Its policy is newer than known, waiting for the watch");
            self.queue.add_at(binding.key(), Instant::now() + BEHIND);
            return Ok(false);
        };
        self.record(stored, template, &outcome);
        if let Some(until) = outcome.paused {
            self.queue.add_at(binding.key(), until);
        }
        outcome.error.map_or(Ok(is_settled), Err)
    }

    /// Returns the template with the replicas of each cluster, if a script makes it.
    async fn revised(
        &self,
        binding: BindingRef<'_>,
        template: &Value,
    ) -> BTreeMap<i32, Result<Timed, String>> {
        let mut revised = BTreeMap::new();
        for replicas in works::revisions(binding) {
            let answer = self.templates.interpreters.revise(template, replicas).await;
            let Some(answer) = answer else {
                break;
            };
            let answer = answer.map_err(|failure| failure.to_string());
            revised.insert(replicas, answer);
        }
        revised
    }

    /// Gives a binding the ID and the finalizer that it lacks.
    async fn identify(
        &self,
        stored: &StoredBinding,
        template: &Value,
        works: &[Work],
    ) -> Result<(), BoxError> {
        let binding = stored.view();
        let write = binding::identify(binding, works, || Uuid::new_v4().to_string());
        let Some(write) = write else {
            return Ok(());
        };
        let about = vec![reference(stored), template_reference(template)];
        let write = write.of_part(IDENTITY.to_owned()).about(about);
        if let Outcome::Contended(until) = self.committer.write(&write, None).await? {
            self.queue.add_at(binding.key(), until);
        }
        Ok(())
    }
}

/// Returns `true` if the Work of a cluster is as it should be.
fn is_done(step: &Step) -> bool {
    use Unwritten::{Deleting, HoldWhilePaused, Keep};
    matches!(step, Ok(None) | Err(Keep | HoldWhilePaused | Deleting))
}

pub(crate) fn reference(binding: &StoredBinding) -> ObjectReference {
    match binding {
        StoredBinding::Namespaced(binding) => binding.object_ref(&()),
        StoredBinding::Cluster(binding) => binding.object_ref(&()),
    }
}

pub(crate) fn template_reference(template: &Value) -> ObjectReference {
    ObjectReference {
        api_version: given(api_version(template)),
        kind: given(kind(template)),
        namespace: given(template.namespace()),
        name: given(template.name()),
        uid: given(template.uid()),
        ..ObjectReference::default()
    }
}

/// Returns a text, unless it is empty.
fn given(text: &str) -> Option<String> {
    (!text.is_empty()).then(|| text.to_owned())
}
