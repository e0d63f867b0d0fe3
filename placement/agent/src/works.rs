//! Brings the objects of one Work to its manifests, or takes them away, and reports.

use std::sync::Arc;
use std::time::Duration;

use apply::{Again, Applier, ManifestSet, Remaining, SyncResult, Synced};
use fleet_api::member::{JOIN, LEAVE};
use fleet_api::names::WORK_FINALIZER;
use fleet_api::work::{AppliedResource, WorkResourceIdentifier, WorkStatus};
use fleet_api::{AppliedWork, Work};
use karmada_runtime::controller::Controller;
use karmada_runtime::error::BoxError;
use karmada_runtime::expectations::Subject;
use karmada_runtime::write::WriteMode;
use objects::{GroupVersionKind, Key, Metadata};
use placement_rules::manifests::{
    Failure, Prepared, begun, identifier, is_named, leftovers, owner, prepare, stub,
};
use placement_rules::ownership::Own;
use placement_rules::strategy::Strategy;
use placement_rules::work_status::{ManifestReport, ManifestResult, with_remaining, work_status};
use tokio::time::Instant;

use crate::events::rewound;
use crate::index::{Agent, Rewind, WORKS};
use crate::manifest_set::{last_write, manifest_set, notes};
use crate::outcome::Outcome;
use crate::ownership::{Owners, PlacedObjects, PlacedWork};
use crate::report::Reporter;

/// The time after which it is looked whether objects that are being deleted are gone, if no watch shows it.
const LOOK_AGAIN: Duration = Duration::from_secs(15);
/// The time after which it is looked whether a member knows the fields by now that it did not.
const RECHECK: Duration = Duration::from_mins(1);

/// Reconciles Works.
pub(crate) struct WorkReconciler {
    pub(crate) agent: Arc<Agent>,
    pub(crate) applier: Arc<Applier<PlacedObjects>>,
    pub(crate) owners: Owners,
    pub(crate) writes: WriteMode,
    pub(crate) reporter: Reporter,
}

impl Controller for WorkReconciler {
    type Key = Key;

    fn keys(&self) -> Vec<Key> {
        self.agent.index.lock().works.keys().cloned().collect()
    }

    fn held_until(&self, key: &Key) -> Option<Instant> {
        self.reporter.of_hub.held_until([Subject::new(WORKS, key)])
    }

    async fn reconcile(&self, key: &Key) -> Result<(), BoxError> {
        let work = self.agent.index.lock().works.get(key).cloned();
        let Some(work) = work else {
            // A Work that is gone although we held it was not deleted by its placement: its objects stay.
            self.applier.forget(key);
            return Ok(());
        };
        let mut work = work.object();
        let is_held = work.metadata.has_finalizer(WORK_FINALIZER);
        let channel = self.agent.index.lock().channel();
        let Some(channel) = channel else {
            return Ok(());
        };
        match &*channel.spec.state {
            LEAVE if is_held => {
                self.applier.forget(key);
                self.reporter.remove_finalizer(&mut work).await
            }
            JOIN if work.metadata.is_deleting() && is_held => self.remove(key, work).await,
            JOIN if work.metadata.is_deleting() => Ok(()),
            JOIN => {
                let is_reported = Strategy::of(work.spec.apply_strategy.as_ref()).only_reports();
                if !is_held {
                    self.reporter.add_finalizer(&mut work).await?;
                }
                if is_reported {
                    return self.compare(key, work).await;
                }
                let is_applied = self.agent.index.lock().applied(key).is_some();
                if is_held && !is_applied && !self.reporter.exists(&work).await? {
                    // A list was out of date: this Work has ended, and nobody would take away its objects.
                    return Ok(());
                }
                self.apply(key, work).await
            }
            _ => Ok(()),
        }
    }
}

