//! Other writers of a field of ours: who undoes each of our writes is answered after growing pauses.

use std::collections::{BTreeMap, BTreeSet};
use std::future::Future;
use std::time::Duration;

use k8s_openapi::apimachinery::pkg::apis::meta::v1::ManagedFieldsEntry;
use karmada_api::Key;
use karmada_runtime::error::BoxError;
use karmada_runtime::queue::Queue;
use parking_lot::Mutex;
use serde_json::Value;
use tokio::sync::Notify;
use tokio::time::{Instant, sleep_until};

/// The number of times that a write may be undone before there is a pause: a restored backup, or a user
/// who tries something, is no rival.
const TOLERATED: u32 = 3;
const FIRST_PAUSE: Duration = Duration::from_secs(1);
const LONGEST_PAUSE: Duration = Duration::from_mins(5);
/// A write that lasted this long was not undone by a rival.
const TRUCE: Duration = Duration::from_mins(10);

/// The last write to each object, and the objects that wait for a pause to end.
#[derive(Debug)]
pub(crate) struct Rivals {
    queue: Queue<Key>,
    last: Mutex<BTreeMap<Key, Last>>,
    pauses: Mutex<BTreeSet<(Instant, Key)>>,
    changed: Notify,
}

#[derive(Debug)]
struct Last {
    value: Value,
    version: Option<String>,
    at: Instant,
    /// The number of times in succession that it was undone and written again.
    undone: u32,
    is_reported: bool,
}

/// The reaction to an object that lacks the value of ours.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Reaction {
    /// Write it. Our last writes were undone this many times.
    Write { undone: u32 },
    /// Wait; the object is queued again when the pause is over.
    Wait {
        /// Set once for each rivalry.
        is_news: bool,
    },
}

impl Rivals {
    /// Creates the rivals of the controller with this queue.
    pub(crate) fn new(queue: Queue<Key>) -> Self {
        Self {
            queue,
            last: Mutex::default(),
            pauses: Mutex::default(),
            changed: Notify::new(),
        }
    }

    /// Decides whether to write `value` to the object `key`, whose version `seen` has another one.
    pub(crate) fn react(
        &self,
        key: &Key,
        value: &Value,
        seen: Option<&str>,
        now: Instant,
    ) -> Reaction {
        let mut all = self.last.lock();
        let Some(last) = all.get_mut(key) else {
            return Reaction::Write { undone: 0 };
        };
        // An older version does not show our write yet: nobody has undone it.
        let is_undone = last.value == *value && is_newer(seen, last.version.as_deref());
        if !is_undone || now >= last.at + TRUCE {
            return Reaction::Write { undone: 0 };
        }
        let undone = last.undone + 1;
        let until = last.at + pause(undone);
        if now >= until {
            return Reaction::Write { undone };
        }
        let is_news = !std::mem::replace(&mut last.is_reported, true);
        drop(all);
        self.pauses.lock().insert((until, key.clone()));
        self.changed.notify_one();
        Reaction::Wait { is_news }
    }

    /// Remembers a write that was stored as `version` at `at`.
    pub(crate) fn written(
        &self,
        key: &Key,
        value: Value,
        version: Option<String>,
        undone: u32,
        at: Instant,
    ) {
        let mut all = self.last.lock();
        let is_reported = undone > 0 && all.get(key).is_some_and(|last| last.is_reported);
        let last = Last {
            value,
            version,
            at,
            undone,
            is_reported,
        };
        all.insert(key.clone(), last);
    }

    /// Forgets the object `key`.
    pub(crate) fn forget(&self, key: &Key) {
        self.last.lock().remove(key);
    }

    /// Queues each object when its pause is over, until `stopping` returns.
    pub(crate) async fn run(&self, stopping: impl Future<Output = ()>) -> Result<(), BoxError> {
        let mut stopping = std::pin::pin!(stopping);
        loop {
            let next = self.pauses.lock().first().map(|(until, _)| *until);
            let over = async {
                match next {
                    Some(until) => sleep_until(until).await,
                    None => std::future::pending().await,
                }
            };
            tokio::select! {
                biased;
                () = &mut stopping => return Ok(()),
                () = self.changed.notified() => {}
                () = over => {
                    let first = self.pauses.lock().pop_first();
                    self.queue.add_all(first.map(|(_, key)| key));
                }
            }
        }
    }
}

fn pause(undone: u32) -> Duration {
    match undone.checked_sub(TOLERATED) {
        None => Duration::ZERO,
        // The shift is bounded so that it cannot overflow.
        Some(exponent) => FIRST_PAUSE
            .saturating_mul(1 << exponent.min(16))
            .min(LONGEST_PAUSE),
    }
}

