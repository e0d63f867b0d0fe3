//! The metrics of Works and members.

use super::*;

/// Works are counted by their outcome; the delay is that of the one that took a write, and no other's.
#[tokio::test]
async fn works_counted_by_state() {
    let member = member(|_| true).await;
    let stage = Stage::new().await;
    stage.join("m1", member.address()).await;
    stage.join("dead", CLOSED).await;
    stage.dispatch("m1", "a", json!({})).await;
    let suspended = json!({ "suspendDispatching": true });
    stage.dispatch("m1", "b", suspended).await;
    stage.dispatch("dead", "c", json!({})).await;
    let program = stage.start(&[]);
    stage.condition("m1", "a", APPLIED, TRUE).await;
    stage.condition("dead", "c", APPLIED, FALSE).await;
    let name = "karmada_execution_controller";
    for (member, state) in [
        ("m1", "applied"),
        ("m1", "suspended"),
        ("dead", "unapplied"),
    ] {
        let one = format!("{name}_works{{member=\"{member}\",state=\"{state}\"}} 1\n");
        counts(&program, &one).await;
    }
    let oldest = format!("{name}_oldest_unapplied_work_seconds{{member=\"m1\"}} 0\n");
    counts(&program, &oldest).await;
    counts(
        &program,
        &format!("{name}_propagation_delay_seconds_count 1\n"),
    )
    .await;
    // Somebody's edit is measured as well, and it is applied from the moment of its report.
    let edited = json!({ "spec": { "workload": { "manifests": [{
        "apiVersion": "v1", "kind": "ConfigMap",
        "metadata": { "name": "a", "namespace": "shop",
            "labels": { "karmada.io/managed": "true" },
            "annotations": { "work.karmada.io/namespace": "karmada-es-m1", "work.karmada.io/name": "a" } },
        "data": { "greeting": "good evening" } }] } } });
    stage.patch("m1", "a", edited).await;
    counts(
        &program,
        &format!("{name}_propagation_delay_seconds_count 2\n"),
    )
    .await;
    let applied = format!("{name}_works{{member=\"m1\",state=\"applied\"}} 1\n");
    counts(&program, &applied).await;
}

/// The end of a member's token is known if the token tells it, and whether that is near.
#[tokio::test]
async fn ends_of_tokens_are_told() {
    let member = member(|_| true).await;
    let stage = Stage::new().await;
    // JWTs that end in 2100 and in 2023, and one that does not tell.
    for (name, end, token) in [
        (
            "late",
            Some((4_102_444_800_i64, 0)),
            "ZTMwLmV5SmxlSEFpT2pReE1ESTBORFE0TURCOS5jMmxu",
        ),
        (
            "early",
            Some((1_700_000_000, 1)),
            "ZTMwLmV5SmxlSEFpT2pFM01EQXdNREF3TURCOS5jMmxu",
        ),
        ("opaque", None, "c2VjcmV0"),
    ] {
        stage.join(name, member.address()).await;
        let secrets: Api<k8s_openapi::api::core::v1::Secret> =
            Api::namespaced(stage.api.user(), "karmada-cluster");
        let token = Patch::Merge(json!({ "data": { "token": token } }));
        let parameters = PatchParams::default();
        secrets.patch(name, &parameters, &token).await.unwrap();
        stage.dispatch(name, name, json!({})).await;
        let program = stage.start(&[]);
        stage.condition(name, name, APPLIED, TRUE).await;
        let of = |metric: &str, value: i64| {
            format!("karmada_execution_controller_{metric}{{member=\"{name}\"}} {value}\n")
        };
        if let Some((end, near)) = end {
            let ends = "member_credentials_expiry_timestamp_seconds";
            counts(&program, &of(ends, end)).await;
            counts(&program, &of("expiring_member_credentials", near)).await;
        } else {
            let text = metrics(&program);
            assert!(
                !text.contains("expiring_member_credentials{member=\"opaque\"}"),
                "{text}"
            );
        }
    }
}

/// A member refuses a token that has ended, at each attempt: between these its metrics stay, or no alert would last.
#[tokio::test]
async fn refused_token_stays_known() {
    let member = member(|_| false).await;
    let stage = Stage::new().await;
    stage.join("m1", member.address()).await;
    let secrets: Api<k8s_openapi::api::core::v1::Secret> =
        Api::namespaced(stage.api.user(), "karmada-cluster");
    // A JWT that ended in 2023.
    let token = json!({ "token": "ZTMwLmV5SmxlSEFpT2pFM01EQXdNREF3TURCOS5jMmxu" });
    let patch = Patch::Merge(json!({ "data": token }));
    let parameters = PatchParams::default();
    secrets.patch("m1", &parameters, &patch).await.unwrap();
    stage.dispatch("m1", "a", json!({})).await;
    let program = stage.start(&[]);
    let failed =
        "karmada_execution_controller_reconciles_total{controller=\"work\",result=\"error\"} 1\n";
    counts(&program, failed).await;
    let text = metrics(&program);
    let known = "karmada_execution_controller_expiring_member_credentials{member=\"m1\"} 1\n";
    assert!(text.contains(known), "{text}");
}
