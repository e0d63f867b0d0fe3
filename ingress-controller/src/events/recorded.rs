//! The obstacles that were recorded last: each is told when it arises, and not with every reconcile.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use objects::Key;
use tokio::time::Instant;

use crate::provider::Obstacle;
use crate::reason::Reason;

/// The time within which an obstacle that others word anew is no news.
pub(super) const REWORDED: Duration = Duration::from_mins(5);
/// The most obstacles of an ingress in one place that are recorded: a member may report any number of addresses.
pub(super) const MOST: usize = 100;

/// The place where obstacles are met.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Place {
    /// The `HTTPRoute`, in a version that is not served.
    Refused,
    /// The ingress as it is served.
    Ingress,
    /// A load balancer, by its own place among all.
    LoadBalancer(usize),
}

/// An obstacle that was recorded.
#[derive(Debug)]
pub(super) struct Recorded {
    obstacle: Obstacle,
    at: Instant,
}

/// The obstacles of each ingress that were last recorded, by where they are met.
#[derive(Debug, Default)]
pub(super) struct RecordedObstacles(BTreeMap<Key, BTreeMap<Place, Vec<Recorded>>>);

/// The obstacle to the export of each Service, and the ingresses on which it is recorded.
pub(super) type RecordedExports = BTreeMap<Key, (Recorded, BTreeSet<Key>)>;

impl Recorded {
    pub(super) fn now(obstacle: Obstacle) -> Self {
        Self {
            obstacle,
            at: Instant::now(),
        }
    }

    /// Returns `true` if `obstacle` is the same, or the same in other words. Others put the time or an address into theirs, which
    /// differ with each attempt.
    pub(super) fn is(&self, obstacle: &Obstacle) -> bool {
        let Obstacle { reason, object, .. } = &self.obstacle;
        let is_reworded = (reason, object) == (&obstacle.reason, &obstacle.object)
            && is_worded_by_others(*reason)
            && self.at.elapsed() < REWORDED;
        self.obstacle == *obstacle || is_reworded
    }
}

fn is_worded_by_others(reason: Reason) -> bool {
    matches!(
        reason,
        Reason::GatewayRefused
            | Reason::RouteNotAccepted
            | Reason::DnsRecordNotServed
            | Reason::ExportRefused
    )
}

impl RecordedObstacles {
    /// Takes in all obstacles of an ingress in one place, and returns those that are news.
    pub(super) fn replace(
        &mut self,
        key: &Key,
        place: Place,
        current: &BTreeSet<Obstacle>,
    ) -> Vec<Obstacle> {
        let mut places = self.0.remove(key).unwrap_or_default();
        let before = places.remove(&place).unwrap_or_default();
        let (mut known, mut gone): (Vec<_>, Vec<_>) = before
            .into_iter()
            .partition(|one| current.contains(&one.obstacle));
        let mut news = Vec::new();
        for obstacle in current.iter().take(MOST) {
            if known.iter().any(|one| one.obstacle == *obstacle) {
                continue;
            }
            if let Some(same) = gone.iter().position(|one| one.is(obstacle)) {
                known.push(gone.swap_remove(same));
            } else {
                known.push(Recorded::now(obstacle.clone()));
                news.push(obstacle.clone());
            }
        }
        if !known.is_empty() {
            places.insert(place, known);
        }
        if !places.is_empty() {
            self.0.insert(key.clone(), places);
        }
        news
    }

    /// Forgets an ingress.
    pub(super) fn forget(&mut self, key: &Key) {
        self.0.remove(key);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fixtures::key;
    use crate::provider::RelatedObject;

    fn refused(service: &str, words: &str) -> Obstacle {
        Obstacle {
            reason: Reason::GatewayRefused,
            object: RelatedObject {
                api_version: None,
                kind: "Service",
                key: key(service),
            },
            message: words.to_owned(),
        }
    }

    fn news(recorded: &mut RecordedObstacles, obstacles: &[Obstacle]) -> Vec<String> {
        let current = obstacles.iter().cloned().collect();
        let news = recorded.replace(&key("i"), Place::LoadBalancer(0), &current);
        news.into_iter().map(|one| one.message).collect()
    }

    /// An obstacle that others word anew with each attempt is recorded from time to time, and a new one at once.
    #[tokio::test(start_paused = true)]
    async fn reworded_obstacle_is_no_news() {
        let mut recorded = RecordedObstacles::default();
        let mut record = |obstacles: &[Obstacle]| news(&mut recorded, obstacles);
        assert_eq!(record(&[refused("s", "at 1")]), ["at 1"]);
        assert_eq!(record(&[refused("s", "at 2")]), [""; 0]);
        let other = refused("t", "too");
        assert_eq!(record(&[refused("s", "at 3"), other.clone()]), ["too"]);
        tokio::time::advance(REWORDED).await;
        assert_eq!(record(&[refused("s", "at 4"), other]), ["at 4"]);
        assert_eq!(record(&[]), [""; 0]);
        assert_eq!(record(&[refused("s", "at 4")]), ["at 4"]);
    }

    /// A member may report any number of addresses that cannot be used.
    #[test]
    fn obstacles_are_bounded() {
        let many = (0..10 * MOST).map(|n| refused(&format!("s{n}"), "it is"));
        let many: Vec<_> = many.collect();
        assert_eq!(news(&mut RecordedObstacles::default(), &many).len(), MOST);
    }
}
