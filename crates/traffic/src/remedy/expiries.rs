//! The moments at which remedies expire.

use std::collections::{BTreeMap, BTreeSet};
use std::ops::Bound;

use jiff::Timestamp;
use karmada_api::Remedy;

use super::mode::Expiry;

/// The moments at which remedies expire, and the last look at the clock.
#[derive(Clone, Debug)]
pub struct Expiries {
    ends: BTreeMap<String, Timestamp>,
    by_end: BTreeSet<(Timestamp, String)>,
    looked: Timestamp,
}

impl Default for Expiries {
    fn default() -> Self {
        Self {
            ends: BTreeMap::new(),
            by_end: BTreeSet::new(),
            looked: Timestamp::MIN,
        }
    }
}

impl Expiries {
    /// Replaces the expiry of the remedy `name`. `None` removes it.
    pub fn replace(&mut self, name: &str, remedy: Option<&Remedy>) {
        if let Some(end) = self.ends.remove(name) {
            self.by_end.remove(&(end, name.to_owned()));
        }
        if let Some(Expiry::At(end)) = remedy.map(Expiry::of) {
            self.ends.insert(name.to_owned(), end);
            self.by_end.insert((end, name.to_owned()));
        }
    }

    /// Takes in a look at the clock, and returns the remedies that have expired since the last one. If the
    /// clock was set back, returns those that have not expired after all.
    pub fn look(&mut self, now: Timestamp) -> Vec<String> {
        let (from, to) = (self.looked.min(now), self.looked.max(now));
        self.looked = now;
        self.after(from)
            .take_while(|(end, _)| *end <= to)
            .map(|(_, name)| name.clone())
            .collect()
    }

    /// Returns the time of the last look.
    pub fn looked(&self) -> Timestamp {
        self.looked
    }

    /// Returns the first moment after the last look at which a remedy expires.
    pub fn next(&self) -> Option<Timestamp> {
        self.after(self.looked).map(|(end, _)| *end).next()
    }

    /// Iterates over the expiries after `time`.
    fn after(&self, time: Timestamp) -> impl Iterator<Item = &(Timestamp, String)> {
        let from = time
            .checked_add(jiff::SignedDuration::from_nanos(1))
            .map_or(Bound::Unbounded, |next| {
                Bound::Included((next, String::new()))
            });
        self.by_end.range((from, Bound::Unbounded))
    }
}

#[cfg(test)]
mod tests {
    use karmada_api::RemedySpec;
    use karmada_api::remedy::EXPIRES_AT;
    use proptest::prelude::*;

    use super::*;

    fn at(second: i64) -> Timestamp {
        Timestamp::from_second(second).unwrap()
    }

    fn until(end: Option<i64>) -> Remedy {
        let mut remedy = Remedy::new("r", RemedySpec::default());
        let annotation = end.map(|end| (EXPIRES_AT.to_owned(), at(end).to_string()));
        remedy.metadata.annotations = Some(annotation.into_iter().collect());
        remedy
    }

    proptest! {
        /// A look returns those for which the answer has changed since the last.
        #[test]
        fn look_returns_what_changed(
            ends in prop::collection::btree_map("[a-e]", prop::option::of(-3_i64..10), 0..5),
            looks in prop::collection::vec(-5_i64..12, 1..6),
        ) {
            let mut expiries = Expiries::default();
            for (name, end) in &ends {
                // One that is replaced leaves nothing behind.
                expiries.replace(name, Some(&until(Some(5))));
                expiries.replace(name, Some(&until(*end)));
            }
            let expired = |now: i64| -> BTreeSet<&String> {
                ends.iter().filter(|(_, end)| end.is_some_and(|end| end <= now)).map(|(name, _)| name).collect()
            };
            let mut before = i64::MIN;
            for now in looks {
                let changed = expiries.look(at(now));
                let changed: BTreeSet<&String> = changed.iter().collect();
                prop_assert_eq!(changed, &expired(before) ^ &expired(now));
                let next = ends.values().flatten().copied().filter(|end| *end > now).min();
                prop_assert_eq!(expiries.next(), next.map(at));
                before = now;
            }
            for name in ends.keys() {
                expiries.replace(name, None);
            }
            prop_assert_eq!(expiries.next(), None);
        }
    }
}
