//! The moments at which people's decisions to block a cluster expire.
//!
//! The cluster may stay blocked by a condition. It may be readmitted then, which no change of an object
//! shows.

use jiff::Timestamp;
use objects::Key;
use traffic::ingress::Admission;
use traffic::remedy::Scope;

use crate::index::Index;

impl Index {
    /// Returns the moment at which the next Remedy expires.
    pub(super) fn next_expiry(&self) -> Option<Timestamp> {
        self.backends.as_ref()?.decided.next_expiry()
    }

    /// Takes in a look at the clock. The ingresses in blocked clusters of the Remedies that have expired
    /// since are woken.
    pub(super) fn expire(&mut self, now: Timestamp) -> Vec<Key> {
        let Some(backends) = &mut self.backends else {
            return Vec::new();
        };
        let remedies = &backends.remedies;
        let find = |name: &str| {
            let remedy = remedies.get(&Key::cluster_scoped(name));
            remedy.map(|remedy| &**remedy)
        };
        let concerned = backends.decided.look(now, find);
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
