//! The reports that are put off.

use std::collections::BTreeMap;
use std::time::Duration;

use karmada_api::Work;
use objects::Key;
use parking_lot::Mutex;
use tokio::time::Instant;

/// The time from the write of an object until that is reported. The copies of an edit go to the other members
/// first, and mostly the member has set the object's status by then, which takes no report of its own.
const DELAY: Duration = Duration::from_millis(50);

/// The Works with objects that were written, until that is reported.
#[derive(Debug, Default)]
pub(crate) struct PendingReports(Mutex<BTreeMap<Key, Waiting>>);

#[derive(Debug)]
struct Waiting {
    generation: Option<i64>,
    due: Instant,
}

impl PendingReports {
    /// Forgets the reports of all Works.
    pub(crate) fn clear(&self) {
        self.0.lock().clear();
    }

    /// Forgets the reports of a Work that is gone.
    pub(crate) fn forget(&self, key: &Key) {
        self.0.lock().remove(key);
    }

    /// Returns the time until which a Work needs no sync, because its objects were just written.
    pub(crate) fn awaited(&self, work: &Work) -> Option<Instant> {
        let all = self.0.lock();
        let waiting = all.get(&Key::of(work))?;
        let is_same = waiting.generation == work.metadata.generation;
        (is_same && Instant::now() < waiting.due).then_some(waiting.due)
    }

    /// Returns the time at which a sync is to be reported, unless that is now. One report waits for no second
    /// write: somebody may undo each of ours.
    pub(crate) fn put_off(&self, work: &Work, is_written: bool) -> Option<Instant> {
        let (key, generation) = (Key::of(work), work.metadata.generation);
        let mut all = self.0.lock();
        let has_waited = all.remove(&key).is_some();
        if has_waited || !is_written {
            return None;
        }
        let due = Instant::now() + DELAY;
        all.insert(key, Waiting { generation, due });
        Some(due)
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
