//! Brings the Works of one binding up to date, and says on the binding what its Works say.

use std::sync::Arc;

use fleet_api::binding::BindingStatus;
use fleet_api::names::member_namespace;
use fleet_api::{Binding, MemberCluster, ResourceSnapshot, Work};
use jiff::Timestamp;
use karmada_runtime::controller::Controller;
use karmada_runtime::error::BoxError;
use kube::Resource;
use objects::patch::{guarded, merge_between};
use objects::{Key, Metadata};
use placement_rules::deletion::{held, with_work_finalizer, without_finalizers};
use placement_rules::envelope::Opening;
use placement_rules::overrides::listed;
use placement_rules::parents::placement_of;
use placement_rules::works::{
    Failure, Synchronization, WorkWrite, WorksFacts, WorksPlan, plan, report,
};
use serde_json::json;
use tokio::time::Instant;

use crate::index::{Index, group};
use crate::overrides::Snapshot;
use crate::requests::{HubApi, perform, rejection, unless_gone};
use crate::watch::{Echo, SharedIndex};

/// Reconciles bindings.
pub(crate) struct WorksReconciler {
    pub(crate) index: Arc<SharedIndex>,
    pub(crate) hub: HubApi,
    /// Which objects are opened.
    pub(crate) opening: Opening,
    pub(crate) clock: fn() -> Timestamp,
}

/// A binding, and what decides about its Works.
struct Known {
    key: Key,
    binding: Arc<Binding>,
    placement: Key,
    snapshots: Vec<ResourceSnapshot>,
    /// The snapshots of overrides that it lists, as far as they are there.
    overrides: Vec<Snapshot>,
    cluster: Option<Arc<MemberCluster>>,
    works: Vec<Work>,
    /// The time until which a write to one of its Works is waited for.
    awaited: Option<Instant>,
}

impl Known {
    fn read(index: &SharedIndex, key: &Key) -> Option<Self> {
        let (known, group, works) = index.read(|index| {
            let binding = Arc::clone(index.bindings.get(key)?);
            let placement = placement_of(&binding.metadata).unwrap_or_default();
            let snapshots = index.snapshots.of(&placement);
            let group = group(&snapshots, &binding.spec.resource_snapshot_name);
            let known = Self {
                key: key.clone(),
                snapshots: Vec::new(),
                overrides: index.overrides.snapshots(listed(&binding.spec)),
                cluster: index.fleet.get(&binding.spec.target_cluster).cloned(),
                works: Vec::new(),
                awaited: index.awaited.works.until(key),
                binding,
                placement,
            };
            Some((known, group, index.works.of(key)))
        })?;
        // Parsed without the lock, which every watch needs.
        Some(Self {
            snapshots: group.iter().map(|snapshot| snapshot.object()).collect(),
            works: works.iter().map(|work| work.object()).collect(),
            ..known
        })
    }

    /// Returns `true` if its cluster is leaving the fleet.
    fn is_leaving(&self) -> bool {
        let cluster = self.cluster.as_ref();
        cluster.is_some_and(|cluster| cluster.metadata.is_deleting())
    }

    fn plan(&self, opening: Opening) -> WorksPlan {
        let overrides: Vec<_> = self.overrides.iter().map(Snapshot::taken).collect();
        plan(&WorksFacts {
            placement: &self.placement,
            binding: &self.binding,
            snapshots: &self.snapshots.iter().collect::<Vec<_>>(),
            opening,
            overrides: &overrides,
            cluster: self.cluster.as_deref(),
            works: &self.works.iter().collect::<Vec<_>>(),
        })
    }
}

impl Controller for WorksReconciler {
    type Key = Key;

    fn keys(&self) -> Vec<Key> {
        self.index.read(Index::binding_keys)
    }

    async fn reconcile(&self, key: &Key) -> Result<(), BoxError> {
        let Some(known) = Known::read(&self.index, key) else {
            self.index.change(|index| index.held.remove(key));
            return self.sweep(key).await;
        };
        self.note_held(&known);
        if let Some(until) = known.awaited {
            self.index.queues.works.add_at(key.clone(), until);
            return Ok(());
        }
        let binding = &*known.binding;
        let works: Vec<_> = known.works.iter().collect();
        match known.plan(self.opening) {
            WorksPlan::Wait => Ok(()),
            WorksPlan::Remove(writes) => {
                // The agent must let go of a cluster that leaves before a Work goes: its objects would go with it.
                if !known.is_leaving() {
                    perform(&writes, |write| self.take(&known, write)).await?;
                }
                self.release(binding, works.len()).await
            }
            _ if known.is_leaving() => Ok(()),
            WorksPlan::Keep(writes) => {
                let version = self.hold(binding).await?;
                perform(&writes, |write| self.take(&known, write)).await?;
                let kept = Synchronization::Kept;
                self.report(binding, &version, kept, &works).await
            }
            WorksPlan::Refuse(failure) => {
                let version = binding.metadata.resource_version();
                let failed = Synchronization::Failed(&failure);
                self.report(binding, version, failed, &works).await
            }
            WorksPlan::Write(writes) => {
                let version = self.hold(binding).await?;
                let written = perform(&writes, |write| self.take(&known, write)).await;
                // By an override, say, a manifest is no object any more.
                let rejected = written.as_ref().err().and_then(rejection);
                let rejected = rejected.map(Failure::Synchronizing);
                let synchronization = match &rejected {
                    Some(failure) => Synchronization::Failed(failure),
                    None if writes.is_empty() => Synchronization::Synchronized,
                    None => Synchronization::Written,
                };
                if written.is_ok() || rejected.is_some() {
                    self.report(binding, &version, synchronization, &works)
                        .await?;
                }
                written
            }
        }
    }
}