/// Compares resource versions of one kind, which are numbers (Kubernetes API concepts, "Resource
/// versions"). Others count as newer.
fn is_newer(seen: Option<&str>, written: Option<&str>) -> bool {
    let number = |version: Option<&str>| version?.parse::<u128>().ok();
    match (number(seen), number(written)) {
        (Some(seen), Some(written)) => seen > written,
        _ => true,
    }
}

/// Returns the manager other than `own` that last wrote one of these fields of a status.
pub(crate) fn manager(
    entries: &[ManagedFieldsEntry],
    own: &str,
    fields: &[&str],
) -> Option<String> {
    let owns = |entry: &&ManagedFieldsEntry| {
        let status = entry
            .fields_v1
            .as_ref()
            .and_then(|all| all.0.get("f:status"));
        entry.manager.as_deref() != Some(own)
            && status.is_some_and(|status| {
                let mut fields = fields.iter();
                fields.any(|field| status.get(format!("f:{field}")).is_some())
            })
    };
    let rivals = entries.iter().filter(owns);
    let latest = rivals.max_by_key(|entry| entry.time.as_ref().map(|time| time.0))?;
    latest.manager.clone()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::fixtures::{key, object};

    #[test]
    fn who_undoes_every_write_meets_growing_pauses_and_is_reported_once() {
        let (rivals, value) = (Rivals::new(Queue::default()), json!("ours"));
        let (begun, mut passed) = (Instant::now(), Duration::ZERO);
        let (mut version, mut writes, mut news) = (0_u32, Vec::new(), 0);
        while passed < Duration::from_mins(20) {
            // The rival is quick: our write is undone whenever we look.
            version += 1;
            let now = begun + passed;
            match rivals.react(&key("i"), &value, Some(&version.to_string()), now) {
                Reaction::Write { undone } => {
                    version += 1;
                    let stored = Some(version.to_string());
                    rivals.written(&key("i"), value.clone(), stored, undone, now);
                    writes.push(passed.as_secs());
                }
                Reaction::Wait { is_news } => {
                    news += u32::from(is_news);
                    passed += Duration::from_millis(500);
                }
            }
        }
        let expected = [0, 0, 0, 1, 3, 7, 15, 31, 63, 127, 255, 511, 811, 1111];
        assert_eq!(writes, expected);
        assert_eq!(news, 1);
    }

    #[test]
    fn another_value_or_an_older_version_or_a_truce_is_no_rivalry() {
        let (rivals, now) = (Rivals::new(Queue::default()), Instant::now());
        let (ours, other) = (json!("ours"), json!("other"));
        let version = Some("9".to_owned());
        rivals.written(&key("i"), ours.clone(), version, 20, now);
        let none = Reaction::Write { undone: 0 };
        assert_eq!(rivals.react(&key("i"), &ours, Some("9"), now), none);
        assert_eq!(rivals.react(&key("i"), &other, Some("10"), now), none);
        assert_eq!(rivals.react(&key("j"), &ours, Some("10"), now), none);
        let waits = Reaction::Wait { is_news: true };
        assert_eq!(rivals.react(&key("i"), &ours, Some("10"), now), waits);
        let later = now + TRUCE;
        assert_eq!(rivals.react(&key("i"), &ours, Some("10"), later), none);
    }

    #[tokio::test]
    async fn an_object_is_queued_again_when_its_pause_is_over() {
        let (queue, now) = (Queue::default(), Instant::now());
        let rivals = Rivals::new(queue.clone());
        let version = Some("9".to_owned());
        rivals.written(&key("i"), json!(1), version, TOLERATED, now);
        rivals.react(&key("i"), &json!(1), Some("10"), now);
        rivals.run(sleep_until(now)).await.unwrap();
        assert!(queue.is_empty());
        let over = sleep_until(now + pause(TOLERATED + 1));
        let queued = async {
            over.await;
            while queue.is_empty() {
                tokio::task::yield_now().await;
            }
        };
        rivals.run(queued).await.unwrap();
        assert_eq!(queue.len(), 1);
    }

    #[test]
    fn the_rival_is_the_other_manager_that_last_wrote_a_field() {
        let entries: Vec<ManagedFieldsEntry> = object(json!([
            { "manager": "ours", "time": "2026-01-04T00:00:00Z",
              "fieldsV1": { "f:status": { "f:a": {} } } },
            { "manager": "early", "time": "2026-01-01T00:00:00Z",
              "fieldsV1": { "f:status": { "f:a": {} } } },
            { "manager": "late", "time": "2026-01-02T00:00:00Z",
              "fieldsV1": { "f:status": { "f:a": {} } } },
            { "manager": "elsewhere", "time": "2026-01-03T00:00:00Z",
              "fieldsV1": { "f:status": { "f:b": {} } } },
        ]));
        assert_eq!(manager(&entries, "ours", &["a"]).as_deref(), Some("late"));
        assert_eq!(manager(&entries, "ours", &["c"]), None);
    }
}
