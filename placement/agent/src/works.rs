//! Brings the objects of one Work to its manifests, or takes them away, and reports.

use std::sync::Arc;
use std::time::Duration;

use apply::{Applier, LastWrite, MemberError, SyncResult, Synced, Unit};
use karmada_api::condition::TRUE;
use karmada_api::fleet::conditions::APPLIED;
use karmada_api::fleet::member::{JOIN, LEAVE};
use karmada_api::fleet::work::{AppliedResource, WorkResourceIdentifier};
use karmada_api::fleet::{AppliedWork, Work};
use karmada_rules::placement::manifests::{
    Failure, Prepared, identifier, is_named, is_same_object, leftovers, owner, prepare, stub,
};
use karmada_rules::placement::work_status::{ManifestReport, ManifestResult};
use karmada_runtime::controller::Controller;
use karmada_runtime::error::{BoxError, Chain};
use karmada_runtime::write::WriteMode;
use objects::condition::find;
use objects::{GroupVersionKind, Key, Metadata};
use serde_json::Value;
use tokio::time::Instant;

use crate::events::rewound;
use crate::index::{Rewind, SharedIndex, has_finalizer};
use crate::ownership::{Owners, PlacedObjects, PlacedWork};
use crate::report::Reporter;

/// The time after which it is looked whether objects that are being deleted are gone, if no watch shows it.
const LOOK_AGAIN: Duration = Duration::from_secs(15);
/// The time after which it is looked whether a member knows the fields by now that it did not.
const RECHECK: Duration = Duration::from_mins(1);

/// Reconciles Works.
pub(crate) struct WorkReconciler {
    pub(crate) index: Arc<SharedIndex>,
    pub(crate) applier: Arc<Applier<PlacedObjects>>,
    pub(crate) owners: Owners,
    pub(crate) writes: WriteMode,
    pub(crate) reporter: Reporter,
}

impl Controller for WorkReconciler {
    type Key = Key;

    fn keys(&self) -> Vec<Key> {
        self.index.works()
    }

