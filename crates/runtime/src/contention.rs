//! Contention: another client undoes each of our writes, and we write again after growing pauses.

use std::collections::{BTreeMap, HashMap};
use std::fmt::Debug;
use std::hash::{BuildHasher, BuildHasherDefault, DefaultHasher, Hash};
use std::sync::LazyLock;
use std::time::Duration;

use kube::Api;
use objects::last_writer::rival_at;
use parking_lot::Mutex;
use prometheus_client::metrics::counter::Counter;
use serde::de::DeserializeOwned;
use serde_json::Value;
use tokio::time::{Instant, timeout};

/// The number of times that a write may be undone before there is a pause: a restored backup, or a user
/// who tries something, is no contention.
const TOLERATED: u32 = 3;
const MIN_BACKOFF: Duration = Duration::from_secs(1);
const MAX_BACKOFF: Duration = Duration::from_mins(5);
/// The age at which a write has lasted: who changes it then contends with nobody.
const SETTLED_AFTER: Duration = Duration::from_mins(10);

/// The longest duration of a read that only serves a message.
const READ_LIMIT: Duration = Duration::from_secs(10);

/// The writes of this process that were made again after a pause, `contested_writes_total`.
pub(crate) static CONTESTED: LazyLock<Counter> = LazyLock::new(Counter::default);

/// The last write to each part `K` that is ours.
#[derive(Debug)]
pub struct Contention<K> {
    state: Mutex<State<K>>,
}

#[derive(Debug)]
struct State<K> {
    /// The last write to each part of which the same was written before.
    last: BTreeMap<K, LastWrite>,
    first: FirstWrites,
}

/// The writes of the last while that were made once, by a hash of part and value: nobody undoes most, and a rollout
/// makes hundreds of thousands.
#[derive(Debug, Default)]
struct FirstWrites {
    /// The version that each was stored as; 0 if that is no number.
    recent: HashMap<u64, u64>,
    /// The same of the time before, which are forgotten when these are as old.
    older: HashMap<u64, u64>,
    began: Option<Instant>,
}

#[derive(Debug)]
struct LastWrite {
    /// A hash of the value: the values of a thousand objects are megabytes.
    value: u64,
    version: Option<String>,
    at: Instant,
    /// The number of times in succession that it was undone and written again.
    undone: u32,
    is_reported: bool,
}

/// A write of a value to a part, which may begin now.
#[derive(Debug, PartialEq, Eq)]
#[must_use = "a write that is not recorded never counts as undone"]
pub struct Attempt<K> {
    part: K,
    value: u64,
    /// The number of times that our last writes of the value were undone.
    undone: u32,
}

/// A pause before the next write to a part.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Backoff {
    /// The end of the pause.
    pub until: Instant,
    /// Set in the first pause: whoever is concerned is told once.
    pub is_news: bool,
}

impl<K> Attempt<K> {
    /// Creates an attempt that waits for nobody, however often the value was undone.
    pub fn at_once(part: K, value: &Value) -> Self {
        Self {
            part,
            value: hash(value),
            undone: 0,
        }
    }
}

impl<K: Hash> Attempt<K> {
    fn hash(&self) -> u64 {
        hash(&(&self.part, self.value))
    }
}

impl<K> Default for Contention<K> {
    fn default() -> Self {
        let state = State {
            last: BTreeMap::new(),
            first: FirstWrites::default(),
        };
        Self {
            state: Mutex::new(state),
        }
    }
}

