//! Other writers of what is ours: who undoes each of our writes is answered after growing pauses.

use std::collections::BTreeMap;
use std::hash::{BuildHasher, BuildHasherDefault, DefaultHasher};
use std::time::Duration;

use parking_lot::Mutex;
use serde_json::Value;
use tokio::time::Instant;

/// The number of times that a write may be undone before there is a pause: a restored backup, or a user
/// who tries something, is no rival.
const TOLERATED: u32 = 3;
const FIRST_PAUSE: Duration = Duration::from_secs(1);
const LONGEST_PAUSE: Duration = Duration::from_mins(5);
/// A write that lasted this long was not undone by a rival.
const TRUCE: Duration = Duration::from_mins(10);

/// The last write to each part `K` of what is ours.
#[derive(Debug)]
pub struct Rivals<K> {
    last: Mutex<BTreeMap<K, Last>>,
}

#[derive(Debug)]
struct Last {
    /// A hash of the value: the values of a thousand objects are megabytes.
    value: u64,
    version: Option<String>,
    at: Instant,
    /// The number of times in succession that it was undone and written again.
    undone: u32,
    is_reported: bool,
}

/// The reaction to a part that lacks the value of ours.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Reaction {
    /// Write it.
    Write {
        /// The number of times that our last writes were undone.
        undone: u32,
    },
    /// Wait.
    Wait {
        /// The end of the pause.
        until: Instant,
        /// Set once for each rivalry.
        is_news: bool,
    },
}

impl<K> Default for Rivals<K> {
    fn default() -> Self {
        Self {
            last: Mutex::new(BTreeMap::new()),
        }
    }
}

impl<K: Clone + Ord> Rivals<K> {
    /// Decides whether to write `value` to `part`, which is another one in the version `seen` of its
    /// object. A removal is null; an object that does not exist has no version.
    pub fn react(&self, part: &K, value: &Value, seen: Option<&str>, now: Instant) -> Reaction {
        let mut all = self.last.lock();
        let Some(last) = all.get_mut(part) else {
            return Reaction::Write { undone: 0 };
        };
        // An older version does not show our write yet: nobody has undone it.
        let is_undone = last.value == hash(value) && is_newer(seen, last.version.as_deref());
        if !is_undone || last.is_over(now) {
            return Reaction::Write { undone: 0 };
        }
        let undone = last.undone + 1;
        let until = last.at + pause(undone);
        if now >= until {
            return Reaction::Write { undone };
        }
        let is_news = !std::mem::replace(&mut last.is_reported, true);
        Reaction::Wait { until, is_news }
    }

    /// Remembers a write that was stored as `version` at `at`.
    pub fn written(
        &self,
        part: &K,
        value: &Value,
        version: Option<String>,
        undone: u32,
        at: Instant,
    ) {
        let mut all = self.last.lock();
        // Names come and go with each rollout: each time the map has doubled, it loses what is over.
        if !all.contains_key(part) && all.len().is_power_of_two() {
            all.retain(|_, last| !last.is_over(at));
        }
        let is_reported = undone > 0 && all.get(part).is_some_and(|last| last.is_reported);
        let last = Last {
            value: hash(value),
            version,
            at,
            undone,
            is_reported,
        };
        all.insert(part.clone(), last);
    }

    /// Forgets `part`.
    pub fn forget(&self, part: &K) {
        self.last.lock().remove(part);
    }
}

impl Last {
    /// Returns `true` if the write has lasted: nobody can undo it as a rival any more.
    fn is_over(&self, now: Instant) -> bool {
        now >= self.at + TRUCE
    }
}

fn hash(value: &Value) -> u64 {
    BuildHasherDefault::<DefaultHasher>::default().hash_one(value)
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

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn who_undoes_every_write_meets_growing_pauses_and_is_reported_once() {
        let (rivals, value) = (Rivals::default(), json!("ours"));
        let (begun, mut passed) = (Instant::now(), Duration::ZERO);
        let (mut version, mut writes, mut news) = (0_u32, Vec::new(), 0);
        while passed < Duration::from_mins(20) {
            // The rival is quick: our write is undone whenever we look.
            version += 1;
            let now = begun + passed;
            match rivals.react(&"i", &value, Some(&version.to_string()), now) {
                Reaction::Write { undone } => {
                    version += 1;
                    let stored = Some(version.to_string());
                    rivals.written(&"i", &value, stored, undone, now);
                    writes.push(passed.as_secs());
                }
                Reaction::Wait { is_news, .. } => {
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
        let (rivals, now) = (Rivals::default(), Instant::now());
        let (ours, other) = (json!("ours"), json!("other"));
        let version = Some("9".to_owned());
        rivals.written(&"i", &ours, version, 20, now);
        let none = Reaction::Write { undone: 0 };
        assert_eq!(rivals.react(&"i", &ours, Some("9"), now), none);
        assert_eq!(rivals.react(&"i", &other, Some("10"), now), none);
        assert_eq!(rivals.react(&"j", &ours, Some("10"), now), none);
        let waits = Reaction::Wait {
            until: now + LONGEST_PAUSE,
            is_news: true,
        };
        assert_eq!(rivals.react(&"i", &ours, Some("10"), now), waits);
        let later = now + TRUCE;
        assert_eq!(rivals.react(&"i", &ours, Some("10"), later), none);
    }

    #[test]
    fn writes_to_names_that_come_and_go_are_forgotten_after_a_truce() {
        let (rivals, begun) = (Rivals::default(), Instant::now());
        for nth in 0..10_000_u32 {
            let now = begun + Duration::from_mins(1) * nth;
            rivals.written(&nth, &json!(nth), None, 0, now);
        }
        assert!(rivals.last.lock().len() < 32);
    }
}
