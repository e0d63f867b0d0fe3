//! Brings the objects of one Work in its member to their manifests, and its status to theirs.

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::sync::Arc;

use jiff::Timestamp;
use karmada_api::names::WORK_FINALIZER;
use karmada_api::work::WorkStatus;
use karmada_api::{ClusterProfile, Key, Work};
use karmada_execution::{MemberCluster, MemberError, ObservedObject, SyncResult, Synced};
use karmada_rules::execution::{Outcome, Seen, StatusPlan, status};
use karmada_runtime::error::Chain;
use karmada_runtime::events::EventRecorder;
use karmada_runtime::members::{ConnectError, MemberController, MemberQueues, ReconcileError};
use karmada_runtime::write::{self, Stored, WriteErrorKind, Writes};
use kube::api::{Patch, PatchParams};
use kube::{Api, Client, Resource};
use parking_lot::Mutex;
use serde::Deserialize;
use serde_json::{Value, json};
use tokio::time::Instant;

use crate::events::changes;
use crate::fleet::Fleet;
use crate::watch::SharedIndex;

/// The number of edits of a Work that may overtake the report of one sync before that starts again.
const MAX_EDITS: u32 = 4;

/// Reconciles Works.
pub(crate) struct Reconciler {
    pub(crate) index: Arc<SharedIndex>,
    pub(crate) fleet: Arc<Fleet>,
    pub(crate) client: Client,
    pub(crate) writes: Writes,
    /// Absent if nothing is written.
    pub(crate) events: Option<EventRecorder>,
    pub(crate) queues: MemberQueues<Key>,
    pub(crate) clock: fn() -> Timestamp,
    /// The last write of the status of each Work, until the watch shows it.
    pub(crate) reported: Mutex<BTreeMap<Key, Reported>>,
}

/// A write of the status of a Work.
#[derive(Debug)]
pub(crate) struct Reported {
    /// The version that the watch shows until then.
    shown: Option<String>,
    version: String,
    status: WorkStatus,
}

