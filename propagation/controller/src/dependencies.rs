//! Attaches the bindings of a template's dependencies, so that these follow into its clusters.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use k8s_openapi::api::core::v1::ObjectReference;
use karmada_api::ResourceBinding;
use karmada_runtime::commit::{Committer, Outcome};
use karmada_runtime::controller::Controller;
use karmada_runtime::error::BoxError;
use karmada_runtime::queue::Queue;
use kube::{Api, Client, Resource};
use objects::write::Write;
use objects::{GroupVersionKind, Key};
use parking_lot::Mutex;
use propagation_rules::binding::Place;
use propagation_rules::binding_ref::BindingRef;
use propagation_rules::dependencies::{self, Dependency, Need, Referrers};
use propagation_rules::template::{self, Skipped};
use serde_json::Value;
use uuid::Uuid;

use crate::binding::steps::is_trouble;
use crate::binding::{is_dispatched, template_reference};
use crate::events::Events;
use crate::index::{Index, Policy, StoredBinding, TemplateKey, template_of};
use crate::reason::Reason;
use crate::templates::Templates;

/// Reconciles the bindings whose dependencies follow them.
pub(crate) struct DependencyReconciler {
    pub(crate) index: Arc<Mutex<Index>>,
    pub(crate) templates: Arc<Templates>,
    pub(crate) client: Client,
    pub(crate) committer: Committer,
    pub(crate) events: Arc<Events>,
    /// The queue of this loop.
    pub(crate) queue: Queue<Key>,
    pub(crate) skipped: Skipped,
    /// False if nothing follows anew: a dependency that does stays as it is until its referrer is gone.
    pub(crate) attaches: bool,
}

/// Errors of a reconcile.
#[derive(Debug, thiserror::Error)]
enum DependencyError {
    #[error("could not read binding {key}, which others are attached to")]
    Read { key: Key, source: kube::Error },
    #[error("binding {0} exists and is not in the cache yet")]
    Unseen(Key),
    #[error("the names that the binding of {0} may have are those of other bindings")]
    NoName(Key),
}

impl Controller for DependencyReconciler {
    type Key = Key;

    fn keys(&self) -> Vec<Key> {
        self.index.lock().referring()
    }

    async fn reconcile(&self, key: &Key) -> Result<(), BoxError> {
        let Some(stored) = self.binding(key) else {
            return self.forget(key).await;
        };
        let binding = BindingRef::from(&*stored);
        if !dependencies::follow(binding) {
            self.detach_all(key, &BTreeSet::new()).await?;
            let released = dependencies::release(binding);
            self.write(key, released).await?;
            self.events.settled(&stored.object_ref(&()));
            return Ok(());
        }
        if !self.attaches {
            return Ok(());
        }
        // A template without a policy stays in its clusters as it is, and so do its dependencies.
        let template = self.templates.bound(binding);
        let Some(template) = template.filter(|_| is_dispatched(binding)) else {
            return Ok(());
        };
        let result = self.attach_all(binding, &template).await;
        self.record(&stored, result)
    }
}

impl DependencyReconciler {
    /// Detaches the dependencies of a binding, if that is really gone. Absence from the cache is
    /// no deletion.
    async fn forget(&self, key: &Key) -> Result<(), BoxError> {
        if self.attached(key).is_empty() {
            return Ok(());
        }
        let found = self.api(key).get_metadata_opt(&key.name).await;
        let found = found.map_err(|source| DependencyError::Read {
            key: key.clone(),
            source,
        })?;
        match found {
            Some(_) => Err(DependencyError::Unseen(key.clone()).into()),
            None => self.detach_all(key, &BTreeSet::new()).await.map(|_| ()),
        }
    }

    /// Lists the template's dependencies and attaches them. Returns `true` if the binding of another template
    /// was written.
    async fn attach_all(
        &self,
        binding: BindingRef<'_>,
        template: &Value,
    ) -> Result<bool, BoxError> {
        let key = binding.key();
        let wanted = self.references(template).await?;
        // The finalizer must be there before anything is attached.
        let listed = dependencies::list(binding, &wanted);
        if self.write(&key, listed).await? && !wanted.is_empty() {
            let note = format!("Get dependencies({}) succeed.", named(&wanted));
            let template = template_reference(template);
            self.events
                .success(template, Reason::GetDependenciesSucceed, note);
        }
        let policy = self.index.lock().policy_of(binding);
        let objects = wanted
            .iter()
            .flat_map(|dependency| self.objects(dependency));
        let attaching = objects.map(|object| self.attach(binding, policy.as_ref(), object));
        let attached = futures::future::join_all(attaching).await;
        let mut written = false;
        for result in attached {
            written |= result?;
        }
        let suspension = policy.as_ref().and_then(Policy::suspension);
        // A copy of the former template still needs the dependencies of that.
        if !dependencies::is_paused(binding, suspension) {
            written |= self.detach_all(&key, &wanted).await?;
        }
        Ok(written)
    }