    async fn reconcile(&self, key: &Key) -> Result<(), BoxError> {
        let Some(work) = self.index.work(key) else {
            // A Work that is gone although we held it was not deleted by its placement: what it applied stays.
            self.applier.forget(key);
            self.reporter.written.forget(key);
            return Ok(());
        };
        let mut work = self.reporter.written.latest(work.object());
        let is_held = has_finalizer(work.metadata.finalizers.as_deref());
        let Some(channel) = self.index.channel() else {
            return Ok(());
        };
        match &*channel.spec.state {
            LEAVE if is_held => {
                self.applier.forget(key);
                self.reporter.let_go(&mut work).await
            }
            JOIN if work.metadata.is_deleting() && is_held => self.remove(key, work).await,
            JOIN if work.metadata.is_deleting() => Ok(()),
            JOIN => {
                if !is_held {
                    self.reporter.hold(&mut work).await?;
                } else if self.index.applied(key).is_none() && !self.reporter.exists(&work).await? {
                    // A list was out of date: what it shows has ended, and nobody would take away what comes of it now.
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
        let owner = match self.index.applied(key) {
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
            owner: owner.metadata.uid().to_owned(),
            work,
        };
        let (left, pruned) = self.prune(key, &placed, &owner).await;
        let prepared = prepare(&placed.work, &owner);
        self.announce(&owner, &mut placed.work, &prepared).await?;

        let manifests: Vec<_> = prepared
            .iter()
            .filter_map(Prepared::ready)
            .cloned()
            .collect();
        let notes = notes(&placed.work);
        let unit = Unit {
            last_write: last_write(&placed.work),
            notes: &notes,
            ..unit(key, &placed, &manifests)
        };
        let synced = match self.applier.sync(&self.writes, &unit).await {
            SyncResult::Done { manifests, .. } => manifests,
            SyncResult::Later(delay) => {
                self.look_again(key, delay);
                return Ok(());
            }
        };
        if synced.iter().any(|one| one.note.is_some()) {
            self.look_again(key, RECHECK);
        }
        let outcome = Outcome {
            owner: &owner,
            prepared: &prepared,
            synced: &synced,
        };
        self.report(&mut placed.work, &outcome, &left).await?;
        let mut errors = synced.into_iter().filter_map(|one| one.error);
        errors.next().map_or(pruned, |error| Err(error.into()))
    }

    fn look_again(&self, key: &Key, after: Duration) {
        let due = Instant::now() + after;
        self.index.queues.works.add_at(key.clone(), due);
    }

    /// Takes away what is in no manifest of a Work any more. Returns what is not gone yet.
    async fn prune(
        &self,
        key: &Key,
        placed: &PlacedWork,
        owner: &AppliedWork,
    ) -> (Vec<WorkResourceIdentifier>, Result<(), BoxError>) {
        let leftovers = leftovers(&placed.work, owner);
        if leftovers.is_empty() {
            return (leftovers, Ok(()));
        }
        if let Some(rewind) = self.index.rewound(key) {
            let event = (rewind == Rewind::News).then(rewound);
            self.reporter.record(owner, event);
            return (leftovers, Ok(()));
        }
        let stubs: Vec<_> = leftovers.iter().map(stub).collect();
        let removed = self
            .applier
            .remove(&self.writes, &unit(key, placed, &stubs))
            .await;
        match removed {
            Ok(left) => {
                if !left.is_empty() {
                    self.look_again(key, LOOK_AGAIN);
                }
                let left = left
                    .into_iter()
                    .filter_map(|place| leftovers.get(place).cloned());
                (left.collect(), Ok(()))
            }
            Err(error) => (leftovers, Err(error.into())),
        }
    }

    /// Names what is about to be written for the first time in the status of its Work: should the agent end in the
    /// middle, whatever it has written is known.
    async fn announce(
        &self,
        owner: &AppliedWork,
        work: &mut Work,
        prepared: &[Prepared],
    ) -> Result<(), BoxError> {
        let is_new = |one: &Prepared| {
            one.ready()
                .is_some_and(|manifest| !is_named(work, manifest))
        };
        if !prepared.iter().any(is_new) {
            return Ok(());
        }
        let results: Vec<_> = prepared
            .iter()
            .map(|one| match one {
                Prepared::Failed(failure, reason) => ManifestResult::Failed(*failure, reason),
                Prepared::Ready(_) if is_new(one) => ManifestResult::Pending,
                Prepared::Ready(_) | Prepared::Finished => ManifestResult::Unknown,
            })
            .collect();
        self.say(owner, work, results).await
    }

    /// Reports a sync, in the status of the Work and in that of its owner.
    async fn report(
        &self,
        work: &mut Work,
        outcome: &Outcome<'_>,
        left: &[WorkResourceIdentifier],
    ) -> Result<(), BoxError> {
        let errors = outcome.synced.iter().filter_map(|one| one.error.as_ref());
        if errors
            .clone()
            .any(|error| matches!(error, MemberError::NotLeading))
        {
            // A replica that has lost its lease knows nothing.
            return Ok(());
        }
        let applied = self.applied(work, outcome).await;
        self.reporter
            .report_owner(outcome.owner, applied, left)
            .await?;
        let texts: Vec<_> = errors.map(|error| Chain(error).to_string()).collect();
        let (mut synced, mut texts) = (outcome.synced.iter(), texts.iter());
        let results: Vec<_> = outcome
            .prepared
            .iter()
            .zip(&work.spec.workload.manifests)
            .map(|(prepared, manifest)| match prepared {
                Prepared::Failed(failure, reason) => ManifestResult::Failed(*failure, reason),
                Prepared::Finished => ManifestResult::Unknown,
                Prepared::Ready(_) => synced.next().map_or(ManifestResult::Unknown, |one| {
                    let text = one.error.as_ref().and_then(|_| texts.next());
                    let was_applied = outcome.known(manifest).is_some();
                    result(one, text.map(String::as_str), was_applied)
                }),
            })
            .collect();
        self.say(outcome.owner, work, results).await
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

    /// Says of each manifest of a Work what became of it.
    async fn say(
        &self,
        owner: &AppliedWork,
        work: &mut Work,
        results: Vec<ManifestResult<'_>>,
    ) -> Result<(), BoxError> {
        let manifests = work.spec.workload.manifests.clone();
        let mut resources = Vec::new();
        for manifest in &manifests {
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
        self.reporter.report(owner, work, &reports).await
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
        let results = results.map(|_| ManifestResult::Failed(Failure::TakeOver, &reason));
        self.say(owner, work, results.collect()).await
    }

    /// Takes away the objects of a Work that is being deleted, then their owner, and then lets the Work go.
    async fn remove(&self, key: &Key, mut work: Work) -> Result<(), BoxError> {
        let owner = self.reporter.owner(work.metadata.name()).await?;
        if let Some(owner) = owner.filter(|owner| is_of(owner, &work)) {
            self.owners.insert(&owner.metadata);
            let written = work.spec.workload.manifests.iter();
            let written = written.map(|manifest| identifier(manifest, 0, ""));
            let all = written.chain(leftovers(&work, &owner));
            let stubs: Vec<_> = all.map(|one| stub(&one)).collect();
            let placed = PlacedWork {
                owner: owner.metadata.uid().to_owned(),
                work,
            };
            let unit = unit(key, &placed, &stubs);
            if !self.applier.remove(&self.writes, &unit).await?.is_empty() {
                self.look_again(key, LOOK_AGAIN);
                return Ok(());
            }
            self.reporter.delete_owner(&owner).await?;
            work = placed.work;
        }
        self.applier.forget(key);
        self.reporter.let_go(&mut work).await
    }
}

/// What a sync of a Work has brought.
struct Outcome<'a> {
    owner: &'a AppliedWork,
    prepared: &'a [Prepared],
    /// The results of those manifests that are ready, in their order.
    synced: &'a [Synced],
}

impl Outcome<'_> {
    /// Returns the object of a manifest as the owner has it since earlier.
    fn known(&self, manifest: &Value) -> Option<&AppliedResource> {
        let status = self.owner.status.as_ref()?;
        let mut known = status.applied_resources.iter();
        known.find(|one| is_same_object(&one.identifier, manifest))
    }
}

/// Returns the result of a manifest. `was_applied` tells a refusal to go on from one to take over.
fn result<'a>(one: &'a Synced, error: Option<&'a str>, was_applied: bool) -> ManifestResult<'a> {
    match (&one.error, error, one.object.seen()) {
        // That is no news about the manifest.
        (Some(error), ..) if error.is_of_member() => ManifestResult::Unknown,
        (Some(MemberError::Refused { .. }), Some(text), _) if !was_applied => {
            ManifestResult::Failed(Failure::TakeOver, text)
        }
        (Some(_), Some(text), _) => ManifestResult::Failed(Failure::Apply, text),
        (None, _, Some(object)) => ManifestResult::Applied {
            object,
            note: one.note.as_deref(),
        },
        _ => ManifestResult::Unknown,
    }
}

/// Returns the manifests of a Work, or some that were, as one unit.
fn unit<'a>(key: &Key, placed: &'a PlacedWork, manifests: &'a [Value]) -> Unit<'a, PlacedWork> {
    Unit {
        source: placed,
        key: key.clone(),
        generation: placed.work.metadata.generation,
        manifests: manifests.iter().collect(),
        terms: String::new(),
        suspended: false,
        last_write: LastWrite::Unknown,
        notes: "",
    }
}

/// Returns `true` if the `AppliedWork` is that of the Work.
fn is_of(owner: &AppliedWork, work: &Work) -> bool {
    let spec = &owner.spec;
    let of = (&*spec.work_namespace, &*spec.work_name);
    of == (work.metadata.namespace(), work.metadata.name())
}

fn last_write(work: &Work) -> LastWrite {
    let status = work.status.as_ref();
    let applied = status.and_then(|status| find(&status.conditions, APPLIED));
    let is_applied = applied.is_some_and(|applied| {
        applied.status == TRUE && applied.observed_generation == work.metadata.generation
    });
    if is_applied {
        LastWrite::OfManifest
    } else {
        LastWrite::Unknown
    }
}

/// Returns what the status of a Work says of its manifests that were applied.
fn notes(work: &Work) -> String {
    let manifests = work
        .status
        .iter()
        .flat_map(|status| &status.manifest_conditions);
    let applied = manifests.filter_map(|one| find(&one.conditions, APPLIED));
    let applied = applied.filter(|applied| applied.status == TRUE);
    applied
        .map(|applied| &*applied.message)
        .collect::<Vec<_>>()
        .join("\n")
}
