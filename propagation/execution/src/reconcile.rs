//! Brings the objects of one Work in its member to their manifests, and its status to theirs.

use std::error::Error;
use std::sync::Arc;
use std::time::Duration;

use apply::{ManifestSet, MemberError, SyncResult, Synced};
use karmada_api::cluster_view::PULL;
use karmada_api::names::WORK_FINALIZER;
use karmada_api::work::APPLIED;
use karmada_api::{ClusterView, Work};
use karmada_runtime::commit::Committer;
use karmada_runtime::error::Chain;
use karmada_runtime::members::{
    ConnectError, Contact, MemberController, MemberQueues, ReconcileError,
};
use karmada_runtime::panics::caught;
use karmada_runtime::write::WriteMode;
use kube::Client;
use objects::ownership::ObservedObject;
use objects::write::{ObjectRef, Write};
use objects::{Key, Metadata};
use propagation_rules::execution::{Block, Interpreted, Outcome, SyncOutcome};
use tokio::time::Instant;

use crate::customization::SharedCustomizations;
use crate::finalizer;
use crate::fleet::{Fleet, Member};
use crate::index::Works;
use crate::ownership::{manifest_set, manifest_set_under};
use crate::report::Reporter;

/// The time after which it is looked again whether a member knows by now the fields that it has left out of an object:
/// nothing of the object tells.
const RECHECK: Duration = Duration::from_mins(1);

/// Reconciles Works.
pub(crate) struct Reconciler {
    pub(crate) works: Arc<Works>,
    pub(crate) fleet: Arc<Fleet>,
    pub(crate) customizations: Arc<SharedCustomizations>,
    pub(crate) client: Client,
    pub(crate) committer: Committer,
    /// Of the engines of members.
    pub(crate) writes: WriteMode,
    pub(crate) queues: MemberQueues<Key>,
    pub(crate) reporter: Reporter,
}

