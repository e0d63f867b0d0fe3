//! The slices of other clusters that are kept out of a member.

use karmada_api::work::WITHHELD;

use super::endpoints::of_member;
use super::*;

const WITHHOLDING: &[&str] = &["--block-multicluster-services"];

/// Returns the slice of the Service `web` in `source` that the Work `work` brings to `m3`, as Karmada dispatches it.
fn slice(work: &str, source: &str) -> Value {
    json!({
        "apiVersion": "discovery.k8s.io/v1", "kind": "EndpointSlice",
        "metadata": { "name": format!("{source}-{work}"), "namespace": "shop",
            "labels": { "karmada.io/managed": "true", "kubernetes.io/service-name": "web",
                "endpointslice.kubernetes.io/managed-by": "endpointslice-dispatch-controller.karmada.io" },
            "annotations": { "endpointslice.karmada.io/provision-cluster": source,
                "work.karmada.io/namespace": "karmada-es-m3", "work.karmada.io/name": work } },
        "addressType": "IPv4",
        "endpoints": [{ "addresses": ["10.0.0.1"], "conditions": { "ready": true } }],
        "ports": [{ "name": "http", "port": 8080, "protocol": "TCP" }],
    })
}

/// A fleet with the consumer `m3` and two providers, which nobody has to reach.
async fn fleet() -> (Stage, ServedApi) {
    let (stage, member) = (Stage::new().await, member(|_| true).await);
    stage.join("m3", member.address()).await;
    for provider in ["m1", "m2"] {
        stage.join(provider, CLOSED).await;
    }
    (stage, member)
}

/// Waits until the consumer has this slice, or has it no longer.
async fn has(member: &ServedApi, name: &str, is_there: bool) {
    until(of_member(member), name, |slice| slice.is_some() == is_there).await;
}

impl Stage {
    async fn dispatch_slice(&self, work: &str, source: &str) {
        let spec = json!({ "workload": { "manifests": [slice(work, source)] } });
        self.dispatch("m3", work, spec).await;
    }

    /// Requires an action on the traffic of a cluster, as a remedy-controller does.
    async fn block_traffic(&self, cluster: &str) {
        let actions = json!({ "status": { "remedyActions": ["TrafficControl"] } });
        let (parameters, patch) = (PatchParams::default(), Patch::Merge(actions));
        let clusters = self.clusters();
        clusters
            .patch_status(cluster, &parameters, &patch)
            .await
            .unwrap();
    }
}

/// Where two providers share a Work, the slice that it does not carry any more goes, and if it changed while the program was
/// down, too.
#[tokio::test]
async fn shared_work_leaves_nothing() {
    let (stage, member) = fleet().await;
    stage.dispatch_slice("web", "m1").await;
    let carrying =
        |source| json!({ "spec": { "workload": { "manifests": [slice("web", source)] } } });
    let program = stage.start(WITHHOLDING);
    has(&member, "m1-web", true).await;
    stage.patch("m3", "web", carrying("m2")).await;
    has(&member, "m2-web", true).await;
    has(&member, "m1-web", false).await;
    drop(program);
    stage.patch("m3", "web", carrying("m1")).await;
    let _program = stage.start(WITHHOLDING);
    has(&member, "m1-web", true).await;
    has(&member, "m2-web", false).await;
}

/// A slice of a blocked cluster is never written, and counted. Without the flag it comes, and its Work says that it is
/// released.
#[tokio::test]
async fn without_flag_slices_come() {
    let (stage, member) = fleet().await;
    stage.dispatch_slice("one", "m1").await;
    stage.dispatch_slice("two", "m2").await;
    stage.block_traffic("m1").await;
    let program = stage.start(WITHHOLDING);
    let withheld = stage.condition("m3", "one", WITHHELD, TRUE).await;
    assert_eq!(withheld.reason, "TrafficControl");
    stage.condition("m3", "two", APPLIED, TRUE).await;
    let counted = r#"blocked_endpoint_slices{member="m3",state="withheld"} 1"#;
    counts(&program, counted).await;
    let slices = of_member(&member);
    assert!(slices.get_opt("m1-one").await.unwrap().is_none());
    drop(program);
    let _program = stage.start(&[]);
    has(&member, "m1-one", true).await;
    let released = stage.condition("m3", "one", WITHHELD, FALSE).await;
    assert_eq!(released.reason, "Released");
}
