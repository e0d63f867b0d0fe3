//! Brings the Works of one binding up to date, and the status of the binding with theirs.

use std::sync::Arc;

use fleet_api::{Binding, MemberCluster, ResourceSnapshot, Work};
use jiff::Timestamp;
use karmada_runtime::commit::Outcome;
use karmada_runtime::controller::Controller;
use karmada_runtime::error::BoxError;
use karmada_runtime::expectations::Subject;
use karmada_runtime::write::WriteError;
use kube::Resource;
use objects::write::{ObjectRef, Write};
use objects::{Key, Metadata};
use placement_rules::deletion::{held, with_work_finalizer, without_finalizers};
use placement_rules::envelope::Opening;
use placement_rules::overrides::listed;
use placement_rules::parents::placement_of;
use placement_rules::works::{Failure, Synchronization, WorksFacts, plan, removal, report};
use tokio::time::Instant;

use crate::index::{Index, group};
use crate::overrides::Snapshot;
use crate::requests::{HubApi, rejection};
use crate::shared::SharedIndex;
use crate::topics::WORKS;

/// Reconciles bindings.
pub(crate) struct WorksReconciler {
    pub(crate) index: Arc<SharedIndex>,
    pub(crate) hub: HubApi,
    /// Which objects are opened.
    pub(crate) opening: Opening,
    pub(crate) clock: fn() -> Timestamp,
}

/// A binding, and the facts that decide about its Works.
struct Known {
    binding: Arc<Binding>,
    placement: Key,
    snapshots: Vec<ResourceSnapshot>,
    /// The snapshots of overrides that it lists, as far as they are there.
    overrides: Vec<Snapshot>,
    cluster: Option<Arc<MemberCluster>>,
    works: Vec<Work>,
}

