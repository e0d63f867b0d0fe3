//! The parts of bindings for the scheduler beside replicas and placement.

use super::*;

const GROUPS_ON: &str = "--feature-gates=WorkloadAffinity=true";

/// Returns the policy of a Deployment `web` that groups it by these labels.
fn grouping(together: &str, apart: &str) -> Value {
    let affinity = json!({
        "affinity": { "groupByLabelKey": together },
        "antiAffinity": { "groupByLabelKey": apart },
    });
    policy(
        "pp",
        &json!({ "placement": { "workloadAffinity": affinity } }),
    )
}

/// The groups are those of the template's labels, follow them, and go with them; another start writes nothing.
/// Case I91.
#[tokio::test(start_paused = true)]
async fn labels_make_groups() {
    let mut stage = Stage::new().await;
    stage.send("POST", POLICY, &grouping("app", "tier")).await;
    stage.send("POST", DEPLOYMENT, &deployment()).await;
    stage.start(&[GROUPS_ON]).await;
    let groups = async || stage.get(&bound()).await["spec"]["workloadAffinityGroups"].clone();
    assert_eq!(groups().await, json!({ "affinityGroup": "app=web" }));
    for (labels, expected) in [
        (
            json!({ "tier": "front" }),
            json!({ "affinityGroup": "app=web", "antiAffinityGroup": "tier=front" }),
        ),
        (
            json!({ "app": null }),
            json!({ "antiAffinityGroup": "tier=front" }),
        ),
        (json!({ "tier": null }), Value::Null),
    ] {
        let labels = json!({ "metadata": { "labels": labels } });
        stage.change("PATCH", &web(DEPLOYMENT), &labels).await;
        assert_eq!(groups().await, expected);
    }
    stage.written();
    stage.kill().await;
    stage.start(&[GROUPS_ON]).await;
    assert_eq!(stage.written(), [""; 0]);
}

/// Without the feature a binding has none, as in Karmada. Case I91.
#[tokio::test(start_paused = true)]
async fn groups_are_off_by_default() {
    let mut stage = Stage::new().await;
    stage.send("POST", POLICY, &grouping("app", "tier")).await;
    stage.send("POST", DEPLOYMENT, &deployment()).await;
    stage.start(&[]).await;
    let binding = stage.get(&bound()).await;
    assert_eq!(binding["spec"].get("workloadAffinityGroups"), None);
}

const CLASSES: &str = "/apis/scheduling.k8s.io/v1/priorityclasses";

/// Returns the kind of priorities, which every Kubernetes API has.
fn priority_classes() -> Value {
    json!({
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": { "name": "priorityclasses.scheduling.k8s.io" },
        "spec": {
            "group": "scheduling.k8s.io",
            "names": { "kind": "PriorityClass", "plural": "priorityclasses" },
            "scope": "Cluster",
            "versions": [{
                "name": "v1", "served": true, "storage": true,
                "schema": { "openAPIV3Schema": {
                    "type": "object", "x-kubernetes-preserve-unknown-fields": true,
                } },
            }],
        },
    })
}

fn class(name: &str, value: i32) -> Value {
    json!({
        "apiVersion": "scheduling.k8s.io/v1", "kind": "PriorityClass",
        "metadata": { "name": name }, "value": value,
    })
}

/// Returns the policy of a Deployment `web` with the priority of this class.
fn prioritized(class: &str) -> Value {
    let priority =
        json!({ "priorityClassSource": "KubePriorityClass", "priorityClassName": class });
    policy("pp", &json!({ "schedulePriority": priority }))
}

/// A program with the kind of priorities, and a policy that names the class `high`.
async fn with_priority(flags: &[&str]) -> Stage {
    let mut stage = Stage::new().await;
    stage.server.install(&priority_classes()).unwrap();
    stage.send("POST", POLICY, &prioritized("high")).await;
    stage.send("POST", DEPLOYMENT, &deployment()).await;
    stage.start(flags).await;
    stage
}

/// Without the class there is no binding, and the template says why; it comes with the class. Case I93.
#[tokio::test(start_paused = true)]
async fn binding_awaits_its_class() {
    let stage = with_priority(&[]).await;
    assert_eq!(stage.find(&bound()).await, None);
    assert_eq!(claim_of(&stage.get(&web(DEPLOYMENT)).await), Some("pp"));
    assert_eq!(
        stage.events("Deployment").await,
        ["ApplyPolicyFailed: there is no PriorityClass high, which the policy names"]
    );
    stage.change("POST", CLASSES, &class("high", 1000)).await;
    let binding = stage.get(&bound()).await;
    assert_eq!(
        binding["spec"]["schedulePriority"],
        json!({ "priority": 1000 })
    );
}

/// A binding stays as it is while the class that its policy names now does not exist. Case I93.
#[tokio::test(start_paused = true)]
async fn missing_class_changes_nothing() {
    let mut stage = with_priority(&[]).await;
    stage.change("POST", CLASSES, &class("high", 1000)).await;
    let other = json!({ "spec": { "schedulePriority": { "priorityClassName": "low" } } });
    let wrote = stage.change("PATCH", &format!("{POLICY}/pp"), &other).await;
    assert_eq!(wrote, [""; 0]);
    let scaled = json!({ "spec": { "replicas": 5 } });
    let wrote = stage.change("PATCH", &web(DEPLOYMENT), &scaled).await;
    assert_eq!(wrote, [""; 0]);
    stage.change("POST", CLASSES, &class("low", -5)).await;
    let spec = stage.get(&bound()).await["spec"].clone();
    assert_eq!(spec["schedulePriority"], json!({ "priority": -5 }));
    assert_eq!(spec["replicas"], 5);

    stage.written();
    stage.kill().await;
    stage.start(&[]).await;
    assert_eq!(stage.written(), [""; 0]);
    let none = json!({ "spec": { "schedulePriority": null } });
    stage.change("PATCH", &format!("{POLICY}/pp"), &none).await;
    let binding = stage.get(&bound()).await;
    assert_eq!(binding["spec"].get("schedulePriority"), None);
}

/// Without the feature nobody looks for the class, as in Karmada. Case I93.
#[tokio::test(start_paused = true)]
async fn priority_can_be_off() {
    let stage = with_priority(&["--feature-gates=PriorityBasedScheduling=false"]).await;
    let binding = stage.get(&bound()).await;
    assert_eq!(binding["spec"].get("schedulePriority"), None);
}
