//! Where the placements of a hub bring Services, by their status: every cluster that is picked, as a binding of a Karmada names
//! those that are scheduled. The endpoints that the members tell are served.

use std::collections::BTreeSet;

use fleet_api::Placement;
use fleet_api::conditions::SCHEDULED;
use fleet_api::placement::{ClusterPlacementStatus, PlacementSpec, ResourceIdentifier};
use objects::Key;
use objects::condition::{FALSE, find};

use crate::cached::Cached;

/// Keeps the fields of a placement that decide where Services run. The rest is gone before a rule could read it, and wakes nobody
/// when it changes.
pub fn keep_placed(placement: &mut Placement) {
    placement.spec = PlacementSpec::default();
    let Some(status) = &mut placement.status else {
        return;
    };
    status.conditions.clear();
    status.observed_resource_index.clear();
    status.selected_resources.retain(is_service);
    status.placement_statuses.retain(is_picked);
    for cluster in &mut status.placement_statuses {
        let cluster_name = std::mem::take(&mut cluster.cluster_name);
        *cluster = ClusterPlacementStatus {
            cluster_name,
            ..ClusterPlacementStatus::default()
        };
    }
}

/// Returns the Services that a placement selects. Those in an envelope are not told.
pub fn placed_services(placement: &Placement) -> BTreeSet<Key> {
    let selected = placement.status.iter();
    let selected = selected.flat_map(|status| &status.selected_resources);
    let services = selected.filter(|resource| is_service(resource));
    services
        .map(|service| Key::new(&service.namespace, &service.name))
        .collect()
}

/// Returns the clusters to which these placements bring their objects.
pub(super) fn located_by<'a>(
    placements: impl Iterator<Item = &'a Placement>,
) -> Cached<BTreeSet<&'a str>> {
    let mut placements = placements.peekable();
    if placements.peek().is_none() {
        return Cached::Absent;
    }
    Cached::Present(placements.flat_map(placed_clusters).collect())
}

fn placed_clusters(placement: &Placement) -> impl Iterator<Item = &str> {
    let clusters = placement.status.iter();
    let clusters = clusters.flat_map(|status| &status.placement_statuses);
    let picked = clusters.filter(|cluster| is_picked(cluster));
    picked.map(|cluster| cluster.cluster_name.as_str())
}

fn is_service(resource: &ResourceIdentifier) -> bool {
    resource.group.is_empty() && resource.kind == "Service"
}

/// Returns `true` unless the entry tells why a cluster was not picked, or none was found.
fn is_picked(cluster: &ClusterPlacementStatus) -> bool {
    let scheduled = find(&cluster.conditions, SCHEDULED);
    !cluster.cluster_name.is_empty() && scheduled.is_none_or(|scheduled| scheduled.status != FALSE)
}

#[cfg(test)]
mod tests {
    use serde_json::{from_value, json};

    use super::*;

    /// Case F120: a placement brings its Services, and no namesake of another group, to the clusters that are picked, and what is kept
    /// of it says no less.
    #[test]
    fn services_are_in_picked_clusters() {
        let condition =
            |kind: &str, status: &str| json!({ "type": kind, "status": status, "reason": "R" });
        let mut placement: Placement = from_value(json!({
            "metadata": { "name": "shop" },
            "spec": { "resourceSelectors": [] },
            "status": {
                "selectedResources": [
                    { "version": "v1", "kind": "Namespace", "name": "shop" },
                    { "version": "v1", "kind": "Service", "name": "web", "namespace": "shop" },
                    { "group": "serving.knative.dev", "version": "v1", "kind": "Service", "name": "k",
                        "namespace": "shop" },
                ],
                "placementStatuses": [
                    { "clusterName": "rolling",
                        "conditions": [condition(SCHEDULED, "True"), condition("Applied", "Unknown")] },
                    { "clusterName": "shortened", "conditions": [condition("Available", "True")] },
                    { "clusterName": "tainted", "conditions": [condition(SCHEDULED, "False")] },
                    { "clusterName": "", "conditions": [condition(SCHEDULED, "False")] },
                ],
                "conditions": [condition("ClusterResourcePlacementScheduled", "False")],
            },
        }))
        .unwrap();
        for _ in 0..2 {
            let services = placed_services(&placement);
            assert_eq!(services, [Key::new("shop", "web")].into());
            let clusters = located_by([&placement].into_iter());
            assert_eq!(clusters, Cached::Present(["rolling", "shortened"].into()));
            keep_placed(&mut placement);
        }
        assert!(placement.status.unwrap().conditions.is_empty());
        assert_eq!(located_by([].into_iter()), Cached::Absent);
    }
}
