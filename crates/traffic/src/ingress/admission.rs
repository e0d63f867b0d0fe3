use std::collections::BTreeSet;

use karmada_api::{Cluster, ServiceLocation};

use super::facts::ClusterFacts;
use crate::cached::Cached;
use crate::remedy::blocks;

/// A member cluster's claim to the traffic of one backend Service.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Admission {
    /// The load balancer sends requests there.
    Admitted,
    /// A Remedy blocks the cluster's traffic.
    Blocked,
    /// A Remedy blocks the cluster's traffic because of a condition, but no other cluster serves the
    /// Service: the load balancer sends requests there all the same.
    Readmitted,
    /// The Cluster object is being deleted.
    ClusterDeleting,
    /// No Cluster object of that name exists.
    ClusterMissing,
    /// The Service is not located in the cluster.
    NotLocated,
    /// Another Service of a host takes no requests there, and the Services of a host are served together.
    Incomplete,
}

impl Admission {
    /// Returns `true` if the load balancer sends requests there.
    pub fn is_served(self) -> bool {
        matches!(self, Self::Admitted | Self::Readmitted)
    }

    /// Returns `true` if the cluster must get no request for any Service.
    pub fn is_excluded(self) -> bool {
        matches!(
            self,
            Self::Blocked | Self::ClusterDeleting | Self::ClusterMissing
        )
    }

    /// Returns the admission of a cluster that has a Cluster object, wherever the Service is
    /// located. A block outlasts the start of the cluster's deletion.
    pub fn of(cluster: &Cluster) -> Self {
        // Blocked before deleting: only a block is shown in `trafficBlockClusters`.
        if blocks(cluster.remedy_actions()) {
            Self::Blocked
        } else if cluster.metadata.deletion_timestamp.is_some() {
            Self::ClusterDeleting
        } else {
            Self::Admitted
        }
    }
}

/// Returns the admission of the cluster `name`. An unreadable one remains blocked if it is in
/// `previous`.
pub fn admission_of(name: &str, previous: &[String], facts: &impl ClusterFacts) -> Admission {
    match facts.cluster(name) {
        Cached::Present(cluster) => Admission::of(cluster),
        Cached::Absent => Admission::ClusterMissing,
        Cached::Unread if previous.iter().any(|blocked| blocked == name) => Admission::Blocked,
        Cached::Unread => Admission::Admitted,
    }
}

/// Returns the blocked clusters of `locations`, sorted and unique.
pub(super) fn blocked_clusters(
    locations: &[ServiceLocation],
    previous: &[String],
    facts: &impl ClusterFacts,
) -> Vec<String> {
    let clusters: BTreeSet<&String> = locations
        .iter()
        .flat_map(|location| location.clusters.iter().flatten())
        .collect();
    clusters
        .into_iter()
        .filter(|name| admission_of(name, previous, facts) == Admission::Blocked)
        .cloned()
        .collect()
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::super::fixtures::{Fixture, blocked, cluster, deleting, location};
    use super::*;

    fn fixture() -> Fixture {
        Fixture::default()
            .with_cluster(cluster("open"))
            .with_cluster(blocked("b1"))
            .with_cluster(blocked("b2"))
            .with_cluster(deleting(cluster("leaving")))
            .with_cluster(deleting(blocked("b3")))
    }

    /// The object of a cluster determines its admission.
    #[test]
    fn cluster_object_determines_admission() {
        let mut other_action = cluster("x");
        other_action.status = Some(karmada_api::ClusterStatus {
            remedy_actions: Some(vec!["Cordon".into()]),
            ..karmada_api::ClusterStatus::default()
        });
        assert_eq!(Admission::of(&other_action), Admission::Admitted);
        assert_eq!(Admission::of(&Cluster::default()), Admission::Admitted);
        for (name, expected) in [
            ("open", Admission::Admitted),
            ("b1", Admission::Blocked),
            ("leaving", Admission::ClusterDeleting),
            ("b3", Admission::Blocked),
            ("nowhere", Admission::ClusterMissing),
        ] {
            assert_eq!(admission_of(name, &[], &fixture()), expected, "{name}");
        }
    }

    /// Only located clusters that exist and have the action are blocked.
    #[test]
    fn only_located_clusters_are_blocked() {
        let locations = [
            location("a", &["b2", "open", "gone"]),
            location("b", &["b1", "b2"]),
            location("c", &[]),
        ];
        let previous = ["gone".to_owned(), "open".to_owned()];
        let found = blocked_clusters(&locations, &previous, &fixture());
        assert_eq!(found, ["b1", "b2"]);
    }

    /// An unreadable cluster keeps its admission.
    #[test]
    fn unreadable_cluster_keeps_admission() {
        let fixture = Fixture {
            unread_clusters: ["u1".to_owned(), "u2".to_owned()].into(),
            ..Fixture::default()
        };
        let locations = [location("a", &["u1", "u2"])];
        let previous = ["u2".to_owned()];
        assert_eq!(blocked_clusters(&locations, &previous, &fixture), ["u2"]);
    }

    proptest! {
        /// The order does not matter and deciding twice changes nothing.
        #[test]
        fn order_does_not_matter(
            clusters in proptest::collection::vec("(open|b1|b2|b3|leaving|gone|u)", 0..8)
        ) {
            let mut fixture = fixture();
            fixture.unread_clusters.insert("u".to_owned());
            let forward: Vec<&str> = clusters.iter().map(String::as_str).collect();
            let backward: Vec<&str> = forward.iter().rev().copied().collect();
            let previous = ["u".to_owned()];
            let one = blocked_clusters(&[location("a", &forward)], &previous, &fixture);
            let other = blocked_clusters(&[location("a", &backward)], &previous, &fixture);
            prop_assert_eq!(&one, &other);
            prop_assert!(one.is_sorted_by(|a, b| a < b));
            prop_assert_eq!(&one, &blocked_clusters(&[location("a", &forward)], &one, &fixture));
        }
    }
}
