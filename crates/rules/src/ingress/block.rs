use std::collections::BTreeSet;

use karmada_api::{Cluster, ServiceLocation, TRAFFIC_CONTROL};

use super::facts::{Facts, Seen};

/// Whether a member cluster may get traffic.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Standing {
    /// It may.
    Open,
    /// A Remedy takes its traffic away.
    Blocked,
    /// Its Cluster object is being deleted.
    Leaving,
    /// It has no Cluster object.
    Unknown,
}

/// The standing of a cluster that has a Cluster object. A block stands even while it is deleted.
pub fn standing(cluster: &Cluster) -> Standing {
    let actions = cluster.remedy_actions();
    if actions.iter().any(|action| action == TRAFFIC_CONTROL) {
        Standing::Blocked
    } else if cluster.metadata.deletion_timestamp.is_some() {
        Standing::Leaving
    } else {
        Standing::Open
    }
}

/// The standing of the cluster `name`. One that cannot be read stays blocked if it is in `previous`.
pub(super) fn standing_of(name: &str, previous: &[String], facts: &impl Facts) -> Standing {
    match facts.cluster(name) {
        Seen::Here(cluster) => standing(cluster),
        Seen::Absent => Standing::Unknown,
        Seen::Unread if previous.iter().any(|blocked| blocked == name) => Standing::Blocked,
        Seen::Unread => Standing::Open,
    }
}

/// The clusters of `locations` that are blocked, sorted and unique.
pub(super) fn blocked_clusters(
    locations: &[ServiceLocation],
    previous: &[String],
    facts: &impl Facts,
) -> Vec<String> {
    let clusters: BTreeSet<&String> = locations
        .iter()
        .flat_map(|location| location.clusters.iter().flatten())
        .collect();
    clusters
        .into_iter()
        .filter(|name| standing_of(name, previous, facts) == Standing::Blocked)
        .cloned()
        .collect()
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::super::world::{World, blocked, cluster, deleting, location};
    use super::*;

    fn world() -> World {
        World::default()
            .with_cluster(cluster("open"))
            .with_cluster(blocked("b1"))
            .with_cluster(blocked("b2"))
            .with_cluster(deleting(cluster("leaving")))
            .with_cluster(deleting(blocked("b3")))
    }

    #[test]
    fn a_cluster_stands_as_its_object_says() {
        let mut other_action = cluster("x");
        other_action.status = Some(karmada_api::ClusterStatus {
            remedy_actions: Some(vec!["Cordon".into()]),
            ..karmada_api::ClusterStatus::default()
        });
        assert_eq!(standing(&other_action), Standing::Open);
        assert_eq!(standing(&Cluster::default()), Standing::Open);
        for (name, expected) in [
            ("open", Standing::Open),
            ("b1", Standing::Blocked),
            ("leaving", Standing::Leaving),
            ("b3", Standing::Blocked),
            ("nowhere", Standing::Unknown),
        ] {
            assert_eq!(standing_of(name, &[], &world()), expected, "{name}");
        }
    }

    #[test]
    fn only_located_clusters_that_exist_and_have_the_action_are_blocked() {
        let locations = [
            location("a", &["b2", "open", "gone"]),
            location("b", &["b1", "b2"]),
            location("c", &[]),
        ];
        let previous = ["gone".to_owned(), "open".to_owned()];
        let found = blocked_clusters(&locations, &previous, &world());
        assert_eq!(found, ["b1", "b2"]);
    }

    #[test]
    fn a_cluster_that_cannot_be_read_stays_as_it_was() {
        let world = World {
            unread_clusters: ["u1".to_owned(), "u2".to_owned()].into(),
            ..World::default()
        };
        let locations = [location("a", &["u1", "u2"])];
        let previous = ["u2".to_owned()];
        assert_eq!(blocked_clusters(&locations, &previous, &world), ["u2"]);
    }

    proptest! {
        #[test]
        fn the_order_does_not_matter_and_deciding_twice_changes_nothing(
            clusters in proptest::collection::vec("(open|b1|b2|b3|leaving|gone|u)", 0..8)
        ) {
            let mut world = world();
            world.unread_clusters.insert("u".to_owned());
            let forward: Vec<&str> = clusters.iter().map(String::as_str).collect();
            let backward: Vec<&str> = forward.iter().rev().copied().collect();
            let previous = ["u".to_owned()];
            let one = blocked_clusters(&[location("a", &forward)], &previous, &world);
            let other = blocked_clusters(&[location("a", &backward)], &previous, &world);
            prop_assert_eq!(&one, &other);
            prop_assert!(one.is_sorted_by(|a, b| a < b));
            prop_assert_eq!(&one, &blocked_clusters(&[location("a", &forward)], &one, &world));
        }
    }
}