impl WorkReconciler {
    /// Brings the objects of a Work to its manifests.
    async fn apply(&self, key: &Key, mut work: Work) -> Result<(), BoxError> {
        let known = self.agent.index.lock().applied(key);
        let owner = match known {
            Some(owner) => AppliedWork::clone(&owner),
            None => self.reporter.create_owner(owner(&work)).await?,
        };
        if owner.metadata.is_deleting() {
            // Its objects go with it, and all of them come again with the next.
            return Ok(());
        }
        if !is_of(&owner, &work) {
            return self.refuse(&mut work, &owner).await;
        }
        // The watch may be behind, and the object of an owner that is not known is nobody's.
        self.owners.insert(&owner.metadata);
        let mut placed = PlacedWork {
            owner: Own::of(&owner),
            work,
        };
        let (remaining, pruned) = self.prune(key, &placed, &owner).await;
        self.tell_of(&remaining, &owner, &mut placed.work).await?;
        let left: Vec<_> = remaining.into_iter().map(|(object, _)| object).collect();
        let prepared = prepare(&placed.work, Some(&owner));
        self.announce(&owner, &mut placed.work, &prepared).await?;
        let Some(synced) = self.sync(key, &placed, &prepared).await else {
            return Ok(());
        };
        let outcome = Outcome {
            owner: &owner,
            prepared: &prepared,
            synced: &synced,
        };
        if outcome.is_unknown() {
            return first_error(synced).and(pruned);
        }
        let applied = self.applied(&placed.work, &outcome).await;
        let status = self.reported(&placed.work, &outcome).await;
        let is_compared = synced.iter().any(|one| one.compared.is_some());
        // The manifests and their objects take more memory than all the rest.
        drop(prepared);
        let synced = first_error(synced);
        let told = match self.reporter.report_owner(&owner, applied, &left).await {
            Ok(()) => self.reporter.report(&owner, &mut placed.work, status).await,
            failed => failed,
        };
        if told.is_err() && is_compared {
            // The result of a comparison is told once: it is to be found again.
            self.applier.forget(key);
        }
        told.and(synced).and(pruned)
    }

    /// Reports the differences between the member's objects and the manifests of a Work. Nothing is written there, not even an
    /// owner: an object that has one since the Work was applied keeps it, so that it can be applied again.
    async fn compare(&self, key: &Key, work: Work) -> Result<(), BoxError> {
        let known = self.agent.index.lock().applied(key);
        let known = known.filter(|known| is_of(known, &work));
        if let Some(owner) = &known {
            // The new status does not tell any more that it may be there.
            let begun = begun(&work, owner);
            let applied = owner.status.iter().flat_map(|one| &one.applied_resources);
            let applied = applied.cloned().collect();
            self.reporter.report_owner(owner, applied, &begun).await?;
        }
        let prepared = prepare(&work, known.as_deref());
        let owner = known.map_or_else(|| owner(&work), |known| AppliedWork::clone(&known));
        let mut placed = PlacedWork {
            owner: Own::of(&owner),
            work,
        };
        let Some(synced) = self.sync(key, &placed, &prepared).await else {
            return Ok(());
        };
        let outcome = Outcome {
            owner: &owner,
            prepared: &prepared,
            synced: &synced,
        };
        let status = self.reported(&placed.work, &outcome).await;
        self.reporter
            .report(&owner, &mut placed.work, status)
            .await?;
        first_error(synced)
    }

    /// Syncs the manifests of a Work that are ready. Returns nothing if that is to be done later.
    async fn sync(
        &self,
        key: &Key,
        placed: &PlacedWork,
        prepared: &[Prepared],
    ) -> Option<Vec<Synced>> {
        let manifests = prepared.iter().filter_map(Prepared::ready);
        let notes = notes(&placed.work);
        let set = ManifestSet {
            last_write: last_write(&placed.work),
            notes: &notes,
            ..manifest_set(key, placed, manifests)
        };
        match self.applier.sync(&self.writes, &set).await {
            SyncResult::Done { manifests, .. } => {
                let again = manifests.iter().filter_map(|one| match one.left {
                    Some(Again::After(delay)) => Some(delay),
                    _ => one.note.is_some().then_some(RECHECK),
                });
                if let Some(delay) = again.min() {
                    self.look_again(key, delay);
                }
                Some(manifests)
            }
            SyncResult::Later(delay) => {
                self.look_again(key, delay);
                None
            }
        }
    }

