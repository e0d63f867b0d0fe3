//! The reports that are put off, and the ones that the watch has not shown yet.

use std::collections::BTreeMap;
use std::time::Duration;

use karmada_api::Work;
use karmada_api::work::WorkStatus;
use karmada_runtime::write::Stored;
use objects::Key;
use parking_lot::Mutex;
use serde::Deserialize;
use serde_json::Value;
use tokio::time::Instant;

/// The time from the write of an object until that is reported. The copies of an edit go to the other members
/// first, and mostly the member has set the object's status by then, which takes no report of its own.
const DELAY: Duration = Duration::from_millis(50);

/// The reports that are under way, by Work.
#[derive(Debug, Default)]
pub(crate) struct PendingReports {
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

impl PendingReports {
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
    pub(crate) fn note_written(&self, work: &Work, body: &Value, stored: Stored) {
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

    /// A sync that wrote is reported after a while, one that did not at once.
    #[tokio::test(start_paused = true)]
    async fn written_object_delays_report() {
        let reports = PendingReports::default();
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

    /// An edit is not held up by the report of the one before.
    #[tokio::test(start_paused = true)]
    async fn edit_is_not_held_up() {
        let reports = PendingReports::default();
        reports.put_off(&work(1), true).unwrap();
        assert_eq!(reports.awaited(&work(2)), None);
    }

    /// However often the object of a Work is written, its report waits once: somebody may undo each write.
    #[tokio::test(start_paused = true)]
    async fn report_waits_once() {
        let reports = PendingReports::default();
        reports.put_off(&work(1), true).unwrap();
        advance(DELAY).await;
        assert_eq!(reports.put_off(&work(1), true), None);
    }
}