    /// Returns the references of the template. Scripts have the last word about it.
    async fn references(&self, template: &Value) -> Result<BTreeSet<Dependency>, BoxError> {
        let answer = self.templates.interpreters.dependencies(template).await;
        let reference = template_reference(template);
        match answer {
            None => Ok(dependencies::references(template)),
            Some(Ok(found)) => {
                self.events.settled(&reference);
                Ok(found)
            }
            Some(Err(failure)) => {
                let reason = Reason::GetDependenciesFailed;
                self.events.trouble(&reference, reason, failure.to_string());
                Err(failure.into())
            }
        }
    }

    /// Returns the objects of a dependency that exist. The others are attached when they appear.
    fn objects(&self, dependency: &Dependency) -> Vec<(TemplateKey, Value)> {
        let named = TemplateKey::from(dependency);
        let keys = if dependency.label_selector.is_none() {
            vec![named]
        } else {
            self.templates.beside(&named)
        };
        let objects = keys.into_iter();
        let objects = objects.filter_map(|key| Some((key.clone(), self.templates.get(&key)?)));
        objects
            .filter(|(_, object)| dependency.label_selector.is_none() || dependency.selects(object))
            .collect()
    }

    /// Attaches the binding of one object. Returns `true` if it wrote.
    async fn attach(
        &self,
        referrer: BindingRef<'_>,
        policy: Option<&Policy>,
        (template_key, object): (TemplateKey, Value),
    ) -> Result<bool, BoxError> {
        let refusal = self.templates.interpreters.refusal(&template_key.kind);
        if template::is_excluded(&object, &self.skipped) || refusal.is_some() {
            return Ok(false);
        }
        let referrer_key = referrer.key();
        let existing = self.binding_of(&template_key);
        let new_key = || self.index.lock().new_binding_key(&template_key);
        let existing_ref = existing.as_deref().map(BindingRef::from);
        let clusters = dependencies::needed_clusters(
            referrer,
            existing_ref,
            policy.and_then(Policy::suspension),
        );
        if clusters.is_empty() {
            return match &existing {
                Some(existing) => self.detach(&referrer_key, existing).await,
                None => Ok(false),
            };
        }
        let others = existing_ref.map(|existing| self.index.lock().referrers(existing));
        let others = others.unwrap_or_default();
        let mut referrers = known(&others);
        referrers.insert(referrer_key, referrer.spec);
        if let Some(existing) = &existing {
            self.record_conflict(existing, &referrers);
        }
        let need = Need { referrer, clusters };
        let new_id = || Uuid::new_v4().to_string();
        let place = match existing_ref {
            Some(existing) => Place::Existing(existing),
            None => Place::New(new_key().ok_or(DependencyError::NoName(template_key.key))?),
        };
        let is_served = |kind: &GroupVersionKind| !self.index.lock().not_served.contains(kind);
        let write = dependencies::attach(&object, &need, place, &referrers, is_served, new_id);
        self.write(&referrer.key(), write).await
    }

    /// Detaches every binding that is attached on account of `referrer`, apart from those that are `wanted`.
    /// Returns `true` if it wrote.
    async fn detach_all(
        &self,
        referrer: &Key,
        wanted: &BTreeSet<Dependency>,
    ) -> Result<bool, BoxError> {
        let attached = self.attached(referrer);
        let dropped = attached.iter().filter(|binding| {
            let binding = BindingRef::from(&***binding);
            let template = self.templates.get(&template_of(binding.spec));
            let mut wanted = wanted.iter();
            !wanted.any(|dependency| dependency.has(binding, template.as_ref()))
        });
        let detaching = dropped.map(|binding| self.detach(referrer, binding));
        let mut written = false;
        for result in futures::future::join_all(detaching).await {
            written |= result?;
        }
        Ok(written)
    }