    fn look_again(&self, key: &Key, after: Duration) {
        let due = Instant::now() + after;
        self.agent.queues.works.add_at(key.clone(), due);
    }

    /// Takes away the objects that are in no manifest of a Work any more. Returns those that are not gone yet.
    async fn prune(
        &self,
        key: &Key,
        placed: &PlacedWork,
        owner: &AppliedWork,
    ) -> (Vec<Held>, Result<(), BoxError>) {
        let leftovers = leftovers(&placed.work, owner);
        if leftovers.is_empty() {
            return (Vec::new(), Ok(()));
        }
        let rewind = self.agent.index.lock().rewound(key);
        if let Some(rewind) = rewind {
            let event = (rewind == Rewind::News).then(rewound);
            self.reporter.record(owner, event);
            return (not_held(leftovers), Ok(()));
        }
        let stubs: Vec<_> = leftovers.iter().map(stub).collect();
        let removed = self
            .applier
            .remove(&self.writes, &manifest_set(key, placed, stubs.iter()))
            .await;
        match removed {
            Ok(remaining) => {
                if !remaining.is_empty() {
                    self.look_again(key, LOOK_AGAIN);
                }
                (held(remaining, &leftovers), Ok(()))
            }
            Err(error) => (not_held(leftovers), Err(error.into())),
        }
    }

    /// Names in the status of a Work the holders of the objects that it gives up.
    async fn tell_of(
        &self,
        remaining: &[Held],
        owner: &AppliedWork,
        work: &mut Work,
    ) -> Result<(), BoxError> {
        let status = with_remaining(work, remaining, (self.reporter.clock)());
        self.reporter.report(owner, work, status).await
    }

    /// Names the objects that are about to be written for the first time in the status of their Work: should the agent end
    /// in the middle, those that it has written are known.
    async fn announce(
        &self,
        owner: &AppliedWork,
        work: &mut Work,
        prepared: &[Prepared],
    ) -> Result<(), BoxError> {
        let results = prepared.iter().map(|one| match one {
            Prepared::Failed(failure, reason) => ManifestResult::failed(*failure, reason, None),
            Prepared::Ready(manifest) if !is_named(work, manifest) => ManifestResult::Pending,
            Prepared::Ready(_) | Prepared::Finished => ManifestResult::Unknown,
        });
        let results: Vec<_> = results.collect();
        if !results
            .iter()
            .any(|one| matches!(one, ManifestResult::Pending))
        {
            return Ok(());
        }
        let status = self.status(work, results).await;
        self.reporter.report(owner, work, status).await
    }

    /// Returns the status of a Work after a sync, if it is news.
    async fn reported(&self, work: &Work, outcome: &Outcome<'_>) -> Option<WorkStatus> {
        let texts = outcome.texts();
        self.status(work, outcome.results(work, &texts)).await
    }

    /// Returns the objects that a Work has in the member, as far as it is known.
    async fn applied(&self, work: &Work, outcome: &Outcome<'_>) -> Vec<AppliedResource> {
        let mut synced = outcome.synced.iter();
        let mut applied = Vec::new();
        let manifests = work
            .spec
            .workload
            .manifests
            .iter()
            .zip(outcome.prepared)
            .zip(0..);
        for ((manifest, prepared), ordinal) in manifests {
            let object = prepared.ready().and_then(|_| synced.next()?.object.seen());
            let resource = self.applier.resource(&GroupVersionKind::of(manifest)).await;
            let now = object.map(|object| AppliedResource {
                identifier: identifier(manifest, ordinal, &resource),
                uid: object.uid().to_owned(),
            });
            applied.extend(now.or_else(|| outcome.known(manifest).cloned()));
        }
        applied
    }

