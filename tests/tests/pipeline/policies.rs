//! Policies as the API of a fleet without Karmada stores them.

use anyhow::{Context, Result};
use karmada_api::PropagationPolicy;
use kube::{
    Api,
    api::{Patch, PatchParams},
    core::DynamicObject,
    discovery::ApiResource,
};
use pipeline_tests::{
    control_plane::{ApiKind, ControlPlane},
    crds,
    fleet::NAMESPACE,
    on_both,
};
use serde_json::{Value, json};

/// A policy with the fields of every part of a placement.
fn policy() -> Value {
    let cluster = |name: &str| json!({ "clusterNames": [name] });
    json!({
        "apiVersion": "policy.karmada.io/v1alpha1",
        "kind": "PropagationPolicy",
        "metadata": { "name": "web" },
        "spec": {
            "resourceSelectors": [{ "apiVersion": "apps/v1", "kind": "Deployment", "name": "web",
                "labelSelector": { "matchLabels": { "app": "web" } } }],
            "placement": {
                "clusterAffinities": [
                    { "affinityName": "first", "clusterNames": ["member1"],
                      "labelSelector": { "matchExpressions": [{ "key": "tier", "operator": "Exists" }] } },
                    { "affinityName": "rest", "exclude": ["member1"], "fieldSelector": {
                      "matchExpressions": [{ "key": "zone", "operator": "In", "values": ["a"] }] } },
                ],
                "clusterTolerations": [{ "key": "slow", "operator": "Exists", "effect": "NoExecute",
                    "tolerationSeconds": 30 }],
                "spreadConstraints": [{ "spreadByField": "cluster", "minGroups": 1, "maxGroups": 2 }],
                "replicaScheduling": {
                    "replicaSchedulingType": "Divided",
                    "replicaDivisionPreference": "Weighted",
                    "weightPreference": { "staticWeightList": [
                        { "targetCluster": cluster("member1"), "weight": 2 }] },
                },
                "workloadAffinity": { "affinity": { "groupByLabelKey": "app" } },
            },
            "failover": { "cluster": { "purgeMode": "Directly" } },
            "suspension": { "dispatchingOnClusters": cluster("member1") },
        },
    })
}

async fn apply(policies: &Api<DynamicObject>, policy: &Value) -> kube::Result<DynamicObject> {
    let parameters = PatchParams::apply("kubectl").validation_strict();
    policies
        .patch("web", &parameters, &Patch::Apply(policy))
        .await
}

/// A policy keeps every field and a misspelt one is refused by name.
async fn misspelt_field_is_named(server: ApiKind) -> Result<()> {
    let karmada = ControlPlane::start("karmada", server).await?;
    karmada.install_crds(&crds::karmada()).await?;
    karmada.namespace(NAMESPACE).await?;
    let kind = ApiResource::erase::<PropagationPolicy>(&());
    let policies = Api::namespaced_with(karmada.client(), NAMESPACE, &kind);

    let written = policy();
    let stored = apply(&policies, &written).await?;
    let mut expected = written["spec"].clone();
    for (field, default) in [
        ("conflictResolution", json!("Abort")),
        ("preemption", json!("Never")),
        ("priority", json!(0)),
        ("schedulerName", json!("default-scheduler")),
    ] {
        expected[field] = default;
    }
    assert_eq!(stored.data["spec"], expected);

    for (place, value, expected) in [
        (
            "/spec/suspension/suspendDispatching",
            json!(true),
            "suspendDispatching",
        ),
        (
            "/spec/placement/clusterAffinities/0/clusters",
            json!([]),
            "clusters",
        ),
        ("/spec/preemption", json!("Sometimes"), "Always"),
        (
            "/spec/placement/replicaScheduling/weightPreference/staticWeightList/0/weight",
            json!(0),
            "greater than or equal to 1",
        ),
        (
            "/spec/placement/spreadConstraints/0/spreadByField",
            json!("host"),
            "zone",
        ),
        ("/spec/resourceSelectors", json!([]), "at least 1"),
        (
            "/spec/resourceSelectors/0",
            json!({ "kind": "Deployment" }),
            "apiVersion",
        ),
    ] {
        let mut wrong = written.clone();
        set(&mut wrong, place, value).with_context(|| format!("no place {place}"))?;
        let refused = apply(&policies, &wrong).await.err().map(|e| e.to_string());
        let named = refused.as_ref().is_some_and(|text| text.contains(expected));
        assert!(named, "{place}: {refused:?} does not name {expected:?}");
    }
    Ok(())
}

/// Sets the member of an object, or the element of a list, at a JSON pointer.
fn set(document: &mut Value, pointer: &str, value: Value) -> Option<()> {
    let (parent, last) = pointer.rsplit_once('/')?;
    match document.pointer_mut(parent)? {
        Value::Object(map) => drop(map.insert(last.to_owned(), value)),
        Value::Array(items) => *items.get_mut(last.parse::<usize>().ok()?)? = value,
        _ => return None,
    }
    Some(())
}

on_both!(misspelt_field_is_named,);
