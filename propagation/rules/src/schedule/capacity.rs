//! The room that clusters have for a template.

use karmada_api::cluster_view::{Quantities, ResourceSummary};
use karmada_api::{ClusterView, ResourceBindingSpec};

use objects::Metadata;
use objects::amounts::Amounts;

use super::facts::Room;
use super::models;
use super::pods::{Pods, one_pod, request};

/// A cluster that fits, with the replicas that it runs and has room for.
#[derive(Clone, Copy, Debug)]
pub(super) struct Candidate<'a> {
    pub(super) cluster: &'a ClusterView,
    pub(super) name: &'a str,
    /// The number of the tier that it is in.
    pub(super) tier: usize,
    /// Its place among the clusters that have the template; `None` if it is not one of them.
    pub(super) place: Option<usize>,
    /// The replicas that it has.
    pub(super) assigned: i32,
    /// The replicas for which it has room besides.
    pub(super) available: i32,
    /// True if no more come, for a taint: those that it has stay.
    pub(super) is_closed: bool,
}

impl<'a> Candidate<'a> {
    pub(super) fn new(
        spec: &ResourceBindingSpec,
        cluster: &'a ClusterView,
        available: i32,
    ) -> Self {
        let name = cluster.metadata.name();
        let mut targets = spec.clusters.iter().flatten().enumerate();
        let found = targets.find(|(_, target)| target.name == name);
        let assigned = found.and_then(|(_, target)| target.replicas).unwrap_or(0);
        Self {
            cluster,
            name,
            tier: 0,
            place: found.map(|(place, _)| place),
            assigned: assigned.max(0),
            available,
            is_closed: false,
        }
    }

    /// Returns `true` if the template is there already.
    pub(super) fn is_target(&self) -> bool {
        self.place.is_some()
    }

    /// Returns the replicas that may come besides.
    pub(super) fn more(&self) -> i32 {
        if self.is_closed { 0 } else { self.available }
    }

    /// Returns the replicas that the cluster could have in all.
    pub(super) fn capacity(&self) -> i64 {
        i64::from(self.available) + i64::from(self.assigned)
    }
}

/// Returns the replicas for which the cluster has room besides those that run and are `assumed` to be there, as
/// Karmada's general estimator computes them: by the number of pods, and by the models of its nodes, or else by the
/// scarcest resource of one replica.
pub(super) fn available(
    room: Room,
    spec: &ResourceBindingSpec,
    cluster: &ClusterView,
    assumed: &[Pods],
) -> i32 {
    // A workload without replicas needs no room.
    if spec.replicas.unwrap_or(0) <= 0 {
        return i32::MAX;
    }
    let Some(summary) = &cluster.status.resource_summary else {
        return 0;
    };
    let requirements = spec.replica_requirements.as_ref();
    let request = request(requirements);
    let free = free(summary, assumed);
    let by_models = match room {
        Room::Models if requirements.is_some() => models::available(cluster, &request, assumed),
        Room::Models | Room::Summary => None,
    };
    let available = match by_models {
        Some(available) => available.min(free.times(&one_pod()).unwrap_or(0)),
        None => free.times(&request).unwrap_or(0),
    };
    i32::try_from(available).unwrap_or(i32::MAX)
}

/// Returns the amounts of a cluster that no pod has asked for, nor one that is assumed to be there.
pub(super) fn free(summary: &ResourceSummary, assumed: &[Pods]) -> Amounts {
    let mut free = read(&summary.allocatable);
    free.subtract(&read(&summary.allocated));
    free.subtract(&read(&summary.allocating));
    for (request, count) in assumed {
        free.subtract(&request.multiplied(*count));
    }
    free
}

