//! The time for which a Service without endpoints is no news: Karmada is still collecting those of a new
//! one, or the nodes of a new cluster are still to be published.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use objects::Key;
use parking_lot::Mutex;
use tokio::time::Instant;
use traffic::ingress::{NodeObstacle, Problem};

/// The time that Karmada has to collect endpoints.
pub(crate) const GRACE: Duration = Duration::from_secs(15);

/// The Services of each ingress that have no endpoints, and since when.
#[derive(Debug, Default)]
pub(crate) struct Grace {
    since: Mutex<BTreeMap<Key, BTreeMap<String, Instant>>>,
}

impl Grace {
    /// Splits off the `problems` of the ingress `key` that have not lasted. Returns the others, and the
    /// time at which the next of those split off will have lasted.
    pub(crate) fn lasting(
        &self,
        key: &Key,
        mut problems: BTreeSet<Problem>,
        now: Instant,
    ) -> (BTreeSet<Problem>, Option<Instant>) {
        let mut all = self.since.lock();
        let before = all.remove(key).unwrap_or_default();
        let (mut since, mut next) = (BTreeMap::new(), None::<Instant>);
        problems.retain(|problem| {
            let (Problem::NoEndpoints { service, .. }
            | Problem::Nodes {
                service,
                obstacle: NodeObstacle::ExternalTrafficPolicyLocal | NodeObstacle::Unpublished,
                ..
            }) = problem
            else {
                return true;
            };
            let began = before.get(service).copied().unwrap_or(now);
            since.insert(service.clone(), began);
            let due = began + GRACE;
            if due > now {
                next = Some(next.map_or(due, |next| next.min(due)));
            }
            due <= now
        });
        if !since.is_empty() {
            all.insert(key.clone(), since);
        }
        (problems, next)
    }

    /// Forgets every ingress: another leader has decided meanwhile.
    pub(crate) fn clear(&self) {
        self.since.lock().clear();
    }

    /// Forgets the ingress `key`.
    pub(crate) fn forget(&self, key: &Key) {
        self.since.lock().remove(key);
    }
}

#[cfg(test)]
mod tests {
    use traffic::ingress::BackendAddresses;

    use super::*;
    use crate::fixtures::key;

    fn without_endpoints(service: &str) -> Problem {
        Problem::NoEndpoints {
            service: service.to_owned(),
            clusters: Vec::new(),
            addresses: BackendAddresses::Endpoints,
        }
    }

    /// A service without endpoints is news once that has lasted and anything else at once.
    #[test]
    fn missing_endpoints_become_news() {
        let (grace, begun) = (Grace::default(), Instant::now());
        let other = Problem::NoTemplate {
            service: "t".to_owned(),
        };
        let after = |seconds, problems: &[&Problem]| {
            let now = begun + Duration::from_secs(seconds);
            let problems = problems.iter().copied().cloned().collect();
            let (news, next) = grace.lasting(&key("i"), problems, now);
            let news: Vec<Problem> = news.into_iter().collect();
            (news, next.map(|next| (next - begun).as_secs()))
        };
        let (s, t) = (without_endpoints("s"), without_endpoints("t"));
        assert_eq!(after(0, &[&s, &other]), (vec![other.clone()], Some(15)));
        assert_eq!(after(9, &[&s, &t]), (vec![], Some(15)));
        assert_eq!(after(15, &[&s, &t]), (vec![s.clone()], Some(24)));
        // The endpoints of s came and went.
        assert_eq!(after(20, &[&t]), (vec![], Some(24)));
        assert_eq!(after(24, &[&s, &t]), (vec![t.clone()], Some(39)));
        grace.forget(&key("i"));
        let unpublished = Problem::Nodes {
            service: "u".to_owned(),
            obstacle: NodeObstacle::Unpublished,
            clusters: Vec::new(),
        };
        assert_eq!(after(50, &[&t, &unpublished]), (vec![], Some(65)));
    }
}
