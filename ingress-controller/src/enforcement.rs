//! How far statuses and load balancers follow when a cluster is blocked or released, and how long that takes.
//!
//! A change arrives when the watch shows it, and is due in each place that follows: the status of an ingress, and each of its
//! load balancers. Times are measured on the clock of this process alone, since those of several machines differ.

use std::collections::{BTreeMap, BTreeSet};
use std::iter;
use std::time::Duration;

use karmada_runtime::metrics::Registry;
use objects::Key;
use parking_lot::Mutex;
use prometheus_client::metrics::histogram::{Histogram, exponential_buckets};
use prometheus_client::registry::Unit;
use tokio::time::Instant;

use crate::events::Place;
use crate::reason::Reason;

/// The changes that are not enforced yet, and the delays of those that are.
#[derive(Debug)]
pub(crate) struct Enforcement {
    places: Vec<Place>,
    /// When the first change arrived that is not enforced in a place.
    due: Mutex<BTreeMap<(Place, Key), Instant>>,
    lagging: Mutex<BTreeMap<(Place, Key), Lag>>,
    status_delay: Histogram,
    load_balancer_delay: Histogram,
}

/// A place that may differ from the status.
#[derive(Debug)]
struct Lag {
    since: Instant,
    reasons: BTreeSet<Reason>,
}

/// Returns a histogram of 1 ms to 9 minutes: a failure is tried again.
fn delays() -> Histogram {
    Histogram::new(exponential_buckets(0.001, 2.0, 20))
}

impl Enforcement {
    /// Creates one for as many load balancers.
    pub(crate) fn new(load_balancers: usize) -> Self {
        let load_balancers = (0..load_balancers).map(Place::LoadBalancer);
        Self {
            places: iter::once(Place::Ingress).chain(load_balancers).collect(),
            due: Mutex::default(),
            lagging: Mutex::default(),
            status_delay: delays(),
            load_balancer_delay: delays(),
        }
    }

    /// Registers the delays.
    pub(crate) fn register(&self, registry: &mut Registry) {
        for (name, help, delay) in [
            (
                "status_delay",
                "Time from receiving a change of a cluster's actions to the end of the write that shows it in the status of an ingress",
                &self.status_delay,
            ),
            (
                "load_balancer_delay",
                "Time from receiving a change of a cluster's actions until a load balancer has acknowledged it for an ingress",
                &self.load_balancer_delay,
            ),
        ] {
            registry.register_with_unit(name, help, Unit::Seconds, delay.clone());
        }
    }

    /// Takes in that a change which concerns these ingresses has arrived.
    pub(crate) fn arrive(&self, ingresses: &BTreeSet<Key>) {
        let (mut due, now) = (self.due.lock(), Instant::now());
        for key in ingresses {
            for place in &self.places {
                due.entry((*place, key.clone())).or_insert(now);
            }
        }
    }

    /// Takes the change that is due for the ingress `key`, if there is one, and returns when it arrived. One that arrives from
    /// now on is due on its own.
    pub(crate) fn take(&self, place: Place, key: &Key) -> Option<Instant> {
        self.due.lock().remove(&(place, key.clone()))
    }

    /// Puts back a change that was taken and is not enforced.
    pub(crate) fn restore(&self, place: Place, key: &Key, arrived: Option<Instant>) {
        if let Some(arrived) = arrived {
            self.due.lock().insert((place, key.clone()), arrived);
        }
    }

    /// Takes in that the status shows a change that had `arrived`.
    pub(crate) fn shown(&self, arrived: Option<Instant>) {
        observe(&self.status_delay, arrived);
    }

    /// Takes in the outcome in a load balancer: the `reasons` for which it may send requests otherwise than the status says. Without
    /// any it has acknowledged the change that had `arrived`. Returns how long it has lagged.
    pub(crate) fn followed(
        &self,
        place: usize,
        key: &Key,
        arrived: Option<Instant>,
        reasons: BTreeSet<Reason>,
    ) -> Duration {
        let of = (Place::LoadBalancer(place), key.clone());
        let mut lagging = self.lagging.lock();
        let before = lagging.remove(&of);
        if reasons.is_empty() {
            observe(&self.load_balancer_delay, arrived);
            return Duration::ZERO;
        }
        let since = before.map_or_else(Instant::now, |lag| lag.since);
        lagging.insert(of, Lag { since, reasons });
        self.restore(Place::LoadBalancer(place), key, arrived);
        since.elapsed()
    }

    /// Returns the number of load balancers of ingresses that lag for each reason.
    pub(crate) fn lagging(&self) -> BTreeMap<Reason, usize> {
        let mut counts: BTreeMap<Reason, usize> = BTreeMap::new();
        let lagging = self.lagging.lock();
        for reason in lagging.values().flat_map(|lag| &lag.reasons) {
            *counts.entry(*reason).or_default() += 1;
        }
        counts
    }

