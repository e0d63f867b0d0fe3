//! The blocks that a person decided, which failing open never lifts.

use jiff::Timestamp;
use karmada_api::Remedy;

use crate::remedy::{Decision, Expiries, Mode, RemedyIndex, Scope, blocks};

/// The Remedies by which people have decided to block clusters, and the moments at which Remedies expire.
#[derive(Clone, Debug, Default)]
pub struct DecidedBlocks {
    scopes: RemedyIndex,
    expiries: Expiries,
}

impl DecidedBlocks {
    /// Takes in a change of the Remedy `name`, and returns the clusters for which another decision counts now.
    pub fn change(&mut self, name: &str, old: Option<&Remedy>, new: Option<&Remedy>) -> Vec<Scope> {
        self.expiries.replace(name, new);
        let looked = self.expiries.looked();
        let [before, now] = [old, new].map(|remedy| decided_scope(remedy?, looked));
        if before == now {
            return Vec::new();
        }
        self.scopes.replace(name, now.clone());
        before.into_iter().chain(now).collect()
    }

    /// Takes in a look at the clock, and returns the clusters of the Remedies that have expired since. `find` returns
    /// the Remedy of a name.
    pub fn look<'a>(
        &mut self,
        now: Timestamp,
        find: impl Fn(&str) -> Option<&'a Remedy>,
    ) -> Vec<Scope> {
        let mut concerned = Vec::new();
        for name in self.expiries.look(now) {
            if let Some(remedy) = find(&name) {
                concerned.push(Scope::of(remedy));
                self.scopes.replace(&name, decided_scope(remedy, now));
            }
        }
        concerned
    }

    /// Returns the moment at which the next Remedy expires.
    pub fn next_expiry(&self) -> Option<Timestamp> {
        self.expiries.next()
    }

    /// Returns `true` if a person has decided to block the traffic of `cluster`.
    pub fn cover(&self, cluster: &str) -> bool {
        self.scopes.covering(cluster).next().is_some()
    }
}

/// Returns the clusters whose traffic `remedy` blocks at `now` by the decision of a person, that is
/// without matches. `None` if it blocks none that way.
pub fn decided_scope(remedy: &Remedy, now: Timestamp) -> Option<Scope> {
    let decided = remedy.metadata.deletion_timestamp.is_none()
        && matches!(Mode::of(remedy, now), Mode::Enforce | Mode::Hold)
        && Decision::of(remedy) == Decision::AtOnce
        && remedy.spec.actions.as_deref().is_some_and(blocks);
    decided.then(|| Scope::of(remedy))
}

#[cfg(test)]
mod tests {
    use karmada_api::remedy::{EXPIRES_AT, OBSERVE_ONLY, WHEN};
    use karmada_api::{ClusterAffinity, DecisionMatch, RemedySpec, TRAFFIC_CONTROL};

    use super::super::fixtures::some_time;
    use super::*;

    fn remedy(matches: Option<Vec<DecisionMatch>>, actions: &[&str]) -> Remedy {
        let spec = RemedySpec {
            cluster_affinity: Some(ClusterAffinity {
                cluster_names: Some(vec!["m1".to_owned()]),
            }),
            decision_matches: matches,
            actions: Some(actions.iter().map(|&a| a.to_owned()).collect()),
        };
        Remedy::new("r", spec)
    }

    /// Only a remedy without matches that blocks traffic is a decision.
    #[test]
    fn only_unconditional_remedy_decides() {
        let decided = remedy(None, &["Cordon", TRAFFIC_CONTROL]);
        let scope = decided_scope(&decided, Timestamp::UNIX_EPOCH).unwrap();
        assert!(scope.covers("m1") && !scope.covers("m2"));
        let mut observing = decided.clone();
        let annotation = (OBSERVE_ONLY.to_owned(), "true".to_owned());
        observing.metadata.annotations = Some([annotation].into());
        let mut expired = decided.clone();
        let annotation = (EXPIRES_AT.to_owned(), "1970-01-01T00:00:00Z".to_owned());
        expired.metadata.annotations = Some([annotation].into());
        let mut unreadable = decided.clone();
        let annotation = (WHEN.to_owned(), "Ready!=True".to_owned());
        unreadable.metadata.annotations = Some([annotation].into());
        let mut leaving = decided;
        leaving.metadata.deletion_timestamp = Some(some_time());
        let conditional = Some(vec![DecisionMatch::default()]);
        for other in [
            leaving,
            observing,
            expired,
            unreadable,
            remedy(conditional, &[TRAFFIC_CONTROL]),
            remedy(Some(Vec::new()), &[TRAFFIC_CONTROL]),
            remedy(None, &["Cordon"]),
        ] {
            assert_eq!(decided_scope(&other, Timestamp::UNIX_EPOCH), None);
        }
    }
}