fn read(quantities: &Quantities) -> Amounts {
    let quantities = quantities.iter();
    quantities
        .map(|(name, quantity)| (&**name, &*quantity.0))
        .collect()
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, from_value, json};

    use super::*;

    fn available(summary: &Value, replicas: i32, request: &Value) -> i32 {
        let cluster: ClusterView = from_value(json!({
            "metadata": { "name": "m1" }, "status": { "resourceSummary": summary },
        }))
        .unwrap();
        let spec: ResourceBindingSpec = from_value(json!({
            "replicas": replicas, "replicaRequirements": { "resourceRequest": request },
            "resource": { "apiVersion": "apps/v1", "kind": "Deployment", "name": "web" },
        }))
        .unwrap();
        super::available(Room::Models, &spec, &cluster, &[])
    }

    /// Returns the replicas with this request for which there is room by models, of 2 CPUs with 4 GiB, and of 4 with 8.
    fn by_models(status: &Value, request: &Value) -> [i32; 2] {
        let models = [("0", "0"), ("2", "4Gi"), ("4", "8Gi")]
            .into_iter()
            .zip(0..);
        let models = models.map(|((cpu, memory), grade)| {
            json!({ "grade": grade, "ranges": [
                { "name": "cpu", "min": cpu, "max": "1Ti" },
                { "name": "memory", "min": memory, "max": "1Ti" },
            ] })
        });
        let models: Vec<Value> = models.collect();
        let cluster: ClusterView = from_value(json!({
            "metadata": { "name": "m1" }, "spec": { "resourceModels": models },
            "status": { "resourceSummary": status },
        }))
        .unwrap();
        let spec: ResourceBindingSpec = from_value(json!({
            "replicas": 1, "replicaRequirements": request,
            "resource": { "apiVersion": "apps/v1", "kind": "Deployment", "name": "web" },
        }))
        .unwrap();
        [Room::Models, Room::Summary].map(|room| super::available(room, &spec, &cluster, &[]))
    }

    /// Room in parts that are too small for a replica is none, unless the feature is off. Case I94.
    #[test]
    fn models_count_whole_nodes() {
        let status = |counts: Value, pods: u32| {
            json!({
                "allocatable": { "cpu": "100", "memory": "200Gi", "pods": pods.to_string() },
                "allocatableModelings": counts,
            })
        };
        let count = |grade: i64, count: i64| json!({ "grade": grade, "count": count });
        let nodes = json!([count(0, 50), count(1, 3), count(2, 2)]);
        let cases = [
            // Three nodes for one replica each, and two for two.
            (json!({ "cpu": "2" }), 7, 50),
            (json!({ "cpu": "1500m", "memory": "1Gi" }), 7, 66),
            (json!({ "cpu": "1", "memory": "4Gi" }), 7, 50),
            // More than the least of any.
            (json!({ "cpu": "5" }), 0, 20),
            // Room of which no model tells is nowhere.
            (json!({ "nvidia.com/gpu": "1" }), 0, 0),
            // Pods alone: 110 on each node, but not more than the cluster has free.
            (json!({}), 1000, 1000),
        ];
        for (request, expected, without) in cases {
            let request = json!({ "resourceRequest": request });
            let rooms = by_models(&status(nodes.clone(), 1000), &request);
            assert_eq!(rooms, [expected, without], "{request}");
        }
        let two = json!({ "resourceRequest": { "cpu": "2" } });
        assert_eq!(by_models(&status(nodes.clone(), 4), &two), [4, 4]);
        assert_eq!(by_models(&status(nodes.clone(), 0), &two), [0, 0]);
        // Nothing is asked for: only pods count.
        assert_eq!(by_models(&status(nodes, 1000), &Value::Null), [1000; 2]);
        // Nodes are not counted, or by nobody who can count: the sum decides.
        for counts in [json!([]), json!(null), json!([count(1, -1)])] {
            assert_eq!(by_models(&status(counts, 1000), &two), [50, 50]);
        }
        // A grade without a model is no node.
        assert_eq!(
            by_models(&status(json!([count(7, 9)]), 1000), &two),
            [0, 50]
        );
    }

    /// A member of Karmada without nodes has no room, whichever way it is counted. Case I94.
    #[test]
    fn karmadas_cluster_is_read() {
        let cluster: ClusterView =
            serde_json::from_str(include_str!("fixtures/cluster.json")).unwrap();
        assert_eq!(cluster.spec.resource_models.len(), 9);
        let summary = cluster.status.resource_summary.unwrap();
        assert_eq!(summary.allocatable_modelings.len(), 9);
        let last = &cluster.spec.resource_models[8];
        assert_eq!(last.grade, 8);
        let mins = last
            .ranges
            .iter()
            .map(|range| (&*range.name, &*range.min.0));
        let mins: Vec<_> = mins.collect();
        assert_eq!(mins, [("cpu", "128"), ("memory", "1Ti")]);
    }

    /// The scarcest resource of a replica bounds their number.
    #[test]
    fn scarcest_resource_bounds_replicas() {
        let summary = json!({
            "allocatable": { "cpu": "4", "memory": "8Gi", "pods": "110" },
            "allocated": { "cpu": "1500m", "memory": "1Gi", "pods": "10" },
            "allocating": { "cpu": "500m", "pods": "5" },
        });
        let cases = [
            (json!({ "cpu": "300m" }), 6),
            (json!({ "cpu": "300m", "memory": "2Gi" }), 3),
            (json!({}), 95),
            (json!({ "cpu": "0", "memory": "-1" }), 95),
            (json!({ "nvidia.com/gpu": "1" }), 0),
            (json!({ "cpu": "3" }), 0),
            (json!({ "cpu": "none" }), 95),
        ];
        for (request, expected) in cases {
            assert_eq!(available(&summary, 1, &request), expected, "{request}");
        }
        assert_eq!(available(&summary, 0, &json!({ "cpu": "1" })), i32::MAX);
        let overbooked = json!({ "allocatable": { "pods": "3" }, "allocated": { "pods": "9" } });
        for (summary, expected) in [
            (Value::Null, 0),
            (json!({ "allocatable": { "cpu": "4" } }), 0),
            (overbooked, 0),
            (json!({ "allocatable": { "pods": "900E" } }), i32::MAX),
        ] {
            assert_eq!(available(&summary, 1, &json!({})), expected, "{summary}");
        }
    }
}
