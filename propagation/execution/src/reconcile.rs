//! Brings the objects of one Work in its member to their manifests, and its status to theirs.

use std::sync::Arc;
use std::time::Duration;

use apply::{MemberError, SyncResult, Synced};
use karmada_api::cluster_view::PULL;
use karmada_api::names::WORK_FINALIZER;
use karmada_api::{ClusterView, Work};
use karmada_rules::execution::{Interpreted, Outcome, SyncOutcome};
use karmada_runtime::error::Chain;
use karmada_runtime::members::{ConnectError, MemberController, MemberQueues, ReconcileError};
use karmada_runtime::write::{self, WriteErrorKind, WriteMode};
use kube::Client;
use kube::api::{Patch, PatchParams};
use objects::Key;
use objects::ownership::ObservedObject;
use objects::patch::guarded;
use serde_json::json;
use tokio::time::Instant;

use crate::customization::SharedCustomizations;
use crate::finalizer;
use crate::fleet::Fleet;
use crate::index::SharedIndex;
use crate::ownership::unit;
use crate::report::{Reporter, works};

/// The time after which it is looked again whether a member knows by now what it has left out of an object: nothing
/// of the object tells.
const RECHECK: Duration = Duration::from_mins(1);

/// Reconciles Works.
pub(crate) struct Reconciler {
    pub(crate) index: Arc<SharedIndex>,
    pub(crate) fleet: Arc<Fleet>,
    pub(crate) customizations: Arc<SharedCustomizations>,
    pub(crate) client: Client,
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
        self.index.keys()
    }

    async fn reconcile(&self, cluster: &str, key: &Key) -> Result<(), ReconcileError> {
        let Some(stored) = self.index.work(key) else {
            self.reporter.forget(key);
            self.fleet.forget(cluster, key);
            return Ok(());
        };
        let mut work = stored.object();
        self.reporter.pending.catch_up(key, &mut work);
        let deleting = work.metadata.deletion_timestamp.is_some();
        let Some(view) = self.index.cluster(cluster) else {
            // A cluster that is gone keeps no Work, one that was never readable all of them.
            return if deleting && self.index.is_gone(cluster) {
                self.finalize(&work).await
            } else {
                Ok(())
            };
        };
        // Those of mode Pull are carried out in the cluster, and only there.
        if view.spec.sync_mode != self.fleet.sync_mode() {
            return Ok(());
        }
        if deleting {
            self.remove(cluster, &view, &work).await
        } else {
            self.sync(cluster, &view, &work).await
        }
    }
}

impl Reconciler {
    async fn sync(
        &self,
        cluster: &str,
        view: &ClusterView,
        work: &Work,
    ) -> Result<(), ReconcileError> {
        // Who says what an object keeps is to be known before it is written.
        if !self.customizations.are_known() {
            return Ok(());
        }
        if let Some(due) = self.reporter.pending.awaited(work) {
            self.queues.of(cluster).add_at(Key::of(work), due);
            return Ok(());
        }
        let member = match self.fleet.member(cluster, view).await {
            Ok(member) => member,
            Err(error) => return self.report_unconnected(work, error).await,
        };
        let (synced, untouched) = match member.sync(&self.writes, &unit(work)).await {
            SyncResult::Done {
                manifests,
                untouched,
            } => (manifests, untouched),
            SyncResult::Later(delay) => {
                self.queues
                    .of(cluster)
                    .add_at(Key::of(work), Instant::now() + delay);
                return Ok(());
            }
        };
        if synced.iter().all(|one| one.error.is_none()) {
            let is_written = synced.iter().any(|one| one.written);
            self.index.arrivals.applied(work, is_written);
        }
        self.reporter.record_contested(cluster, work, &synced);
        let pauses = synced.iter().filter_map(|one| one.contested.as_ref());
        if let Some(until) = pauses.map(|contested| contested.until).min() {
            self.queues.of(cluster).add_at(Key::of(work), until);
        }
        let interpreted = self.customizations.interpret(&synced).await;
        let results = (synced.as_slice(), interpreted.as_slice());
        self.report(cluster, work, results, untouched).await?;
        if synced.iter().any(|one| one.note.is_some()) {
            let due = Instant::now() + RECHECK;
            self.queues.of(cluster).add_at(Key::of(work), due);
        }
        let errors = synced.into_iter().filter_map(|one| one.error);
        self.judge(cluster, errors.collect())?;
        match interpreted.iter().find_map(Interpreted::error) {
            Some(error) => Err(WorkError::Script(error.to_owned()).into()),
            None => Ok(()),
        }
    }

    /// Reports a sync, at once or after a while, with what scripts say of the objects.
    async fn report(
        &self,
        cluster: &str,
        work: &Work,
        (synced, interpreted): (&[Synced], &[Interpreted]),
        untouched: bool,
    ) -> Result<(), ReconcileError> {
        let is_written = synced.iter().any(|one| one.written);
        let has_failed = synced.iter().any(|one| one.error.is_some());
        let pending = &self.reporter.pending;
        if let Some(due) = pending.put_off(work, is_written && !has_failed) {
            self.queues.of(cluster).add_at(Key::of(work), due);
            return Ok(());
        }
        let mut errors = synced.iter().filter_map(|one| one.error.as_ref());
        if errors.any(|error| matches!(error, MemberError::NotLeading)) {
            // A replica that has lost its lease knows nothing.
            return Ok(());
        }
        let manifests = work.spec.workload.manifests.iter();
        let results = synced.iter().zip(interpreted);
        let outcomes = manifests
            .zip(results)
            .map(|(manifest, (one, interpreted))| Outcome {
                manifest,
                error: one.error.as_ref().map(explained),
                note: one.note.as_deref(),
                object: &one.object,
                interpreted: interpreted.clone(),
            });
        let outcome = SyncOutcome {
            manifests: &outcomes.collect::<Vec<_>>(),
            untouched,
        };
        self.reporter.report(work, outcome).await
    }

