//! What bindings have for the scheduler beside replicas and placement.

use super::*;

const GROUPS_ON: &str = "--feature-gates=WorkloadAffinity=true";

/// Returns the policy of a Deployment `web` that groups it by these labels.
fn grouping(together: &str, apart: &str) -> Value {
    let by = |key: &str| json!({ "groupByLabelKey": key });
    let affinity = json!({ "affinity": by(together), "antiAffinity": by(apart) });
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