    /// Returns the status of a Work of whose manifests this became, if it is news.
    async fn status(&self, work: &Work, results: Vec<ManifestResult<'_>>) -> Option<WorkStatus> {
        let manifests = &work.spec.workload.manifests;
        let mut resources = Vec::new();
        for manifest in manifests {
            resources.push(self.applier.resource(&GroupVersionKind::of(manifest)).await);
        }
        let reports = manifests.iter().zip(&resources).zip(results);
        let reports: Vec<_> = reports
            .map(|((manifest, resource), result)| ManifestReport {
                manifest,
                resource,
                result,
            })
            .collect();
        work_status(work, &reports, (self.reporter.clock)())
    }

    /// Says that nothing of a Work can be applied because its owner's name is taken.
    async fn refuse(&self, work: &mut Work, owner: &AppliedWork) -> Result<(), BoxError> {
        let (namespace, name) = (&owner.spec.work_namespace, &owner.spec.work_name);
        let reason = format!(
            "The AppliedWork {} of this member is that of the Work {namespace}/{name}, perhaps of another hub: rename \
             one of the placements, or take the member out of the other fleet",
            owner.metadata.name()
        );
        let results = work.spec.workload.manifests.iter();
        let results = results.map(|_| ManifestResult::failed(Failure::TakeOver, &reason, None));
        let status = self.status(work, results.collect()).await;
        self.reporter.report(owner, work, status).await
    }

    /// Takes away the objects of a Work that is being deleted, then their owner, and then lets the Work go.
    async fn remove(&self, key: &Key, mut work: Work) -> Result<(), BoxError> {
        let known = self.agent.index.lock().applied(key);
        let owner = match known {
            Some(owner) => Some(AppliedWork::clone(&owner)),
            // The watch may be behind.
            None => self.reporter.owner(work.metadata.name()).await?,
        };
        if let Some(owner) = owner.filter(|owner| is_of(owner, &work)) {
            self.owners.insert(&owner.metadata);
            let written = work.spec.workload.manifests.iter();
            let written = written.map(|manifest| identifier(manifest, 0, ""));
            let all: Vec<_> = written.chain(leftovers(&work, &owner)).collect();
            let stubs: Vec<_> = all.iter().map(stub).collect();
            let mut placed = PlacedWork {
                owner: Own::of(&owner),
                work,
            };
            let set = manifest_set(key, &placed, stubs.iter());
            let remaining = self.applier.remove(&self.writes, &set).await?;
            if !remaining.is_empty() {
                self.look_again(key, LOOK_AGAIN);
                let held = held(remaining, &all);
                return self.tell_of(&held, &owner, &mut placed.work).await;
            }
            self.reporter.delete_owner(&owner).await?;
            work = placed.work;
        }
        self.applier.forget(key);
        self.reporter.remove_finalizer(&mut work).await
    }
}

/// An object that is given up, and the finalizers that hold it.
type Held = (WorkResourceIdentifier, Vec<String>);

/// Returns these objects, of which nobody knows a holder.
fn not_held(objects: Vec<WorkResourceIdentifier>) -> Vec<Held> {
    objects.into_iter().map(|one| (one, Vec::new())).collect()
}

/// Returns those of the objects that are still there.
fn held(remaining: Vec<Remaining>, objects: &[WorkResourceIdentifier]) -> Vec<Held> {
    let remaining = remaining.into_iter();
    let held = remaining.filter_map(|one| Some((objects.get(one.place)?.clone(), one.finalizers)));
    held.collect()
}

/// Fails with the first error about which something is to be done again, though no object changes.
fn first_error(synced: Vec<Synced>) -> Result<(), BoxError> {
    let failed = synced.into_iter().filter(|one| one.left.is_none());
    let mut errors = failed.filter_map(|one| one.error);
    errors.next().map_or(Ok(()), |error| Err(error.into()))
}

/// Returns `true` if the `AppliedWork` is that of the Work.
fn is_of(owner: &AppliedWork, work: &Work) -> bool {
    let spec = &owner.spec;
    let of = (&*spec.work_namespace, &*spec.work_name);
    of == (work.metadata.namespace(), work.metadata.name())
}