impl<K: Ord + Hash> Contention<K> {
    /// Begins a write of `value` to `part`, which has another one in the version `seen` of its object. A
    /// removal is null; an object that does not exist has no version.
    ///
    /// # Errors
    /// Returns the pause to wait for if the value was undone too often.
    pub fn begin(
        &self,
        part: K,
        value: &Value,
        seen: Option<&str>,
        now: Instant,
    ) -> Result<Attempt<K>, Backoff> {
        let mut attempt = Attempt::at_once(part, value);
        let state = &mut *self.state.lock();
        let Some(last) = state.last.get_mut(&attempt.part) else {
            attempt.undone = u32::from(state.first.is_undone(attempt.hash(), seen));
            return Ok(attempt);
        };
        // An older version does not show our write yet: nobody has undone it.
        let is_undone = last.value == attempt.value && is_newer(seen, last.version.as_deref());
        if !is_undone || last.is_settled(now) {
            return Ok(attempt);
        }
        attempt.undone = last.undone + 1;
        let until = last.at + backoff(attempt.undone);
        if now >= until {
            return Ok(attempt);
        }
        let is_news = !std::mem::replace(&mut last.is_reported, true);
        Err(Backoff { until, is_news })
    }

    /// Records a write that was stored as `version` at `at`.
    pub fn stored(&self, attempt: Attempt<K>, version: Option<String>, at: Instant) {
        let state = &mut *self.state.lock();
        let all = &mut state.last;
        if attempt.undone == 0 && !all.contains_key(&attempt.part) {
            return state.first.note(attempt.hash(), version.as_deref(), at);
        }
        let Attempt {
            part,
            value,
            undone,
        } = attempt;
        if undone >= TOLERATED {
            CONTESTED.inc();
        }
        // Names come and go with each rollout: each time the map has doubled, it loses the parts that are settled.
        if !all.contains_key(&part) && all.len().is_power_of_two() {
            all.retain(|_, last| !last.is_settled(at));
        }
        let is_reported = undone > 0 && all.get(&part).is_some_and(|last| last.is_reported);
        let last = LastWrite {
            value,
            version,
            at,
            undone,
            is_reported,
        };
        all.insert(part, last);
    }

    /// Forgets `part`.
    pub fn forget(&self, part: &K) {
        self.state.lock().last.remove(part);
    }
}

impl FirstWrites {
    /// Returns `true` if this write was stored as an older version than `seen`.
    fn is_undone(&self, write: u64, seen: Option<&str>) -> bool {
        let known = self.recent.get(&write).or_else(|| self.older.get(&write));
        known.is_some_and(|written| number(seen).is_none_or(|seen| seen > *written))
    }

    fn note(&mut self, write: u64, version: Option<&str>, at: Instant) {
        if self.began.is_none_or(|began| at >= began + SETTLED_AFTER) {
            self.began = Some(at);
            self.older = std::mem::take(&mut self.recent);
        }
        self.recent.insert(write, number(version).unwrap_or(0));
    }
}

impl LastWrite {
    fn is_settled(&self, now: Instant) -> bool {
        now >= self.at + SETTLED_AFTER
    }
}

/// Reads which manager other than `own` last wrote one of the fields of the object `name` at these `paths`, which are
/// JSON pointers (RFC 6901). Returns `None` if that cannot be found out.
pub async fn find_rival<K>(
    objects: &Api<K>,
    name: &str,
    own: &str,
    paths: &[String],
) -> Option<String>
where
    K: Clone + DeserializeOwned + Debug,
{
    if paths.is_empty() {
        return None;
    }
    let found = timeout(READ_LIMIT, objects.get_metadata(name)).await;
    let entries = found.ok()?.ok()?.metadata.managed_fields?;
    rival_at(&entries, own, paths).map(str::to_owned)
}

fn hash(value: &impl Hash) -> u64 {
    BuildHasherDefault::<DefaultHasher>::default().hash_one(value)
}

fn backoff(undone: u32) -> Duration {
    match undone.checked_sub(TOLERATED) {
        None => Duration::ZERO,
        // The shift is bounded so that it cannot overflow.
        Some(exponent) => MIN_BACKOFF
            .saturating_mul(1 << exponent.min(16))
            .min(MAX_BACKOFF),
    }
}

