//! Failing open: what serves a backend Service when every one of its clusters is blocked or has no ready
//! endpoints.

use std::collections::BTreeSet;

use super::admission::Admission;
use super::desired::{Backend, ClusterEndpoints, Desired, Held, excluded};
use super::facts::{Cached, Facts};
use super::when_all_blocked::WhenAllBlocked;

impl Desired {
    /// Readmits, for each backend that no cluster serves, the blocked clusters that may serve it.
    pub(super) fn readmit(&mut self, facts: &impl Facts) {
        if self.when_all_blocked == WhenAllBlocked::FailClosed {
            return;
        }
        let is_unread = !self.unread_slices.is_empty();
        for backend in &mut self.backends {
            for cluster in backend.barred(is_unread) {
                if is_readmissible(&cluster, facts) {
                    backend.readmit(&cluster);
                }
            }
        }
    }
}

/// Returns those of the clusters that a load balancer holds endpoints of that must lose them, although
/// its ingress cannot be read. Failing open works on what is held, as no more is known of the Services.
pub(super) fn cut(held: Held, when_all_blocked: WhenAllBlocked, facts: &impl Facts) -> Held {
    let cut = held.into_iter().filter_map(|(service, clusters)| {
        let mut cut = excluded(clusters.clone(), &[], facts);
        if when_all_blocked == WhenAllBlocked::FailOpen && cut == clusters {
            cut.retain(|cluster| !is_readmissible(cluster, facts));
        }
        (!cut.is_empty()).then_some((service, cut))
    });
    cut.collect()
}

/// Returns `true` if `cluster` may serve although it is blocked: a condition did that, and no person.
fn is_readmissible(cluster: &str, facts: &impl Facts) -> bool {
    // An unreadable cluster may be about to leave, and one that leaves is admitted nowhere.
    let stays = match facts.cluster(cluster) {
        Cached::Present(object) => {
            Admission::of(object) == Admission::Blocked
                && object.metadata.deletion_timestamp.is_none()
        }
        Cached::Absent | Cached::Unread => false,
    };
    stays && !facts.is_decided(cluster)
}

impl ClusterEndpoints {
    /// Returns `true` if Karmada has collected an endpoint there that takes requests.
    pub fn has_ready_endpoints(&self) -> bool {
        let mut endpoints = self
            .slices
            .iter()
            .flat_map(|slice| &slice.endpoints)
            .flatten();
        endpoints.any(|endpoint| {
            let conditions = endpoint.conditions.as_ref();
            // Unknown is to be taken for ready (Kubernetes API reference, EndpointConditions).
            conditions.and_then(|conditions| conditions.ready) != Some(false)
        })
    }
}

impl Backend {
    /// Returns the blocked clusters that would serve this Service, while no other cluster does.
    /// `is_unread` is set if slices of the namespace cannot be read: they may have the endpoints of an
    /// admitted cluster.
    pub(super) fn barred(&self, is_unread: bool) -> BTreeSet<String> {
        let is_served = self.is_served();
        let mut served = self.clusters.iter().filter(|c| c.admission.is_served());
        if is_served && (is_unread || served.any(ClusterEndpoints::has_ready_endpoints)) {
            return BTreeSet::new();
        }
        let blocked = self.clusters.iter().filter(|cluster| {
            cluster.admission == Admission::Blocked
                && cluster.is_located
                // Beside an admitted cluster, one without endpoints would change nothing.
                && (!is_served || cluster.has_ready_endpoints())
        });
        blocked.map(|cluster| cluster.cluster.clone()).collect()
    }

    fn readmit(&mut self, name: &str) {
        for cluster in self.clusters.iter_mut().filter(|c| c.cluster == name) {
            cluster.admission = Admission::Readmitted;
        }
    }

    /// Returns `true` if a cluster may serve this Service.
    pub fn is_served(&self) -> bool {
        self.clusters.iter().any(|c| c.admission.is_served())
    }

    /// Returns the names of the clusters that run this Service and have this admission.
    pub(super) fn clusters_with(&self, admission: Admission) -> Vec<String> {
        let clusters = self.clusters.iter();
        let clusters = clusters.filter(|c| c.is_located && c.admission == admission);
        clusters.map(|c| c.cluster.clone()).collect()
    }
}

