//! The reports of several load balancers about the ingresses that all of them serve: their addresses, which the status
//! shows together, and that nothing is left, without which an ingress is not released.

use std::collections::BTreeMap;

use k8s_openapi::api::networking::v1::{IngressLoadBalancerIngress, IngressLoadBalancerStatus};
use objects::Key;
use parking_lot::Mutex;

/// The reports of all load balancers.
#[derive(Debug)]
pub(crate) struct Reports {
    /// The number of load balancers. A single one needs no memory here.
    balancers: usize,
    by_ingress: Mutex<BTreeMap<Key, Reported>>,
}

/// The reports about one ingress.
#[derive(Debug, Default)]
struct Reported {
    /// The last report of each load balancer, by its place among them.
    reports: BTreeMap<usize, Report>,
    /// The addresses that a load balancer has reported, and no longer does: those that are shown are nobody else's, even while
    /// another has not reported.
    withdrawn: Vec<IngressLoadBalancerIngress>,
}

/// The report of one load balancer.
#[derive(Debug)]
enum Report {
    Serves(IngressLoadBalancerStatus),
    HoldsNothing,
}

impl Reports {
    pub(crate) fn new(balancers: usize) -> Self {
        Self {
            balancers,
            by_ingress: Mutex::default(),
        }
    }

    /// Takes in the addresses of one load balancer for the ingress `key`, and returns those of all. Those that are
    /// `shown` stay while a load balancer has not reported: they may be its addresses.
    pub(crate) fn serves(
        &self,
        key: &Key,
        place: usize,
        addresses: IngressLoadBalancerStatus,
        shown: Option<&IngressLoadBalancerStatus>,
    ) -> IngressLoadBalancerStatus {
        if self.balancers == 1 {
            return addresses;
        }
        let mut all = self.by_ingress.lock();
        let of_ingress = all.entry(key.clone()).or_default();
        of_ingress.take(place, Report::Serves(addresses));
        let Reported { reports, withdrawn } = of_ingress;
        let shown = shown.filter(|_| reports.len() < self.balancers);
        let unreported = shown.into_iter().flat_map(entries);
        let unreported = unreported.filter(|address| !withdrawn.contains(address));
        let reported = reports.values().flat_map(Report::addresses);
        let mut union = Vec::new();
        for address in reported.chain(unreported) {
            if !union.contains(address) {
                union.push(address.clone());
            }
        }
        IngressLoadBalancerStatus {
            ingress: (!union.is_empty()).then_some(union),
        }
    }

    /// Records that a load balancer holds nothing of the ingress `key`. Returns `true` if none does.
    pub(crate) fn holds_nothing(&self, key: &Key, place: usize) -> bool {
        if self.balancers == 1 {
            return true;
        }
        let mut all = self.by_ingress.lock();
        let of_ingress = all.entry(key.clone()).or_default();
        of_ingress.take(place, Report::HoldsNothing);
        let mut nothing = of_ingress.reports.values();
        of_ingress.reports.len() == self.balancers
            && nothing.all(|r| matches!(r, Report::HoldsNothing))
    }

    /// Forgets the ingress `key`, which is gone.
    pub(crate) fn forget(&self, key: &Key) {
        self.by_ingress.lock().remove(key);
    }

    /// Forgets the reports of one load balancer: another leader has written to it meanwhile.
    pub(crate) fn clear(&self, place: usize) {
        let mut all = self.by_ingress.lock();
        for of_ingress in all.values_mut() {
            of_ingress.reports.remove(&place);
            of_ingress.withdrawn.clear();
        }
    }
}

impl Reported {
    fn take(&mut self, place: usize, report: Report) {
        let before = self.reports.insert(place, report);
        let before = before.iter().flat_map(Report::addresses).cloned();
        for address in before {
            if !self.withdrawn.contains(&address) {
                self.withdrawn.push(address);
            }
        }
    }
}

impl Report {
    fn addresses(&self) -> impl Iterator<Item = &IngressLoadBalancerIngress> {
        let serves = match self {
            Self::Serves(addresses) => Some(addresses),
            Self::HoldsNothing => None,
        };
        serves.into_iter().flat_map(entries)
    }
}

fn entries(
    status: &IngressLoadBalancerStatus,
) -> impl Iterator<Item = &IngressLoadBalancerIngress> {
    status.ingress.iter().flatten()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::fixtures::{key, object};

    fn addresses(ips: &[&str]) -> IngressLoadBalancerStatus {
        let entries: Vec<_> = ips.iter().map(|ip| json!({ "ip": ip })).collect();
        object(json!({ "ingress": entries }))
    }

    /// The status shows the addresses of all, and keeps those of one that has not reported yet.
    #[test]
    fn addresses_are_a_union() {
        let (reports, i) = (Reports::new(2), key("i"));
        let shown = addresses(&["192.0.2.9", "192.0.2.1"]);
        let union = reports.serves(&i, 1, addresses(&["192.0.2.1"]), Some(&shown));
        assert_eq!(union, addresses(&["192.0.2.1", "192.0.2.9"]));
        let both = addresses(&["192.0.2.2", "192.0.2.1"]);
        let union = reports.serves(&i, 0, both, Some(&shown));
        assert_eq!(union, addresses(&["192.0.2.2", "192.0.2.1"]));
        let union = reports.serves(&i, 0, IngressLoadBalancerStatus::default(), Some(&shown));
        assert_eq!(union, addresses(&["192.0.2.1"]));
        reports.clear(1);
        let union = reports.serves(&i, 0, addresses(&[]), Some(&union));
        assert_eq!(union, addresses(&["192.0.2.1"]));
        let alone = Reports::new(1).serves(&i, 0, addresses(&[]), Some(&shown));
        assert_eq!(alone, addresses(&[]));
    }

    /// Case T10: beside a load balancer that is dead, the others' addresses are right all the time: one that moved is not taken for the
    /// dead one's, however late the status shows it, and the dead one's stay.
    #[test]
    fn dead_balancer_keeps_only_its_own() {
        let (reports, i) = (Reports::new(2), key("i"));
        let shown = addresses(&["192.0.2.1", "192.0.2.9"]);
        let first = reports.serves(&i, 0, addresses(&["192.0.2.1"]), Some(&shown));
        assert_eq!(first, shown);
        let expected = addresses(&["192.0.2.2", "192.0.2.9"]);
        for _ in 0..2 {
            let moved = addresses(&["192.0.2.2"]);
            assert_eq!(reports.serves(&i, 0, moved, Some(&shown)), expected);
        }
        let back = addresses(&["192.0.2.1"]);
        assert_eq!(reports.serves(&i, 0, back, Some(&expected)), shown);
    }

    /// An ingress is released once no load balancer holds anything of it.
    #[test]
    fn last_deletion_releases() {
        let (reports, i) = (Reports::new(2), key("i"));
        assert!(!reports.holds_nothing(&i, 0));
        reports.serves(&i, 1, addresses(&[]), None);
        assert!(!reports.holds_nothing(&i, 0));
        assert!(reports.holds_nothing(&i, 1));
        assert!(
            reports.holds_nothing(&i, 0),
            "a release that failed is tried again"
        );
        reports.serves(&i, 0, addresses(&[]), None);
        assert!(!reports.holds_nothing(&i, 1));
        reports.holds_nothing(&i, 0);
        reports.forget(&i);
        assert!(!reports.holds_nothing(&i, 0));
        assert!(Reports::new(1).holds_nothing(&i, 0));
    }
}
