//! The room that clusters have for a template.

use karmada_api::cluster_view::{Quantities, ResourceSummary};
use karmada_api::{ClusterView, ResourceBindingSpec};

use objects::Metadata;
use objects::amounts::Amounts;

/// A cluster that fits, with what it runs of the template and has room for.
#[derive(Clone, Copy, Debug)]
pub(super) struct Candidate<'a> {
    pub(super) cluster: &'a ClusterView,
    pub(super) name: &'a str,
    /// The number of the tier that it is in.
    pub(super) tier: usize,
    /// True if the template is there already.
    pub(super) is_target: bool,
    /// The replicas that it has.
    pub(super) assigned: i32,
    /// The replicas for which it has room besides.
    pub(super) available: i32,
}

impl<'a> Candidate<'a> {
    pub(super) fn new(spec: &ResourceBindingSpec, cluster: &'a ClusterView) -> Self {
        let name = cluster.metadata.name();
        let mut targets = spec.clusters.iter().flatten();
        let target = targets.find(|target| target.name == name);
        let assigned = target.and_then(|target| target.replicas).unwrap_or(0);
        Self {
            cluster,
            name,
            tier: 0,
            is_target: target.is_some(),
            assigned: assigned.max(0),
            available: available(spec, cluster),
        }
    }

    /// Returns the replicas that the cluster could have in all.
    pub(super) fn capacity(&self) -> i64 {
        i64::from(self.available) + i64::from(self.assigned)
    }
}

/// Returns the replicas for which the cluster has room besides what it runs, as Karmada's general estimator
/// computes them: by the scarcest of what one replica asks for, and the number of pods.
fn available(spec: &ResourceBindingSpec, cluster: &ClusterView) -> i32 {
    // What has no replicas needs no room.
    if spec.replicas.unwrap_or(0) <= 0 {
        return i32::MAX;
    }
    let Some(summary) = &cluster.status.resource_summary else {
        return 0;
    };
    let requirements = spec.replica_requirements.as_ref();
    let mut request = Amounts::read(requirements.and_then(|needs| needs.get("resourceRequest")));
    request.add(&Amounts::from_iter([("pods", "1")]));
    let available = free(summary).times(&request).unwrap_or(0);
    i32::try_from(available).unwrap_or(i32::MAX)
}

/// Returns the amounts of a cluster that no pod has asked for.
fn free(summary: &ResourceSummary) -> Amounts {
    let mut free = read(&summary.allocatable);
    free.subtract(&read(&summary.allocated));
    free.subtract(&read(&summary.allocating));
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
        Candidate::new(&spec, &cluster).available
    }

    /// The scarcest of what a replica asks for bounds their number.
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
        let of_any = |summary: &Value| available(summary, 1, &json!({}));
        assert_eq!(of_any(&Value::Null), 0);
        assert_eq!(of_any(&json!({ "allocatable": { "cpu": "4" } })), 0);
        let overbooked = json!({ "allocatable": { "pods": "3" }, "allocated": { "pods": "9" } });
        assert_eq!(of_any(&overbooked), 0);
        assert_eq!(
            of_any(&json!({ "allocatable": { "pods": "900E" } })),
            i32::MAX
        );
    }
}