    async fn detach(&self, referrer: &Key, binding: &ResourceBinding) -> Result<bool, BoxError> {
        let binding = BindingRef::from(binding);
        if !dependencies::is_attached(binding, referrer) {
            return Ok(false);
        }
        let others = self.index.lock().referrers(binding);
        let write = dependencies::detach(referrer, binding, &known(&others));
        self.write(referrer, write).await
    }

    fn binding(&self, key: &Key) -> Option<Arc<ResourceBinding>> {
        self.index.lock().bindings.get(key).cloned()
    }

    fn binding_of(&self, template: &TemplateKey) -> Option<Arc<ResourceBinding>> {
        let binding = self.index.lock().binding_of(template)?;
        match binding {
            StoredBinding::Namespaced(binding) => Some(binding),
            StoredBinding::Cluster(_) => None,
        }
    }

    /// Returns the bindings that are attached on account of `referrer`.
    fn attached(&self, referrer: &Key) -> Vec<Arc<ResourceBinding>> {
        let index = self.index.lock();
        let keys = index.required_by(referrer).into_iter();
        let bindings = keys.filter_map(|key| index.bindings.get(&key).cloned());
        bindings
            .filter(|binding| dependencies::is_attached(BindingRef::from(&**binding), referrer))
            .collect()
    }

    /// Records the settings about which the bindings that require another one disagree.
    fn record_conflict(&self, binding: &ResourceBinding, referrers: &Referrers<'_>) {
        let reference = binding.object_ref(&());
        match dependencies::conflict(BindingRef::from(binding), referrers) {
            Some(note) => self
                .events
                .trouble(&reference, Reason::DependencyPolicyConflict, note),
            None => self.events.settled(&reference),
        }
    }

    /// Records the outcome for the bindings that this one requires.
    fn record(
        &self,
        binding: &ResourceBinding,
        result: Result<bool, BoxError>,
    ) -> Result<(), BoxError> {
        let reference = binding.object_ref(&());
        match result {
            Ok(written) => {
                self.events.settled(&reference);
                if written {
                    let reason = Reason::SyncScheduleResultToDependenciesSucceed;
                    let note = "Sync schedule results to dependencies succeed.".to_owned();
                    self.events.success(reference, reason, note);
                }
                Ok(())
            }
            Err(error) => {
                if is_trouble(&error) {
                    let reason = Reason::SyncScheduleResultToDependenciesFailed;
                    self.events.trouble(&reference, reason, error.to_string());
                }
                Err(error)
            }
        }
    }

    fn api(&self, key: &Key) -> Api<ResourceBinding> {
        Api::namespaced(self.client.clone(), &key.namespace)
    }

    /// Returns the binding `key` and its template, as Events refer to them.
    fn concerned(&self, key: &Key) -> Vec<ObjectReference> {
        let mut binding = ResourceBinding::default().object_ref(&());
        binding.namespace = Some(key.namespace.clone());
        binding.name = Some(key.name.clone());
        let stored = self.binding(key);
        let template = stored.as_ref().map(|stored| template_of(&stored.spec));
        let template = template.map(|template| template.reference());
        [binding].into_iter().chain(template).collect()
    }

    /// Writes a binding on account of `referrer`, or during a pause has that woken at its end. Returns `true` if it was
    /// written.
    async fn write(&self, referrer: &Key, write: Option<Write>) -> Result<bool, BoxError> {
        // The end of the former binding wakes those that need another.
        let Some(write) = write else {
            return Ok(false);
        };
        let about = self.concerned(&write.object.key);
        let write = write.of_part(referrer.to_string()).about(about);
        match self.committer.write(&write, None).await? {
            Outcome::Contended(until) => {
                self.queue.add_at(referrer.clone(), until);
                Ok(false)
            }
            // One that was made meanwhile is a conflict like any other.
            Outcome::Exists(error) => Err(error.into()),
            // The watch is about to show that it is gone.
            Outcome::Gone(_) => Ok(false),
            outcome => Ok(outcome.is_stored()),
        }
    }
}

/// Returns the specs of the bindings that require another one.
fn known(referrers: &BTreeMap<Key, Arc<ResourceBinding>>) -> Referrers<'_> {
    let referrers = referrers.iter();
    referrers
        .map(|(key, referrer)| (key.clone(), &referrer.spec))
        .collect()
}

/// Returns dependencies as Events name them.
fn named(dependencies: &BTreeSet<Dependency>) -> String {
    let named = dependencies.iter();
    let named = named.map(|one| format!("{} {}/{}", one.kind, one.namespace, one.name));
    named.collect::<Vec<_>>().join(", ")
}
