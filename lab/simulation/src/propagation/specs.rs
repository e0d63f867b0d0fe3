//! The specs of policies.

use serde_json::{Value, json};

use super::objects::{self, Template};
use super::step::{Affinity, By, Pause, PolicyShape};

/// Returns the suspension of a policy, and null if there is none.
pub(crate) fn suspension(pause: Pause) -> Value {
    match pause {
        Pause::No => Value::Null,
        Pause::Whole => json!({ "dispatching": true }),
        Pause::On(bits) => {
            json!({ "dispatchingOnClusters": { "clusterNames": objects::clusters(bits) } })
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
    let mut placement = match shape.affinity {
        Affinity::All => json!({}),
        Affinity::Names(bits) => {
            json!({ "clusterAffinity": { "clusterNames": objects::clusters(bits) } })
        }
        Affinity::Region(region) => {
            let labels = json!({ "matchLabels": { "region": format!("r{region}") } });
            json!({ "clusterAffinity": { "labelSelector": labels } })
        }
    };
    if let Some(weights) = shape.weights {
        let of_cluster = |(nth, weight): (u8, u8)| {
            let cluster = json!({ "clusterNames": [objects::cluster(nth)] });
            (weight > 0).then(|| json!({ "targetCluster": cluster, "weight": weight }))
        };
        let list: Vec<Value> = (0..).zip(weights).filter_map(of_cluster).collect();
        placement["replicaScheduling"] = json!({
            "replicaSchedulingType": "Divided", "replicaDivisionPreference": "Weighted",
            "weightPreference": { "staticWeightList": list },
        });
    }
    let mut spec = json!({
        "resourceSelectors": selectors.collect::<Vec<_>>(), "placement": placement,
        "priority": shape.priority,
    });
    if shape.preempts {
        spec["preemption"] = "Always".into();
    }
    if shape.is_lazy {
        spec["activationPreference"] = "Lazy".into();
    }
    if shape.pause != Pause::No {
        spec["suspension"] = suspension(shape.pause);
    }
    spec
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
            "targetCluster": { "clusterNames": objects::clusters(clusters) },
            "overriders": { "labelsOverrider": [added] },
        }],
    })
}