    /// Reports the reason why there is no connection to the member of a Work, and fails with it.
    async fn report_unconnected(
        &self,
        work: &Work,
        error: ConnectError,
    ) -> Result<(), ReconcileError> {
        // Karmada's own API does not answer: that is no news about the Work.
        if matches!(error, ConnectError::Unread(_)) {
            return Err(error.into());
        }
        let text = Chain(&error).to_string();
        let manifests = work.spec.workload.manifests.iter();
        let outcomes = manifests.map(|manifest| Outcome {
            manifest,
            error: Some(text.clone()),
            note: None,
            object: &ObservedObject::Unknown,
            interpreted: Interpreted::default(),
        });
        let outcome = SyncOutcome {
            manifests: &outcomes.collect::<Vec<_>>(),
            untouched: true,
        };
        self.reporter.report(work, outcome).await?;
        Err(error.into())
    }

    /// Notes whether the member was reached, and returns the gravest error.
    fn judge(&self, cluster: &str, errors: Vec<MemberError>) -> Result<(), ReconcileError> {
        let unreachable = errors.iter().any(MemberError::is_unreachable);
        self.fleet.note_reached(cluster, !unreachable);
        if errors.iter().any(MemberError::is_unauthorized) {
            // The next attempt reads the Secret again.
            self.fleet.refused(cluster);
        }
        let Some(error) = errors.into_iter().next() else {
            return Ok(());
        };
        Err(if unreachable {
            ReconcileError::Unreachable(error.into())
        } else {
            error.into()
        })
    }

    /// Takes away the objects of a Work that is being deleted, and then lets the Work go.
    async fn remove(
        &self,
        cluster: &str,
        view: &ClusterView,
        work: &Work,
    ) -> Result<(), ReconcileError> {
        if !has_finalizer(work) {
            return Ok(());
        }
        let leaves = view.metadata.deletion_timestamp.is_some();
        // Found once: each of its Works would wait for the same.
        if leaves && !self.fleet.was_reached(cluster) {
            return self.finalize(work).await;
        }
        let removed = match self.fleet.member(cluster, view).await {
            Ok(member) => {
                let unit = unit(work);
                let removed = member.remove(&self.writes, &unit).await;
                member.forget(&unit.key);
                // What is being deleted there goes without us.
                removed.map(drop).map_err(WorkError::from)
            }
            Err(error) => Err(error.into()),
        };
        let error = match removed {
            Ok(()) => {
                self.fleet.note_reached(cluster, true);
                return self.finalize(work).await;
            }
            Err(error) => error,
        };
        match error {
            WorkError::Connect(error @ ConnectError::Unread(_)) => Err(error.into()),
            // A cluster that leaves and cannot be worked on keeps what it has.
            WorkError::Connect(_) if leaves => self.finalize(work).await,
            WorkError::Member(error) if leaves && error.is_of_member() => {
                self.fleet.note_reached(cluster, !error.is_unreachable());
                self.finalize(work).await
            }
            WorkError::Connect(error) => Err(error.into()),
            WorkError::Member(error) => self.judge(cluster, vec![error]),
            error @ WorkError::Script(_) => Err(error.into()),
        }
    }

    /// Removes our finalizer from a Work.
    async fn finalize(&self, work: &Work) -> Result<(), ReconcileError> {
        if !has_finalizer(work) {
            return Ok(());
        }
        let finalizers = work.metadata.finalizers.iter().flatten();
        let rest: Vec<_> = finalizers.filter(|name| *name != WORK_FINALIZER).collect();
        let version = work.metadata.resource_version.as_deref();
        let rest = json!({ "metadata": { "finalizers": rest } });
        let patch = Patch::Merge(guarded(version, rest));
        let (works, parameters) = (works(&self.client, work), PatchParams::default());
        let name = work.metadata.name.as_deref().unwrap_or_default();
        let call = async {
            match self.fleet.sync_mode() {
                PULL => finalizer::replace(&self.client, work).await,
                _ => write::patch(&works, name, &parameters, &patch)
                    .await
                    .map(drop),
            }
        };
        match self.writes.write("work_finalizer", call).await {
            Ok(_) => Ok(()),
            Err(error) if error.kind() == WriteErrorKind::Missing => Ok(()),
            Err(error) => Err(error.into()),
        }
    }
}

fn has_finalizer(work: &Work) -> bool {
    let mut finalizers = work.metadata.finalizers.iter().flatten();
    finalizers.any(|name| name == WORK_FINALIZER)
}

/// Returns the error as the Work's status shows it.
fn explained(error: &MemberError) -> String {
    let text = Chain(error).to_string();
    if error.is_unreachable() {
        format!("the cluster cannot be reached: {text}")
    } else if error.is_unreadable() {
        format!("the cluster's response cannot be read: {text}")
    } else {
        text
    }
}