/// Errors of a Work, which its status shows.
#[derive(Debug, thiserror::Error)]
enum WorkError {
    #[error(transparent)]
    Connect(#[from] ConnectError),
    #[error(transparent)]
    Member(#[from] MemberError),
}

impl MemberController for Reconciler {
    type Key = Key;

    fn keys(&self) -> Vec<(String, Key)> {
        self.reported.lock().clear();
        self.index.keys()
    }

    async fn reconcile(&self, cluster: &str, key: &Key) -> Result<(), ReconcileError> {
        let Some(stored) = self.index.work(key) else {
            self.reported.lock().remove(key);
            self.fleet.forget(cluster, key);
            return Ok(());
        };
        let mut work = stored.object();
        self.catch_up(key, &mut work);
        let deleting = work.metadata.deletion_timestamp.is_some();
        let Some(profile) = self.index.cluster(cluster) else {
            // A cluster that is gone keeps no Work, one that was never readable all of them.
            return if deleting && self.index.is_gone(cluster) {
                self.finalize(&work).await
            } else {
                Ok(())
            };
        };
        // An agent in the cluster carries out the others.
        if profile.spec.sync_mode != "Push" {
            return Ok(());
        }
        if deleting {
            self.give_up(cluster, &profile, &work).await
        } else {
            self.sync(cluster, &profile, &work).await
        }
    }
}

impl Reconciler {
    async fn member(
        &self,
        cluster: &str,
        profile: &ClusterProfile,
    ) -> Result<Arc<MemberCluster>, ConnectError> {
        self.fleet.member(cluster, profile).await
    }

    async fn sync(
        &self,
        cluster: &str,
        profile: &ClusterProfile,
        work: &Work,
    ) -> Result<(), ReconcileError> {
        let manifests = &work.spec.workload.manifests;
        let member = match self.member(cluster, profile).await {
            Ok(member) => member,
            // Karmada's own API does not answer: that is no news about the Work.
            Err(ConnectError::Unread(error)) => {
                return Err(ConnectError::Unread(error).into());
            }
            Err(error) => {
                let text = Chain(&error).to_string();
                let outcomes = manifests.iter().map(|manifest| Outcome {
                    manifest,
                    error: Some(text.clone()),
                    object: Seen::Unknown,
                });
                self.report(work, &outcomes.collect::<Vec<_>>(), true)
                    .await?;
                return Err(error.into());
            }
        };
        let (synced, adopted) = match member.sync(&self.writes, work).await {
            SyncResult::Done { manifests, adopted } => (manifests, adopted),
            SyncResult::Later(delay) => {
                self.queues
                    .of(cluster)
                    .add_at(Key::of(work), Instant::now() + delay);
                return Ok(());
            }
        };
        let outcomes = manifests
            .iter()
            .zip(&synced)
            .map(|(manifest, synced)| Outcome {
                manifest,
                error: synced.error.as_ref().map(text),
                object: match &synced.object {
                    ObservedObject::Present(object) => Seen::Present(object),
                    ObservedObject::Settled(object) => Seen::Settled(object),
                    ObservedObject::Absent => Seen::Absent,
                    ObservedObject::Unknown => Seen::Unknown,
                },
            });
        // A replica that has lost its lease knows nothing.
        if !synced
            .iter()
            .any(|one| matches!(one.error, Some(MemberError::NotLeading)))
        {
            self.report(work, &outcomes.collect::<Vec<_>>(), adopted)
                .await?;
        }
        let errors = synced.into_iter().filter_map(|Synced { error, .. }| error);
        self.judge(cluster, errors.collect())
    }

    /// Notes whether the member was reached, and returns the gravest error.
    fn judge(&self, cluster: &str, errors: Vec<MemberError>) -> Result<(), ReconcileError> {
        let unreachable = errors.iter().any(MemberError::is_unreachable);
        self.fleet.note_reached(cluster, !unreachable);
        if errors.iter().any(MemberError::is_unauthorized) {
            // The next attempt reads the Secret again.
            self.fleet.disconnect(cluster);
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

    /// Brings a Work up to the last write of its status: a report on an older version would only conflict.
    fn catch_up(&self, key: &Key, work: &mut Work) {
        let mut reported = self.reported.lock();
        match reported.get(key) {
            Some(last) if last.shown == work.metadata.resource_version => {
                work.metadata.resource_version = Some(last.version.clone());
                work.status = Some(last.status.clone());
            }
            _ => drop(reported.remove(key)),
        }
    }

    /// Notes the write of a Work's status, unless the server stored it as it was before.
    fn note_reported(&self, work: &Work, body: &Value, stored: Stored) {
        let (key, replaced) = (Key::of(work), work.metadata.resource_version.clone());
        let mut reported = self.reported.lock();
        let last = reported.remove(&key);
        let version = stored
            .version()
            .filter(|version| Some(version) != replaced.as_ref());
        let status = WorkStatus::deserialize(&body["status"]).ok();
        let (Some(version), Some(status)) = (version, status) else {
            return;
        };
        let shown = match last {
            Some(last) if Some(&last.version) == replaced.as_ref() => last.shown,
            _ => replaced,
        };
        let last = Reported {
            shown,
            version,
            status,
        };
        reported.insert(key, last);
    }

    /// Writes the status of a Work if there is news.
    async fn report(
        &self,
        work: &Work,
        outcomes: &[Outcome<'_>],
        adopted: bool,
    ) -> Result<(), ReconcileError> {
        let (works, parameters) = (self.works(work), PatchParams::default());
        let name = work.metadata.name.as_deref().unwrap_or_default();
        let mut synced = Cow::Borrowed(work);
        let mut edits = 0;
        loop {
            let plan = status(&synced, outcomes, adopted, (self.clock)());
            let Some(body) = &plan.patch else {
                return Ok(());
            };
            let patch = Patch::Merge(body);
            let call = write::patch_status(&works, name, &parameters, &patch);
            let error = match self.writes.write("work_status", call).await {
                Ok(None) => return Ok(()),
                Ok(Some(stored)) => {
                    self.record(work, &plan);
                    self.note_reported(&synced, body, stored);
                    return Ok(());
                }
                Err(error) => error,
            };
            match error.kind() {
                // It was deleted meanwhile.
                WriteErrorKind::Missing => return Ok(()),
                // The edit may be a suspension: then no later sync would report what this one has applied.
                WriteErrorKind::Conflict if edits < MAX_EDITS => {
                    edits += 1;
                    let newer = works.get_opt(name).await?;
                    let Some(newer) = newer.filter(|newer| newer.metadata.uid == work.metadata.uid)
                    else {
                        return Ok(());
                    };
                    let synced = synced.to_mut();
                    synced.metadata.resource_version = newer.metadata.resource_version;
                    synced.status = newer.status;
                }
                _ => return Err(error.into()),
            }
        }
    }

    /// Records what has become of a Work.
    fn record(&self, work: &Work, plan: &StatusPlan) {
        if let Some(events) = &self.events {
            for event in changes(plan) {
                events.record(work.object_ref(&()), event);
            }
        }
    }

    /// Gives up the objects of a Work that is being deleted, and then lets the Work go.
    async fn give_up(
        &self,
        cluster: &str,
        profile: &ClusterProfile,
        work: &Work,
    ) -> Result<(), ReconcileError> {
        if !has_finalizer(work) {
            return Ok(());
        }
        let leaves = profile.metadata.deletion_timestamp.is_some();
        // Found once: each of its Works would wait for the same.
        if leaves && !self.fleet.was_reached(cluster) {
            return self.finalize(work).await;
        }
        let given_up = match self.member(cluster, profile).await {
            Ok(member) => member
                .give_up(&self.writes, work)
                .await
                .map_err(WorkError::from),
            Err(error) => Err(error.into()),
        };
        let error = match given_up {
            Ok(()) => {
                self.fleet.note_reached(cluster, true);
                return self.finalize(work).await;
            }
            Err(error) => error,
        };
        match error {
            WorkError::Connect(ConnectError::Unread(error)) => {
                Err(ConnectError::Unread(error).into())
            }
            // A cluster that leaves and cannot be worked on keeps what it has.
            WorkError::Connect(_) if leaves => self.finalize(work).await,
            WorkError::Member(error) if leaves && error.is_of_member() => {
                self.fleet.note_reached(cluster, !error.is_unreachable());
                self.finalize(work).await
            }
            WorkError::Connect(error) => Err(error.into()),
            WorkError::Member(error) => self.judge(cluster, vec![error]),
        }
    }

    /// Removes our finalizer from a Work.
    async fn finalize(&self, work: &Work) -> Result<(), ReconcileError> {
        if !has_finalizer(work) {
            return Ok(());
        }
        let finalizers = work.metadata.finalizers.iter().flatten();
        let rest: Vec<_> = finalizers.filter(|name| *name != WORK_FINALIZER).collect();
        let patch = Patch::Merge(json!({ "metadata": {
            "resourceVersion": work.metadata.resource_version,
            "finalizers": rest,
        } }));
        let (works, parameters) = (self.works(work), PatchParams::default());
        let name = work.metadata.name.as_deref().unwrap_or_default();
        let call = write::patch(&works, name, &parameters, &patch);
        match self.writes.write("work_finalizer", call).await {
            Ok(_) => Ok(()),
            Err(error) if error.kind() == WriteErrorKind::Missing => Ok(()),
            Err(error) => Err(error.into()),
        }
    }

    fn works(&self, work: &Work) -> Api<Work> {
        let namespace = work.metadata.namespace.as_deref().unwrap_or_default();
        Api::namespaced(self.client.clone(), namespace)
    }
}

fn has_finalizer(work: &Work) -> bool {
    let mut finalizers = work.metadata.finalizers.iter().flatten();
    finalizers.any(|name| name == WORK_FINALIZER)
}

/// Returns the error as the Work's status shows it.
fn text(error: &MemberError) -> String {
    let text = Chain(error).to_string();
    if error.is_unreachable() {
        format!("the cluster cannot be reached: {text}")
    } else if error.is_unreadable() {
        format!("the cluster's response cannot be read: {text}")
    } else {
        text
    }
}
