//! Reports the outcome of a Work in its status.

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::sync::Arc;

use apply::Synced;
use jiff::Timestamp;
use karmada_api::Work;
use karmada_runtime::commit::{Committer, Outcome};
use karmada_runtime::events::EventRecorder;
use karmada_runtime::members::ReconcileError;
use karmada_runtime::write::WriteErrorKind;
use kube::{Api, Client, Resource};
use objects::Key;
use objects::message::are_same_troubles;
use parking_lot::Mutex;
use propagation_rules::execution::{StatusNews, SyncOutcome, status};

use crate::events::{self, troubles, warning};
use crate::index::Works;
use crate::pending::PendingReports;
use crate::reason::Reason;

/// The number of edits of a Work that may overtake the report of one sync before that starts again.
const MAX_EDITS: u32 = 4;

/// Writes the status of Works, with Events about its changes.
pub(crate) struct Reporter {
    client: Client,
    committer: Committer,
    works: Arc<Works>,
    events: Option<EventRecorder>,
    clock: fn() -> Timestamp,
    pub(crate) pending: PendingReports,
    /// The troubles with the scripts and webhooks of each Work that were recorded last.
    troubles: Mutex<BTreeMap<Key, Vec<(Reason, String)>>>,
}

impl Reporter {
    /// Creates the reporter of a program. There are no `events` if nothing is written.
    pub(crate) fn new(
        client: Client,
        committer: Committer,
        works: Arc<Works>,
        events: Option<EventRecorder>,
        clock: fn() -> Timestamp,
    ) -> Self {
        Self {
            client,
            committer,
            works,
            events,
            clock,
            pending: PendingReports::default(),
            troubles: Mutex::default(),
        }
    }

    /// Forgets a Work that is gone.
    pub(crate) fn forget(&self, key: &Key) {
        for target in ["work_status", "work_finalizer"] {
            self.committer.forget(target, key);
        }
        self.pending.forget(key);
        self.troubles.lock().remove(key);
    }

    /// Records which scripts and webhooks have failed for a Work, unless they are those that were recorded last.
    fn record_troubles(&self, work: &Work, outcome: SyncOutcome<'_>) {
        let found = troubles(outcome);
        let key = Key::of(work);
        let mut known = self.troubles.lock();
        let before = if found.is_empty() {
            known.remove(&key)
        } else {
            known.insert(key, found.clone())
        };
        drop(known);
        if are_same_troubles(&found, &before.unwrap_or_default()) {
            return;
        }
        if let Some(events) = &self.events {
            for (reason, note) in &found {
                events.record(work.object_ref(&()), warning(*reason, note));
            }
        }
    }

    /// Records which objects of a Work another client has begun to change back in its member.
    pub(crate) fn record_contested(&self, cluster: &str, work: &Work, synced: &[Synced]) {
        let Some(events) = &self.events else {
            return;
        };
        let manifests = work.spec.workload.manifests.iter();
        for ((manifest, one), ordinal) in manifests.zip(synced).zip(0..) {
            if let Some(contested) = one.contested.as_ref().filter(|one| one.is_news) {
                let manager = contested.manager.as_deref();
                let event = events::contested(manifest, ordinal, cluster, manager);
                events.record(work.object_ref(&()), event);
            }
        }
    }

    /// Writes the status of a Work if there is news.
    pub(crate) async fn report(
        &self,
        work: &Work,
        outcome: SyncOutcome<'_>,
    ) -> Result<(), ReconcileError> {
        self.record_troubles(work, outcome);
        let mut synced = Cow::Borrowed(work);
        let mut edits = 0;
        loop {
            let plan = status(&synced, outcome, (self.clock)());
            let Some(write) = plan.writes.first() else {
                return Ok(());
            };
            match self.committer.write(write, None).await {
                Ok(outcome) => {
                    if outcome.is_stored() {
                        self.record(work, &plan.events);
                    }
                    if let Outcome::Stored(stored) = &outcome {
                        self.works.index.lock().works.written(write, stored);
                    }
                    return Ok(());
                }
                // The edit may be a suspension: then no later sync would report the objects that this one has applied.
                Err(error) if error.kind() == WriteErrorKind::Conflict && edits < MAX_EDITS => {
                    edits += 1;
                    let Key { namespace, name } = &write.object.key;
                    let works: Api<Work> = Api::namespaced(self.client.clone(), namespace);
                    let newer = works.get_opt(name).await?;
                    let Some(newer) = newer.filter(|newer| newer.metadata.uid == work.metadata.uid)
                    else {
                        return Ok(());
                    };
                    let synced = synced.to_mut();
                    synced.metadata.resource_version = newer.metadata.resource_version;
                    synced.status = newer.status;
                }
                Err(error) => return Err(error.into()),
            }
        }
    }

    /// Records the news about a Work.
    fn record(&self, work: &Work, news: &[StatusNews]) {
        if let Some(events) = &self.events {
            for one in news {
                events.record(work.object_ref(&()), events::news(one));
            }
        }
    }
}
