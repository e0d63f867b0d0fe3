//! The moments at which people's decisions to block a cluster expire.
//!
//! The cluster may stay blocked by a condition. It may be readmitted then, which no change of an object
//! shows.

use jiff::Timestamp;
use objects::Key;
use traffic::ingress::{Admission, decided_scope};
use traffic::remedy::Scope;

use crate::index::Index;

impl Index {
    /// Returns the moment at which the next Remedy expires.
    pub(super) fn next_expiry(&self) -> Option<Timestamp> {
        self.backends.as_ref()?.expiries.next()
    }

    /// Takes in a look at the clock. The ingresses in blocked clusters of the Remedies that have expired
    /// since are woken.
    pub(super) fn expire(&mut self, now: Timestamp) -> Vec<Key> {
        let Some(backends) = &mut self.backends else {
            return Vec::new();
        };
        let mut concerned = Vec::new();
        for name in backends.expiries.look(now) {
            if let Some(remedy) = backends.remedies.get(&Key::cluster_scoped(&name)) {
                concerned.push(Scope::of(remedy));
                backends.decided.replace(&name, decided_scope(remedy, now));
            }
        }
        self.blocked_in(&concerned)
    }

    /// Returns the ingresses in blocked clusters that one of `scopes` covers.
    pub(super) fn blocked_in(&self, scopes: &[Scope]) -> Vec<Key> {
        if scopes.is_empty() {
            return Vec::new();
        }
        let blocked = self.clusters.iter().filter(|(key, cluster)| {
            Admission::of(cluster) == Admission::Blocked
                && scopes.iter().any(|scope| scope.covers(&key.name))
        });
        blocked
            .flat_map(|(key, _)| self.located_in(&key.name))
            .chain(self.left())
            .collect()
    }
}
