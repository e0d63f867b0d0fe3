//! The specs of policies.

use serde_json::{Value, json};

use super::objects::Template;
use super::step::{Affinity, By, Division, Pause, PolicyShape, Purge, Spread, Toleration};
use crate::harness::clusters;

/// Returns the suspension of a policy, and null if there is none.
pub(crate) fn suspension(pause: Pause) -> Value {
    match pause {
        Pause::No => Value::Null,
        Pause::Whole => json!({ "dispatching": true }),
        Pause::On(bits) => {
            json!({ "dispatchingOnClusters": { "clusterNames": clusters::names(bits) } })
        }
    }
}

/// Returns the spec of a policy.
pub(crate) fn policy(shape: &PolicyShape) -> Value {
    let selectors = shape.selects.iter().map(|(template, by)| {
        let mut selector = json!({ "apiVersion": template.api_version(), "kind": template.kind() });
        match by {
            By::Name => selector["name"] = template.name().into(),
            By::Label => {
                selector["labelSelector"] = json!({ "matchLabels": { "tier": template.tier() } });
            }
            By::Kind => {}
        }
        selector
    });
    let mut spec = json!({
        "resourceSelectors": selectors.collect::<Vec<_>>(), "placement": placement(shape),
        "priority": shape.priority,
    });
    if shape.preempts {
        spec["preemption"] = "Always".into();
    }
    if shape.is_lazy {
        spec["activationPreference"] = "Lazy".into();
    }
    if shape.purge == Purge::Directly {
        spec["failover"] = json!({ "cluster": { "purgeMode": "Directly" } });
    }
    if shape.has_dependencies {
        spec["propagateDeps"] = true.into();
    }
    if shape.pause != Pause::No {
        spec["suspension"] = suspension(shape.pause);
    }
    spec
}

fn placement(shape: &PolicyShape) -> Value {
    let mut placement = match shape.affinity {
        Affinity::All => json!({}),
        Affinity::Names(bits) => {
            json!({ "clusterAffinity": { "clusterNames": clusters::names(bits) } })
        }
        Affinity::Groups(groups) => {
            let [first, second] = groups.map(clusters::names);
            json!({ "clusterAffinities": [
                { "affinityName": "g0", "clusterNames": first },
                { "affinityName": "g1", "clusterNames": second },
            ] })
        }
        Affinity::Region(region) => {
            let labels = json!({ "matchLabels": { "region": format!("r{region}") } });
            json!({ "clusterAffinity": { "labelSelector": labels } })
        }
    };
    match shape.spread {
        Spread::No => {}
        Spread::Clusters(clusters) => {
            placement["spreadConstraints"] = json!([bounds("cluster", clusters)]);
        }
        Spread::Regions(regions, clusters) => {
            let constraints = [bounds("region", regions), bounds("cluster", clusters)];
            placement["spreadConstraints"] = json!(constraints);
        }
    }
    let divided =
        |by: &str| json!({ "replicaSchedulingType": "Divided", "replicaDivisionPreference": by });
    match shape.division {
        Division::None => {}
        Division::Weights(weights) => {
            placement["replicaScheduling"] = divided("Weighted");
            placement["replicaScheduling"]["weightPreference"] = json!({
                "staticWeightList": static_weights(weights),
            });
        }
        Division::Room { aggregated: true } => {
            placement["replicaScheduling"] = divided("Aggregated");
        }
        Division::Room { aggregated: false } => {
            placement["replicaScheduling"] = divided("Weighted");
            let dynamic = json!({ "dynamicWeight": "AvailableReplicas" });
            placement["replicaScheduling"]["weightPreference"] = dynamic;
        }
    }
    let mut toleration = json!({ "key": "lab", "operator": "Exists", "effect": "NoExecute" });
    match shape.tolerates {
        Toleration::No => return placement,
        Toleration::Seconds(seconds) => toleration["tolerationSeconds"] = seconds.into(),
        Toleration::Forever => {}
    }
    placement["clusterTolerations"] = json!([toleration]);
    placement
}

fn bounds(field: &str, [least, most]: [u8; 2]) -> Value {
    json!({ "spreadByField": field, "minGroups": least, "maxGroups": most })
}

fn static_weights(weights: [u8; 3]) -> Vec<Value> {
    let weights = clusters::all()
        .zip(weights)
        .filter(|(_, weight)| *weight > 0);
    weights
        .map(|(name, weight)| {
            json!({ "targetCluster": { "clusterNames": [name] }, "weight": weight })
        })
        .collect()
}

/// Returns the spec of an override policy, which adds a label to the copies of a template.
pub(crate) fn overrides(of_cluster: bool, template: Template, clusters: u8, value: u8) -> Value {
    let selector = json!({
        "apiVersion": template.api_version(), "kind": template.kind(), "name": template.name(),
    });
    let label = if of_cluster { "zone" } else { "site" };
    let added = json!({ "operator": "add", "value": { label: format!("s{value}") } });
    json!({
        "resourceSelectors": [selector],
        "overrideRules": [{
            "targetCluster": { "clusterNames": clusters::names(clusters) },
            "overriders": { "labelsOverrider": [added] },
        }],
    })
}