    /// Forgets the ingress `key`, which the load balancer has released.
    pub(crate) fn forget(&self, place: usize, key: &Key) {
        self.lagging
            .lock()
            .remove(&(Place::LoadBalancer(place), key.clone()));
    }

    /// Forgets every ingress in a place: another leader has followed the changes meanwhile.
    pub(crate) fn clear(&self, place: Place) {
        self.due.lock().retain(|(of, _), _| *of != place);
        self.lagging.lock().retain(|(of, _), _| *of != place);
    }
}

fn observe(delay: &Histogram, arrived: Option<Instant>) {
    if let Some(arrived) = arrived {
        delay.observe(arrived.elapsed().as_secs_f64());
    }
}

#[cfg(test)]
mod tests {
    use prometheus_client::encoding::text;
    use tokio::time::advance;

    use super::*;
    use crate::fixtures::key;

    impl Enforcement {
        /// Returns the number of delays of the status and of load balancers, and the sum of the latter in seconds, as they
        /// are scraped.
        pub(crate) fn delays(&self) -> [String; 3] {
            let mut registry = Registry::default();
            self.register(&mut registry);
            let mut encoded = String::new();
            text::encode(&mut encoded, &registry).unwrap();
            [
                "status_delay_seconds_count ",
                "load_balancer_delay_seconds_count ",
                "load_balancer_delay_seconds_sum ",
            ]
            .map(|name| {
                let mut lines = encoded.lines();
                let value = lines.find_map(|line| line.strip_prefix(name));
                value.unwrap().to_owned()
            })
        }
    }

    /// A change that cannot be enforced at once is measured from its arrival, each place for itself and once.
    #[tokio::test(start_paused = true)]
    async fn delay_begins_with_arrival() {
        let (enforcement, i) = (Enforcement::new(2), key("i"));
        enforcement.arrive(&[i.clone()].into());
        advance(Duration::from_secs(1)).await;
        enforcement.arrive(&[i.clone()].into());
        enforcement.shown(enforcement.take(Place::Ingress, &i));
        let lag = [Reason::GatewayRefused];
        let arrived = enforcement.take(Place::LoadBalancer(0), &i);
        let lasted = enforcement.followed(0, &i, arrived, lag.into());
        assert_eq!(lasted, Duration::ZERO);
        advance(Duration::from_secs(2)).await;
        let arrived = enforcement.take(Place::LoadBalancer(0), &i);
        let lasted = enforcement.followed(0, &i, arrived, lag.into());
        assert_eq!(lasted, Duration::from_secs(2));
        assert_eq!(enforcement.lagging(), [(lag[0], 1)].into());
        assert_eq!(enforcement.delays(), ["1", "0", "0.0"]);

        advance(Duration::from_secs(1)).await;
        for _ in 0..2 {
            let arrived = enforcement.take(Place::LoadBalancer(0), &i);
            enforcement.followed(0, &i, arrived, BTreeSet::new());
        }
        assert_eq!(enforcement.lagging(), BTreeMap::new());
        assert_eq!(enforcement.delays(), ["1", "1", "4.0"]);
        assert!(enforcement.take(Place::LoadBalancer(1), &i).is_some());
    }

    /// A change that arrives while an earlier one is enforced stays due.
    #[tokio::test(start_paused = true)]
    async fn later_change_stays_due() {
        let (enforcement, i) = (Enforcement::new(1), key("i"));
        enforcement.arrive(&[i.clone()].into());
        let first = enforcement.take(Place::LoadBalancer(0), &i);
        advance(Duration::from_secs(1)).await;
        enforcement.arrive(&[i.clone()].into());
        enforcement.followed(0, &i, first, BTreeSet::new());
        assert_eq!(enforcement.delays(), ["0", "1", "1.0"]);
        // One that failed is measured from its own arrival.
        let second = enforcement.take(Place::LoadBalancer(0), &i);
        enforcement.arrive(&[i.clone()].into());
        enforcement.restore(Place::LoadBalancer(0), &i, first);
        assert!(second > first);
        assert_eq!(enforcement.take(Place::LoadBalancer(0), &i), first);
    }

    /// A new leader knows nothing of the changes before its term.
    #[tokio::test(start_paused = true)]
    async fn new_term_forgets_changes() {
        let (enforcement, i) = (Enforcement::new(1), key("i"));
        enforcement.arrive(&[i.clone()].into());
        enforcement.followed(0, &i, None, [Reason::LoadBalancerSilent].into());
        enforcement.clear(Place::LoadBalancer(0));
        assert_eq!(enforcement.take(Place::LoadBalancer(0), &i), None);
        assert!(enforcement.take(Place::Ingress, &i).is_some());
        assert_eq!(enforcement.lagging(), BTreeMap::new());
    }
}
