//! Which override has an object that several of them name.

use std::collections::BTreeSet;

use fleet_api::overrides::{Override, OverrideSnapshot};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;
use objects::{Key, Metadata};
use placement_rules::overrides::{Claim, refusal};

use super::Scope;

impl<K: Override> Scope<K> {
    /// Returns why an override is not taken up, if it is not.
    pub(crate) fn refusal(&self, key: &Key) -> Option<String> {
        // Each is decided once, by those before it: of many that name one object each would ask all others in turn.
        let mut refused = BTreeSet::new();
        for older in self.older(key) {
            if self.refusal_beside(older, &refused).is_some() {
                refused.insert(older);
            }
        }
        self.refusal_beside(key, &refused)
    }

    /// Does the same where it is known which of the older ones that have nothing are refused themselves.
    fn refusal_beside(&self, key: &Key, refused: &BTreeSet<&Key>) -> Option<String> {
        let claim = self.claim(key)?;
        let rivals = self.sharing(key).into_iter().filter_map(|other| {
            let rival = self.claim(other)?;
            // One that has nothing, and is refused itself, keeps nothing from others.
            let counts = rival.taken.is_some()
                || self.age(other) < self.age(key) && !refused.contains(other);
            counts.then_some(rival)
        });
        refusal(&claim, &rivals.collect::<Vec<_>>())
    }

    /// Returns the older overrides without a snapshot that decide about one, or about one of these, the oldest first.
    fn older(&self, key: &Key) -> Vec<&Key> {
        let mut older = BTreeSet::new();
        let mut asked = vec![key];
        while let Some(one) = asked.pop() {
            for other in self.sharing(one) {
                let has_nothing = !self.latest.contains_key(other);
                if has_nothing && self.age(other) < self.age(one) && older.insert(other) {
                    asked.push(other);
                }
            }
        }
        let mut older = Vec::from_iter(older);
        older.sort_by_key(|one| self.age(one));
        older
    }

    /// Returns the order of overrides by their age.
    fn age<'k>(&self, key: &'k Key) -> (Option<Time>, &'k Key) {
        let one = self.overrides.get(key);
        let created = one.and_then(|one| one.meta().creation_timestamp.clone());
        (created, key)
    }

    /// Returns the claim of an override that stays.
    pub(super) fn claim(&self, key: &Key) -> Option<Claim<'_, K>> {
        let one = self.overrides.get(key)?;
        let taken = self.latest.get(key);
        let taken = taken.map(|snapshot| &snapshot.spec().override_spec);
        (!one.meta().is_deleting()).then_some(Claim { one, taken })
    }

    /// Returns the keys of the other overrides that name an object of one, or did.
    pub(super) fn sharing(&self, key: &Key) -> BTreeSet<&Key> {
        let objects = self.by_object.targets(key).iter();
        let sharing = objects.flat_map(|object| self.by_object.sources(object));
        sharing.filter(|other| *other != key).collect()
    }
}
