//! The room of clusters for templates whose Pods differ, in sets of all these Pods.

use karmada_api::{ClusterView, Component, ResourceBindingSpec, TargetCluster};
use objects::Metadata;
use objects::amounts::Amounts;

use super::capacity::free;
use super::facts::Room;
use super::models;
use super::pods::{self, Pods};

/// Returns the components of a template with the replicas that a cluster has still to get: all, or those that are missing if
/// it has the template. One that does not count its own was chosen before anybody did, and lacks nothing.
pub fn missing_components(spec: &ResourceBindingSpec, cluster: &str) -> Vec<Component> {
    let mut targets = spec.clusters.iter().flatten();
    let target = targets.find(|target| target.name == cluster);
    let components = spec.components.iter().flatten();
    let missing = components.filter_map(|component| {
        let replicas = replicas_in(target, &component.name);
        let replicas = component.replicas.saturating_sub(replicas);
        (replicas > 0).then(|| Component {
            replicas,
            ..component.clone()
        })
    });
    missing.collect()
}

/// Returns the replicas of a component that a target has.
fn replicas_in(target: Option<&TargetCluster>, component: &str) -> i32 {
    let Some(target) = target else {
        return 0;
    };
    let Some(components) = &target.components else {
        return i32::MAX;
    };
    let mut components = components.iter();
    let found = components.find(|one| one.name == component);
    found.map_or(0, |one| one.replicas.max(0))
}

/// Returns the sets of missing Pods for which the cluster has room besides those `assumed` to be there, as Karmada's
/// general estimator computes them: by the scarcest resource of one set, and by the models of its nodes.
pub(super) fn available(
    room: Room,
    spec: &ResourceBindingSpec,
    cluster: &ClusterView,
    assumed: &[Pods],
) -> i32 {
    let missing = missing_components(spec, cluster.metadata.name());
    if missing.is_empty() {
        return i32::MAX;
    }
    let Some(summary) = &cluster.status.resource_summary else {
        return 0;
    };
    let pods = pods::of_components(&missing);
    let mut set = Amounts::default();
    for (request, count) in &pods {
        set.add(&request.multiplied(*count));
    }
    let by_sum = free(summary, assumed).times(&set).unwrap_or(0);
    let by_models = match room {
        Room::Models => models::sets(cluster, &pods, assumed),
        Room::Summary => None,
    };
    let available = by_models.map_or(by_sum, |sets| sets.min(by_sum));
    i32::try_from(available).unwrap_or(i32::MAX)
}