#[cfg(test)]
mod tests {
    use objects::Key;
    use proptest::prelude::*;

    use super::super::fixtures::{Fixture, binding, blocked, cluster, deleting, ingress, slice};
    use super::super::{Settings, desired};
    use super::*;

    fn settings(when_all_blocked: WhenAllBlocked) -> Settings {
        Settings {
            controller: "karmada-rs.io/ingress-controller".parse().unwrap(),
            when_all_blocked,
        }
    }

    fn admissions(fixture: &Fixture, when: WhenAllBlocked) -> Vec<(String, Admission)> {
        let ingress = ingress("i", &["s"], None);
        let desired = desired(&Key::new("ns", "i"), &ingress, fixture, &settings(when));
        let clusters = desired.backends[0].clusters.iter();
        clusters.map(|c| (c.cluster.clone(), c.admission)).collect()
    }

    #[track_caller]
    fn assert_open(fixture: &Fixture, expected: &[(&str, Admission)]) {
        let expected: Vec<_> = expected.iter().map(|&(c, a)| (c.to_owned(), a)).collect();
        assert_eq!(admissions(fixture, WhenAllBlocked::FailOpen), expected);
    }

    fn fixture(clusters: &[&str]) -> Fixture {
        Fixture::default().with_binding("s", binding("s", clusters))
    }

    #[test]
    fn when_all_clusters_of_a_service_are_blocked_those_that_a_condition_blocked_are_readmitted() {
        let fixture = fixture(&["m1", "m2"])
            .with_cluster(blocked("m1"))
            .with_cluster(blocked("m2"));
        let readmitted = Admission::Readmitted;
        assert_open(&fixture, &[("m1", readmitted), ("m2", readmitted)]);
        let closed = admissions(&fixture, WhenAllBlocked::FailClosed);
        assert!(closed.iter().all(|(_, a)| *a == Admission::Blocked));
    }

    #[test]
    fn while_one_cluster_serves_the_blocked_ones_stay_blocked() {
        let fixture = fixture(&["m1", "m2"])
            .with_cluster(blocked("m1"))
            .with_cluster(cluster("m2"));
        let expected = [("m1", Admission::Blocked), ("m2", Admission::Admitted)];
        assert_open(&fixture, &expected);
    }

    #[test]
    fn where_no_admitted_cluster_has_ready_endpoints_a_blocked_one_that_has_is_readmitted() {
        let clusters = || {
            fixture(&["m1", "m2", "m3"])
                .with_cluster(cluster("m1"))
                .with_cluster(blocked("m2"))
                .with_cluster(blocked("m3"))
        };
        let expected = |m2| {
            [
                ("m1", Admission::Admitted),
                ("m2", m2),
                ("m3", Admission::Blocked),
            ]
        };
        let in_m2 = slice("s", "m2", "b", &["10.0.0.2"]);
        let mut unready = slice("s", "m1", "a", &["10.0.0.1"]);
        for endpoint in unready.endpoints.iter_mut().flatten() {
            endpoint.conditions.as_mut().unwrap().ready = Some(false);
        }
        for in_m1 in [None, Some(slice("s", "m1", "a", &[])), Some(unready)] {
            let slices: Vec<_> = in_m1.into_iter().chain([in_m2.clone()]).collect();
            let fixture = clusters().with_slices(&slices);
            assert_open(&fixture, &expected(Admission::Readmitted));
            let closed = admissions(&fixture, WhenAllBlocked::FailClosed);
            assert_eq!(closed[1].1, Admission::Blocked);
            let mut unread = fixture.clone();
            unread.unread_slices = ["unread".to_owned()].into();
            assert_open(&unread, &expected(Admission::Blocked));
            let mut decided = fixture;
            decided.decided = ["m2".to_owned()].into();
            assert_open(&decided, &expected(Admission::Blocked));
        }
        let served = clusters().with_slices(&[slice("s", "m1", "a", &["10.0.0.1"]), in_m2]);
        assert_open(&served, &expected(Admission::Blocked));
    }

