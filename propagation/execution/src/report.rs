//! Reports what became of a Work in its status.

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::time::Duration;

use karmada_api::Work;
use karmada_api::work::WorkStatus;
use karmada_rules::execution::{Outcome, StatusPlan, status};
use karmada_runtime::members::ReconcileError;
use karmada_runtime::write::{self, Stored, WriteErrorKind};
use kube::Resource;
use kube::api::{Patch, PatchParams};
use objects::Key;
use parking_lot::Mutex;
use serde::Deserialize;
use serde_json::Value;
use tokio::time::Instant;

use crate::events::changes;
use crate::reconcile::Reconciler;

/// The number of edits of a Work that may overtake the report of one sync before that starts again.
const MAX_EDITS: u32 = 4;

/// The time from the write of an object until that is reported. The copies of an edit go to the other members
/// first, and mostly the member has set the object's status by then, which takes no report of its own.
const DELAY: Duration = Duration::from_millis(50);

/// The reports that are under way.
#[derive(Debug, Default)]
pub(crate) struct Reports {
    state: Mutex<State>,
}

#[derive(Debug, Default)]
struct State {
    /// The last write of the status of each Work, until the watch shows it.
    written: BTreeMap<Key, Written>,
    /// The Works whose objects were written, until that is reported.
    waiting: BTreeMap<Key, Waiting>,
}

#[derive(Debug)]
struct Written {
    /// The version that the watch shows until then.
    shown: Option<String>,
    version: String,
    status: WorkStatus,
}

#[derive(Debug)]
struct Waiting {
    generation: Option<i64>,
    due: Instant,
}

impl Reports {
    /// Forgets the reports of all Works.
    pub(crate) fn clear(&self) {
        *self.state.lock() = State::default();
    }

    /// Forgets the reports of a Work that is gone.
    pub(crate) fn forget(&self, key: &Key) {
        let mut state = self.state.lock();
        state.written.remove(key);
        state.waiting.remove(key);
    }

    /// Returns the time until which a Work needs no sync, because its objects were just written.
    pub(crate) fn awaited(&self, work: &Work) -> Option<Instant> {
        let state = self.state.lock();
        let waiting = state.waiting.get(&Key::of(work))?;
        let is_same = waiting.generation == work.metadata.generation;
        (is_same && Instant::now() < waiting.due).then_some(waiting.due)
    }

    /// Returns the time at which a sync is to be reported, unless that is now. One report waits for no second
    /// write: somebody may undo each of ours.
    pub(crate) fn put_off(&self, work: &Work, is_written: bool) -> Option<Instant> {
        let (key, generation) = (Key::of(work), work.metadata.generation);
        let mut state = self.state.lock();
        let has_waited = state.waiting.remove(&key).is_some();
        if has_waited || !is_written {
            return None;
        }
        let due = Instant::now() + DELAY;
        state.waiting.insert(key, Waiting { generation, due });
        Some(due)
    }

    /// Brings a Work up to the last write of its status: a report on an older version would only conflict.
    pub(crate) fn catch_up(&self, key: &Key, work: &mut Work) {
        let written = &mut self.state.lock().written;
        match written.get(key) {
            Some(last) if last.shown == work.metadata.resource_version => {
                work.metadata.resource_version = Some(last.version.clone());
                work.status = Some(last.status.clone());
            }
            _ => drop(written.remove(key)),
        }
    }

    /// Notes the write of a Work's status, unless the server stored it as it was before.
    fn note_written(&self, work: &Work, body: &Value, stored: Stored) {
        let (key, replaced) = (Key::of(work), work.metadata.resource_version.clone());
        let written = &mut self.state.lock().written;
        let last = written.remove(&key);
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
        let last = Written {
            shown,
            version,
            status,
        };
        written.insert(key, last);
    }
}

impl Reconciler {
    /// Writes the status of a Work if there is news.
    pub(crate) async fn report(
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
                    self.reports.note_written(&synced, body, stored);
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
}

#[cfg(test)]
mod tests {
    use serde_json::{from_value, json};
    use tokio::time::advance;

    use super::*;

    fn work(generation: i64) -> Work {
        let metadata =
            json!({ "namespace": "karmada-es-member1", "name": "web", "generation": generation });
        from_value(json!({ "metadata": metadata, "spec": {} })).unwrap()
    }

    #[tokio::test(start_paused = true)]
    async fn a_write_is_reported_after_a_while() {
        let reports = Reports::default();
        assert_eq!(reports.put_off(&work(1), false), None);
        assert_eq!(reports.awaited(&work(1)), None);
        let due = reports.put_off(&work(1), true).unwrap();
        assert_eq!(due - Instant::now(), DELAY);
        assert_eq!(reports.awaited(&work(1)), Some(due));
        advance(DELAY).await;
        assert_eq!(reports.awaited(&work(1)), None);
        assert_eq!(reports.put_off(&work(1), false), None);
        assert!(reports.put_off(&work(1), true).is_some());
    }

    #[tokio::test(start_paused = true)]
    async fn an_edit_is_not_held_up_by_the_report_of_the_one_before() {
        let reports = Reports::default();
        reports.put_off(&work(1), true).unwrap();
        assert_eq!(reports.awaited(&work(2)), None);
    }

    #[tokio::test(start_paused = true)]
    async fn a_report_waits_once_however_often_its_object_is_written() {
        let reports = Reports::default();
        reports.put_off(&work(1), true).unwrap();
        advance(DELAY).await;
        assert_eq!(reports.put_off(&work(1), true), None);
    }
}