/// Errors of a Work, which its status shows.
#[derive(Debug, thiserror::Error)]
enum WorkError {
    #[error(transparent)]
    Connect(#[from] ConnectError),
    #[error(transparent)]
    Member(#[from] MemberError),
    #[error("{0}")]
    Script(String),
}

impl MemberController for Reconciler {
    type Key = Key;

    fn keys(&self) -> Vec<(String, Key)> {
        self.reporter.pending.clear();
        self.works.index.lock().keys()
    }

    async fn reconcile(&self, cluster: &str, key: &Key) -> Result<Contact, ReconcileError> {
        let Some(work) = self.work(key) else {
            self.reporter.forget(key);
            self.fleet.forget(cluster, key);
            return Ok(Contact::None);
        };
        let view = self.works.index.lock().cluster(cluster);
        let Some(view) = view else {
            // A cluster that is gone keeps no Work, one that was never readable all of them.
            let is_gone = self.works.index.lock().is_gone(cluster);
            if work.metadata.is_deleting() && is_gone {
                self.finalize(&work).await?;
            }
            return Ok(Contact::None);
        };
        if !self.is_ours(&view) {
            return Ok(Contact::None);
        }
        let reconciling = async {
            if work.metadata.is_deleting() {
                self.remove(cluster, &view, &work).await
            } else {
                self.sync(cluster, &view, &work).await
            }
        };
        match caught(reconciling).await {
            Ok(reconciled) => reconciled,
            Err(panicked) => {
                self.report_untouched(&work, &panicked.to_string()).await?;
                Err(panicked.into())
            }
        }
    }

    async fn show_outage(
        &self,
        cluster: &str,
        key: &Key,
        reason: &(dyn Error + Send + Sync + 'static),
    ) {
        let view = self.works.index.lock().cluster(cluster);
        let is_ours = view.is_some_and(|view| self.is_ours(&view));
        let Some(work) = self.work(key).filter(|work| is_ours && waits(work)) else {
            return;
        };
        // The request that failed was for another Work.
        let cause = match reason.downcast_ref::<MemberError>() {
            Some(error) => error.cause(),
            None => Chain(reason).to_string(),
        };
        // A report that fails now comes when the Work gets its turn.
        if let Err(error) = self.report_untouched(&work, &unreached(&cause)).await {
            tracing::debug!(?key, ?error, "Outage not shown");
        }
    }
}

impl Reconciler {
    fn work(&self, key: &Key) -> Option<Work> {
        let stored = self.works.index.lock().work(key)?;
        Some(stored.object())
    }

    /// Returns `true` if we carry out the Works of a cluster: those of mode Pull are carried out in the cluster, and only
    /// there.
    fn is_ours(&self, view: &ClusterView) -> bool {
        view.spec.sync_mode == self.fleet.sync_mode()
    }

    async fn sync(
        &self,
        cluster: &str,
        view: &ClusterView,
        work: &Work,
    ) -> Result<Contact, ReconcileError> {
        // The interpreters of the fields that an object keeps are to be known before it is written.
        if !self.customizations.are_known() {
            return Ok(Contact::None);
        }
        if let Some(due) = self.reporter.pending.awaited(work) {
            self.look_again(cluster, work, due);
            return Ok(Contact::None);
        }
        let member = match self.fleet.member(cluster, view).await {
            Ok(member) => member,
            Err(error) => {
                self.report_unconnected(work, &error).await?;
                return Err(error.into());
            }
        };
        let blocks = self.works.index.lock().blocks(cluster, work);
        let set = manifest_set_under(work, &blocks);
        let (synced, untouched) = match member.sync(&self.writes, &set).await {
            SyncResult::Done {
                manifests,
                untouched,
            } => (manifests, untouched),
            SyncResult::Later(delay) => {
                self.look_again(cluster, work, Instant::now() + delay);
                return Ok(Contact::None);
            }
        };
        let is_written = synced.iter().any(|one| one.written);
        if synced.iter().all(|one| one.error.is_none()) {
            self.works.arrivals.applied(work, is_written);
        }
        self.reporter.record_contested(cluster, work, &synced);
        let pauses = synced.iter().filter_map(|one| one.contested.as_ref());
        if let Some(until) = pauses.map(|contested| contested.until).min() {
            self.look_again(cluster, work, until);
        }
        let pruned = self.prune(&member, &set, &synced).await;
        let interpreted = self.customizations.interpret(&synced).await;
        let results = (synced.as_slice(), interpreted.as_slice(), blocks.as_slice());
        let reported = self.report(cluster, work, results, untouched).await;
        if synced.iter().any(|one| one.note.is_some()) {
            self.look_again(cluster, work, Instant::now() + RECHECK);
        }
        let errors = synced.into_iter().filter_map(|one| one.error);
        let errors = errors.chain(pruned.err());
        // An outage is known even if the report of it fails.
        self.judge(cluster, errors.collect())?;
        reported?;
        match interpreted.iter().find_map(Interpreted::error) {
            Some(error) => Err(WorkError::Script(error.to_owned()).into()),
            // Without a write all may have been settled by the cache.
            None if is_written => Ok(Contact::Made),
            None => Ok(Contact::None),
        }
    }

    /// Has a Work reconciled again at this time.
    fn look_again(&self, cluster: &str, work: &Work, due: Instant) {
        self.queues.of(cluster).add_at(Key::of(work), due);
    }

    /// Takes the slices away that a Work has brought and does not have any more, once it is applied.
    async fn prune(
        &self,
        member: &Member,
        set: &ManifestSet<'_, Work>,
        synced: &[Synced],
    ) -> Result<(), MemberError> {
        let is_applied = synced.iter().all(|one| one.error.is_none());
        let brings_slices = self.works.index.lock().brings_slices(&set.key);
        if is_applied && brings_slices {
            member.prune(&self.writes, set).await?;
        }
        Ok(())
    }

    /// Reports a sync, at once or after a while, with the answers of scripts about the objects and the effects of blocks.
    async fn report(
        &self,
        cluster: &str,
        work: &Work,
        (synced, interpreted, blocks): (&[Synced], &[Interpreted], &[Option<Block>]),
        untouched: bool,
    ) -> Result<(), ReconcileError> {
        let is_written = synced.iter().any(|one| one.written);
        let has_failed = synced.iter().any(|one| one.error.is_some());
        let pending = &self.reporter.pending;
        if let Some(due) = pending.put_off(work, is_written && !has_failed) {
            self.look_again(cluster, work, due);
            return Ok(());
        }
        let mut errors = synced.iter().filter_map(|one| one.error.as_ref());
        if errors.any(|error| matches!(error, MemberError::NotLeading)) {
            // A replica that has lost its lease knows nothing.
            return Ok(());
        }
        let manifests = work.spec.workload.manifests.iter();
        let results = synced.iter().zip(interpreted).zip(blocks);
        let outcomes = manifests
            .zip(results)
            .map(|(manifest, ((one, interpreted), block))| Outcome {
                manifest,
                error: one.error.as_ref().map(explained),
                note: one.note.as_deref(),
                block: *block,
                object: &one.object,
                interpreted: interpreted.clone(),
            });
        let outcome = SyncOutcome {
            manifests: &outcomes.collect::<Vec<_>>(),
            untouched,
        };
        self.reporter.report(work, outcome).await
    }

    /// Reports the reason why there is no connection to the member of a Work.
    async fn report_unconnected(
        &self,
        work: &Work,
        error: &ConnectError,
    ) -> Result<(), ReconcileError> {
        // Karmada's own API does not answer: that is no news about the Work.
        if matches!(error, ConnectError::Unread(_)) {
            return Ok(());
        }
        let reason = Chain(error).to_string();
        self.report_untouched(work, &reason).await
    }

    /// Reports why nothing is known of the objects of a Work.
    async fn report_untouched(&self, work: &Work, reason: &str) -> Result<(), ReconcileError> {
        let manifests = work.spec.workload.manifests.iter();
        let outcomes = manifests.map(|manifest| Outcome {
            manifest,
            error: Some(reason.to_owned()),
            note: None,
            block: None,
            object: &ObservedObject::Unknown,
            interpreted: Interpreted::default(),
        });
        let outcome = SyncOutcome {
            manifests: &outcomes.collect::<Vec<_>>(),
            untouched: true,
        };
        self.reporter.report(work, outcome).await
    }

    /// Notes whether the member was reached, and returns the gravest error.
    fn judge(&self, cluster: &str, mut errors: Vec<MemberError>) -> Result<(), ReconcileError> {
        let unreachable = errors.iter().position(MemberError::is_unreachable);
        self.fleet.note_reached(cluster, unreachable.is_none());
        if errors.iter().any(MemberError::is_unauthorized) {
            // The next attempt reads the Secret again.
            self.fleet.refused(cluster);
        }
        match unreachable {
            Some(place) => Err(ReconcileError::Unreachable(
                errors.swap_remove(place).into(),
            )),
            None => errors
                .into_iter()
                .next()
                .map_or(Ok(()), |error| Err(error.into())),
        }
    }

    /// Takes away the objects of a Work that is being deleted, and then lets the Work go.
    async fn remove(
        &self,
        cluster: &str,
        view: &ClusterView,
        work: &Work,
    ) -> Result<Contact, ReconcileError> {
        if !work.metadata.has_finalizer(WORK_FINALIZER) {
            return Ok(Contact::None);
        }
        let leaves = view.metadata.deletion_timestamp.is_some();
        // Found once: each of its Works would wait for the same.
        if leaves && !self.fleet.was_reached(cluster) {
            self.finalize(work).await?;
            return Ok(Contact::None);
        }
        let removed = match self.fleet.member(cluster, view).await {
            Ok(member) => {
                let set = manifest_set(work);
                let removed = member.remove(&self.writes, &set).await;
                member.forget(&set.key);
                // An object that is being deleted there goes without us.
                removed.map(drop).map_err(WorkError::from)
            }
            Err(error) => Err(error.into()),
        };
        let error = match removed {
            Ok(()) => {
                self.fleet.note_reached(cluster, true);
                self.finalize(work).await?;
                return Ok(Contact::Made);
            }
            Err(error) => error,
        };
        match error {
            WorkError::Connect(error @ ConnectError::Unread(_)) => return Err(error.into()),
            // A cluster that leaves and cannot be worked on keeps its objects.
            WorkError::Connect(_) if leaves => {}
            WorkError::Member(error) if leaves && error.is_of_member() => {
                self.fleet.note_reached(cluster, !error.is_unreachable());
            }
            WorkError::Member(error) => self.judge(cluster, vec![error])?,
            error => return Err(error.into()),
        }
        self.finalize(work).await?;
        Ok(Contact::None)
    }

    /// Removes our finalizer from a Work.
    async fn finalize(&self, work: &Work) -> Result<(), ReconcileError> {
        const TARGET: &str = "work_finalizer";
        let Some(rest) = work.metadata.without_finalizers(&[WORK_FINALIZER]) else {
            return Ok(());
        };
        let write = if self.fleet.sync_mode() == PULL {
            finalizer::replacement(TARGET, &self.client, work).await?
        } else {
            let object = ObjectRef::of(work, &());
            Some(Write::finalizers(TARGET, object, &rest))
        };
        if let Some(write) = write {
            self.committer.write(&write, None).await?;
        }
        Ok(())
    }
}

/// Returns `true` if a Work is to be applied, and its status does not tell the outcome of this version yet.
fn waits(work: &Work) -> bool {
    let applied = work.condition(APPLIED);
    // Karmada's conditions do not name a version.
    let seen = applied.map(|applied| applied.observed_generation);
    let is_reported = seen.is_some_and(|seen| seen.is_none() || seen == work.metadata.generation);
    !work.metadata.is_deleting() && !work.is_suspended() && !is_reported
}

fn unreached(cause: &str) -> String {
    format!("the cluster cannot be reached: {cause}")
}

/// Returns the error as the Work's status shows it.
fn explained(error: &MemberError) -> String {
    let text = Chain(error).to_string();
    if error.is_unreachable() {
        unreached(&text)
    } else if error.is_unreadable() {
        format!("the cluster's response cannot be read: {text}")
    } else {
        text
    }
}