/// Compares resource versions of one kind, which are numbers (Kubernetes API concepts, "Resource
/// versions"). Others count as newer.
fn is_newer(seen: Option<&str>, written: Option<&str>) -> bool {
    match (number(seen), number(written)) {
        (Some(seen), Some(written)) => seen > written,
        _ => true,
    }
}

fn number(version: Option<&str>) -> Option<u64> {
    version?.parse().ok()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    /// Another client is quick: our write is undone whenever we look. The pauses grow to five minutes,
    /// and whoever is concerned is told once.
    #[test]
    fn undone_writes_back_off() {
        let contested = CONTESTED.get();
        let (contention, value) = (Contention::default(), json!("ours"));
        let (begun, mut passed) = (Instant::now(), Duration::ZERO);
        let (mut version, mut writes, mut news) = (0_u32, Vec::new(), 0);
        while passed < Duration::from_mins(20) {
            version += 1;
            let now = begun + passed;
            match contention.begin("i", &value, Some(&version.to_string()), now) {
                Ok(attempt) => {
                    version += 1;
                    contention.stored(attempt, Some(version.to_string()), now);
                    writes.push(passed.as_secs());
                }
                Err(Backoff { is_news, .. }) => {
                    news += u32::from(is_news);
                    passed += Duration::from_millis(500);
                }
            }
        }
        let expected = [0, 0, 0, 1, 3, 7, 15, 31, 63, 127, 255, 511, 811, 1111];
        assert_eq!(writes, expected);
        assert_eq!(news, 1);
        // Other tests may count, too.
        assert!(CONTESTED.get() >= contested + 11);
    }

    /// Neither another value, nor a version that does not show our write yet, nor a change of a write
    /// that had lasted.
    #[test]
    fn unrelated_changes_cause_no_backoff() {
        let (contention, now) = (Contention::default(), Instant::now());
        let (ours, other) = (json!("ours"), json!("other"));
        let attempt = Attempt {
            undone: 20,
            ..Attempt::at_once("i", &ours)
        };
        contention.stored(attempt, Some("9".to_owned()), now);
        assert_eq!(
            contention.begin("i", &ours, Some("9"), now),
            Ok(Attempt::at_once("i", &ours))
        );
        assert_eq!(
            contention.begin("i", &other, Some("10"), now),
            Ok(Attempt::at_once("i", &other))
        );
        assert_eq!(
            contention.begin("j", &ours, Some("10"), now),
            Ok(Attempt::at_once("j", &ours))
        );
        let backoff = Backoff {
            until: now + MAX_BACKOFF,
            is_news: true,
        };
        assert_eq!(contention.begin("i", &ours, Some("10"), now), Err(backoff));
        let later = now + SETTLED_AFTER;
        assert_eq!(
            contention.begin("i", &ours, Some("10"), later),
            Ok(Attempt::at_once("i", &ours))
        );
    }

    /// Names come and go with each rollout, whether their writes last or are undone.
    #[test]
    fn settled_writes_are_forgotten() {
        let (contention, begun) = (Contention::default(), Instant::now());
        for nth in 0..10_000_u32 {
            let now = begun + Duration::from_mins(1) * nth;
            contention.stored(Attempt::at_once(nth, &json!(nth)), None, now);
            let undone = contention.begin(nth, &json!(nth), None, now).unwrap();
            if nth % 2 == 0 {
                contention.stored(undone, None, now);
            }
        }
        let state = contention.state.lock();
        assert!(state.last.len() < 32);
        assert!(state.first.recent.len() + state.first.older.len() <= 20);
    }

    /// A rollout to a whole fleet is nobody's contention, and keeps no key.
    #[test]
    fn lasting_writes_keep_hashes() {
        let (contention, now) = (Contention::default(), Instant::now());
        for nth in 0..10_000_u32 {
            let attempt = contention.begin(nth, &json!(nth), None, now).unwrap();
            contention.stored(attempt, Some("7".to_owned()), now);
        }
        assert!(contention.state.lock().last.is_empty());
    }
}