impl WorksReconciler {
    /// Notes what holds objects that the Works of a binding give up, and has its placement tell if that is news.
    fn note_held(&self, known: &Known) {
        let held = held(&known.works);
        let before = self.index.change(|index| {
            if held.is_empty() {
                index.held.remove(&known.key)
            } else {
                index.held.insert(known.key.clone(), held.clone())
            }
        });
        if before.unwrap_or_default() != held {
            self.index.tell(known.placement.clone());
        }
    }

    /// Gives a binding the finalizer with which it waits for its Works, unless the rollout has, and returns its version
    /// then.
    async fn hold(&self, binding: &Binding) -> Result<String, BoxError> {
        let version = binding.metadata.resource_version();
        let Some(finalizers) = with_work_finalizer(binding) else {
            return Ok(version.to_owned());
        };
        let held = self.set_finalizers(binding, &finalizers).await?;
        Ok(held.unwrap_or_else(|| version.to_owned()))
    }

    /// Lets a binding go that waits for nothing any longer.
    async fn release(&self, binding: &Binding, works: usize) -> Result<(), BoxError> {
        if let Some(finalizers) = without_finalizers(binding, works) {
            self.set_finalizers(binding, &finalizers).await?;
        }
        Ok(())
    }

    async fn set_finalizers(
        &self,
        binding: &Binding,
        finalizers: &[String],
    ) -> Result<Option<String>, BoxError> {
        let version = binding.metadata.resource_version();
        let body = json!({ "metadata": { "finalizers": finalizers } });
        let patch = guarded(Some(version), body);
        let key = binding.metadata.key();
        let bindings = self.hub.of_scope::<Binding>(&key.namespace);
        let target = "binding_finalizers";
        let write = self.hub.patch(target, &bindings, &key.name, &patch);
        let echo = itself(&key, version);
        Ok(unless_gone(self.index.awaiting(echo, write).await)?)
    }

    async fn take(&self, known: &Known, write: &WorkWrite) -> Result<(), BoxError> {
        let namespace = member_namespace(&known.binding.spec.target_cluster);
        let works = self.hub.within::<Work>(&namespace);
        let echo = |name: &str| {
            let replaced = known.works.iter().find(|work| work.metadata.name() == name);
            Echo {
                of: |writes| &mut writes.works,
                object: Key::new(&*namespace, name),
                owner: &known.key,
                replaced: replaced.map(|work| work.metadata.resource_version()),
            }
        };
        match write {
            WorkWrite::Create(work) => {
                // One that exists is of a binding that is on its way out: a retry finds it gone.
                let create = self.hub.create("work", &works, &**work);
                let echo = echo(work.metadata.name());
                self.index.awaiting(echo, create).await?;
            }
            WorkWrite::Patch { name, patch } => {
                let patch = self.hub.patch("work", &works, name, patch);
                unless_gone(self.index.awaiting(echo(name), patch).await)?;
            }
            WorkWrite::Delete { name } => {
                let delete = self.hub.delete("work", &works, name, None);
                self.index.awaiting(echo(name), delete).await?;
            }
        }
        Ok(())
    }

    /// Says on a binding what its Works say.
    async fn report(
        &self,
        binding: &Binding,
        version: &str,
        synchronization: Synchronization<'_>,
        works: &[&Work],
    ) -> Result<(), BoxError> {
        let Some(after) = report(binding, synchronization, works, (self.clock)()) else {
            return Ok(());
        };
        let before: BindingStatus = binding.status.clone().unwrap_or_default();
        let Some(patch) = merge_between(&json!(before), &json!(after)) else {
            return Ok(());
        };
        let patch = guarded(Some(version), json!({ "status": patch }));
        let key = binding.metadata.key();
        let bindings = self.hub.of_scope::<Binding>(&key.namespace);
        let target = "binding_status";
        let tell = self.hub.patch_status(target, &bindings, &key.name, &patch);
        let echo = itself(&key, version);
        unless_gone(self.index.awaiting(echo, tell).await)?;
        Ok(())
    }

    /// Deletes the Works of a binding that does not exist any more: they were made while it went.
    async fn sweep(&self, key: &Key) -> Result<(), BoxError> {
        let left = self.index.read(|index| index.works.of(key));
        let left: Vec<_> = left
            .iter()
            .map(|work| work.meta())
            .filter(|work| !work.is_deleting())
            .collect();
        if left.is_empty() {
            return Ok(());
        }
        // Absence from the cache is no deletion.
        let bindings = self.hub.of_scope::<Binding>(&key.namespace);
        if bindings.get_metadata_opt(&key.name).await?.is_some() {
            return Ok(());
        }
        for work in left {
            let works = self.hub.within::<Work>(work.namespace());
            self.hub.delete("work", &works, work.name(), None).await?;
        }
        Ok(())
    }
}

/// Returns the echo of a write to a binding itself.
fn itself<'a>(binding: &'a Key, version: &'a str) -> Echo<'a> {
    Echo::of_itself(|writes| &mut writes.works, binding, version)
}