    #[test]
    fn of_an_unreadable_ingress_excluded_clusters_are_cut_unless_the_brake_keeps_them() {
        let mut fixture = Fixture::default()
            .with_cluster(cluster("open"))
            .with_cluster(blocked("b1"))
            .with_cluster(blocked("b2"))
            .with_cluster(blocked("decided"))
            .with_cluster(deleting(blocked("leaving")));
        fixture.decided = ["decided".to_owned()].into();
        fixture.unread_clusters = ["unread".to_owned()].into();
        let (open, closed) = (WhenAllBlocked::FailOpen, WhenAllBlocked::FailClosed);
        let set = |names: &[&str]| -> BTreeSet<String> {
            names.iter().map(|&name| name.to_owned()).collect()
        };
        for (held, when, expected) in [
            (&["open", "b1", "gone"][..], open, &["b1", "gone"][..]),
            (&["b1", "b2"], open, &[]),
            (&["b1", "b2"], closed, &["b1", "b2"]),
            (
                &["b1", "decided", "leaving", "gone"],
                open,
                &["decided", "leaving", "gone"],
            ),
            (&["unread", "b1"], open, &["b1"]),
            (&["open"], closed, &[]),
        ] {
            let held = Held::from([
                ("s".to_owned(), set(held)),
                ("t".to_owned(), set(&["open"])),
            ]);
            let found = cut(held, when, &fixture);
            assert_eq!(found.get("s").cloned().unwrap_or_default(), set(expected));
            assert_eq!(found.len(), usize::from(!expected.is_empty()));
        }
    }

    #[test]
    fn a_cluster_blocked_by_a_person_is_never_readmitted() {
        let mut fixture = fixture(&["m1", "m2"])
            .with_cluster(blocked("m1"))
            .with_cluster(blocked("m2"));
        fixture.decided = ["m1".to_owned()].into();
        let expected = [("m1", Admission::Blocked), ("m2", Admission::Readmitted)];
        assert_open(&fixture, &expected);
    }

    #[test]
    fn a_cluster_that_leaves_or_is_unknown_neither_serves_nor_is_readmitted() {
        let mut fixture = fixture(&["gone", "leaving", "leaving-blocked", "m1", "unread"])
            .with_cluster(deleting(cluster("leaving")))
            .with_cluster(deleting(blocked("leaving-blocked")))
            .with_cluster(blocked("m1"));
        let expected = [
            ("gone", Admission::ClusterMissing),
            ("leaving", Admission::ClusterDeleting),
            ("leaving-blocked", Admission::Blocked),
            ("m1", Admission::Readmitted),
            ("unread", Admission::ClusterMissing),
        ];
        assert_open(&fixture, &expected);
        // Nothing is known of it but that it exists: it serves as it did.
        fixture.unread_clusters = ["unread".to_owned()].into();
        let found = admissions(&fixture, WhenAllBlocked::FailOpen);
        assert_eq!(found[3], ("m1".to_owned(), Admission::Blocked));
        assert_eq!(found[4], ("unread".to_owned(), Admission::Admitted));
    }

    proptest! {
        #[test]
        fn a_blocked_cluster_serves_only_where_no_other_does_and_no_person_blocked_it(
            states in proptest::collection::vec(0..4_u8, 1..5),
            decided in proptest::collection::btree_set("m[0-4]", 0..3),
        ) {
            let names: Vec<String> = (0..states.len()).map(|n| format!("m{n}")).collect();
            let located: Vec<&str> = names.iter().map(String::as_str).collect();
            let mut fixture = fixture(&located);
            fixture.decided.clone_from(&decided);
            for (state, name) in states.iter().zip(&names) {
                fixture = match state {
                    0 => fixture.with_cluster(cluster(name)),
                    1 => fixture.with_cluster(blocked(name)),
                    2 => fixture.with_cluster(deleting(blocked(name))),
                    _ => fixture,
                };
            }
            let found = admissions(&fixture, WhenAllBlocked::FailOpen);
            let open = found.iter().any(|(_, a)| *a == Admission::Admitted);
            for ((name, admission), state) in found.iter().zip(states) {
                let readmitted = !open && state == 1 && !decided.contains(name);
                prop_assert_eq!(*admission == Admission::Readmitted, readmitted);
                prop_assert_eq!(admission.is_served(), state == 0 || readmitted);
            }
        }
    }
}