impl Known {
    fn read(index: &SharedIndex, key: &Key) -> Option<Self> {
        let (known, group, works) = index.read(|index| {
            let binding = Arc::clone(index.bindings.get(key)?);
            let placement = placement_of(&binding.metadata).unwrap_or_default();
            let snapshots = index.snapshots.of(&placement);
            let group = group(&snapshots, &binding.spec.resource_snapshot_name);
            let known = Self {
                snapshots: Vec::new(),
                overrides: index.overrides.snapshots(listed(&binding.spec)),
                cluster: index.fleet.get(&binding.spec.target_cluster).cloned(),
                works: Vec::new(),
                binding,
                placement,
            };
            Some((known, group, index.works_of(key)))
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

    fn plan(&self, opening: Opening) -> Option<(Synchronization, Vec<Write>)> {
        let overrides: Vec<_> = self.overrides.iter().map(Snapshot::view).collect();
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

    fn held_until(&self, key: &Key) -> Option<Instant> {
        self.hub.held_until(WORKS, key)
    }

    async fn reconcile(&self, key: &Key) -> Result<(), BoxError> {
        let Some(known) = Known::read(&self.index, key) else {
            self.index.change(|index| index.held.remove(key));
            return self.sweep(key).await;
        };
        self.note_held(key, &known);
        let (binding, subject) = (&*known.binding, Subject::new(WORKS, key));
        let works: Vec<_> = known.works.iter().collect();
        let is_leaving = known.is_leaving();
        if binding.metadata.is_deleting() {
            // The agent must let go of a cluster that leaves before a Work goes: its objects would go with it.
            if !is_leaving {
                self.write(&removal(&works), &subject).await?;
            }
            return self.release(binding, works.len(), &subject).await;
        }
        let planned = known.plan(self.opening).filter(|_| !is_leaving);
        let Some((mut synchronization, writes)) = planned else {
            return Ok(());
        };
        if matches!(synchronization, Synchronization::Failed(_)) {
            let report = self.report(binding, reference(binding), &synchronization, &works);
            return self.tell(report, &subject).await;
        }
        let held = self.hold(binding, &subject).await?;
        let written = self.write(&writes, &subject).await;
        if let Err(error) = &written {
            // By an override, say, a manifest is no object any more.
            match rejection(error) {
                Some(reason) if synchronization == Synchronization::Written => {
                    synchronization = Synchronization::Failed(Failure::Synchronizing(reason));
                }
                _ => return Ok(written?),
            }
        }
        let report = self.report(binding, held, &synchronization, &works);
        self.tell(report, &subject).await?;
        Ok(written?)
    }
}

impl WorksReconciler {
    /// Notes the holders of objects that the Works of a binding give up, and wakes the status of its placement if that is news.
    fn note_held(&self, key: &Key, known: &Known) {
        let held = held(&known.works);
        let before = self.index.change(|index| {
            if held.is_empty() {
                index.held.remove(key)
            } else {
                index.held.insert(key.clone(), held.clone())
            }
        });
        if before.unwrap_or_default() != held {
            self.index.wake_status(known.placement.clone());
        }
    }

    /// Gives a binding the finalizer with which it waits for its Works, unless the rollout has, and returns it as it is then.
    async fn hold(&self, binding: &Binding, subject: &Subject) -> Result<ObjectRef, WriteError> {
        let mut object = reference(binding);
        if let Some(finalizers) = with_work_finalizer(binding) {
            let write = Write::finalizers("binding_finalizers", object.clone(), &finalizers);
            let outcome = self.hub.committer.write(&write, Some(subject)).await?;
            if let Outcome::Stored(stored) = outcome {
                object = stored;
            }
        }
        Ok(object)
    }

    /// Lets a binding go that waits for nothing any longer.
    async fn release(
        &self,
        binding: &Binding,
        works: usize,
        subject: &Subject,
    ) -> Result<(), BoxError> {
        if let Some(finalizers) = without_finalizers(binding, works) {
            let object = reference(binding);
            let write = Write::finalizers("binding_finalizers", object, &finalizers);
            self.hub.committer.write(&write, Some(subject)).await?;
        }
        Ok(())
    }

    async fn write(&self, writes: &[Write], subject: &Subject) -> Result<(), WriteError> {
        for outcome in self.hub.committer.commit(writes, Some(subject)).await? {
            // It is of a binding that is on its way out: a retry finds it gone.
            if let Outcome::Exists(error) = outcome {
                return Err(error);
            }
        }
        Ok(())
    }

    /// Returns the write of the report of its Works to a binding.
    fn report(
        &self,
        binding: &Binding,
        object: ObjectRef,
        synchronization: &Synchronization,
        works: &[&Work],
    ) -> Option<Write> {
        let after = report(binding, synchronization, works, (self.clock)())?;
        let before = binding.status.clone().unwrap_or_default();
        Write::status_between("binding_status", object, &before, &after)
    }

    async fn tell(&self, report: Option<Write>, subject: &Subject) -> Result<(), BoxError> {
        if let Some(write) = report {
            self.hub.committer.write(&write, Some(subject)).await?;
        }
        Ok(())
    }

    /// Deletes the Works of a binding that does not exist any more: they were made while it went.
    async fn sweep(&self, key: &Key) -> Result<(), BoxError> {
        let left = self.index.read(|index| index.works_of(key));
        let left = left.iter().map(|work| work.meta());
        let left = left.filter(|work| !work.is_deleting());
        let objects = left.map(|work| ObjectRef::of_metadata::<Work>(work, &()));
        let deletions: Vec<_> = objects
            .map(|object| Write::delete("work", object))
            .collect();
        if deletions.is_empty() {
            return Ok(());
        }
        // Absence from the cache is no deletion.
        let bindings = self.hub.of_scope::<Binding>(&key.namespace);
        if bindings.get_metadata_opt(&key.name).await?.is_some() {
            return Ok(());
        }
        self.hub.committer.commit(&deletions, None).await?;
        Ok(())
    }
}

fn reference(binding: &Binding) -> ObjectRef {
    ObjectRef::of(binding, &binding.scope())
}
