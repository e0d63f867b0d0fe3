//! Policies that wait for the next edit of a template: the scenarios of the proposal, and the bounds of restarts
//! and hand-overs.

use super::*;

mod restarts;

/// The time after which a policy is younger than a template of the same test.
const LATER: Duration = Duration::from_secs(2);

/// Returns a policy that places Deployment `web` in one cluster.
fn placing(name: &str, cluster: &str, spec: &Value) -> Value {
    let mut policy = policy(name, spec);
    policy["spec"]["placement"] = placement(cluster);
    policy
}

fn lazily(name: &str, cluster: &str) -> Value {
    placing(name, cluster, &json!({ "activationPreference": "Lazy" }))
}

fn placement(cluster: &str) -> Value {
    json!({ "clusterAffinity": { "clusterNames": [cluster] } })
}

impl Stage {
    async fn running() -> Self {
        let mut stage = Self::new().await;
        stage.start(&[]).await;
        stage
    }

    async fn restart(&mut self) {
        self.kill().await;
        self.start(&[]).await;
    }

    /// Creates a policy, or changes its spec.
    async fn apply(&self, policy: &Value) {
        let path = format!("{POLICY}/{}", policy["metadata"]["name"].as_str().unwrap());
        let policies: Api<PropagationPolicy> = Api::namespaced(self.user(), "shop");
        let name = policy["metadata"]["name"].as_str().unwrap();
        if policies.get_opt(name).await.unwrap().is_none() {
            self.send("POST", POLICY, policy).await;
        } else {
            let mut current = self.get(&path).await;
            current["spec"] = policy["spec"].clone();
            self.send("PUT", &path, &current).await;
        }
        self.settle().await;
    }

    async fn remove(&self, name: &str) {
        self.send("DELETE", &format!("{POLICY}/{name}"), &json!({}))
            .await;
        self.settle().await;
    }

    async fn deploy(&self) {
        self.send("POST", DEPLOYMENT, &deployment()).await;
        self.settle().await;
    }

    async fn edit(&self) {
        let version = self.get(&web(DEPLOYMENT)).await["metadata"]["resourceVersion"].clone();
        let body = json!({ "metadata": { "labels": { "refresh-time": version } } });
        self.send("PATCH", &web(DEPLOYMENT), &body).await;
        self.settle().await;
    }

    /// Returns the cluster to which the binding asks to be scheduled; `None` without a binding.
    async fn placed(&self) -> Option<String> {
        let bindings: Api<ResourceBinding> = Api::namespaced(self.user(), "shop");
        let binding = bindings.get_opt("web-deployment").await.unwrap()?;
        let placement = binding.spec.placement.unwrap();
        let cluster = placement.pointer("/clusterAffinity/clusterNames/0");
        Some(cluster.unwrap().as_str().unwrap().to_owned())
    }

    /// Checks where the template goes, and which policy claims it.
    #[track_caller]
    fn expect(
        &self,
        cluster: Option<&'static str>,
        policy: Option<&'static str>,
    ) -> impl Future<Output = ()> {
        let at = std::panic::Location::caller();
        async move {
            assert_eq!(self.placed().await.as_deref(), cluster, "{at}");
            let template = self.get(&web(DEPLOYMENT)).await;
            assert_eq!(claim_of(&template), policy, "{at}");
        }
    }

    /// Returns status, reason and message of the binding's condition of a Lazy policy.
    async fn policy_applied(&self) -> Option<(String, String, String)> {
        let conditions = self.binding().await.status?.conditions?;
        let mut conditions = conditions.into_iter();
        let condition = conditions.find(|condition| condition.type_ == "PolicyApplied")?;
        Some((condition.status, condition.reason, condition.message))
    }
}

/// Case P30: the policy is there first.
#[tokio::test(start_paused = true)]
async fn later_template_is_propagated() {
    let mut stage = Stage::running().await;
    stage.apply(&lazily("pp", "m1")).await;
    stage.deploy().await;
    stage.expect(Some("m1"), Some("pp")).await;
    stage.remove("pp").await;
    stage.expect(Some("m1"), None).await;
    stage.restart().await;
    stage.expect(Some("m1"), None).await;
}

/// Case P31: the template is there first.
#[tokio::test(start_paused = true)]
async fn earlier_template_awaits_edit() {
    for knows_the_kind in [true, false] {
        let mut stage = Stage::running().await;
        if knows_the_kind {
            let mut other = lazily("other", "m3");
            other["spec"]["resourceSelectors"][0]["name"] = json!("other");
            stage.apply(&other).await;
        }
        stage.deploy().await;
        tokio::time::sleep(LATER).await;
        stage.apply(&lazily("pp", "m1")).await;
        stage.expect(None, Some("pp")).await;
        let note = "WaitsForTemplate: Templates follow generation 1 of this policy when they are edited next";
        assert_eq!(stage.events("PropagationPolicy").await, [note]);
        assert_eq!(stage.events("Deployment").await, [""; 0]);

        // No restart, no hand-over and no change of the policy propagates it.
        stage.written();
        stage.restart().await;
        assert_eq!(stage.written(), [""; 0]);
        stage.apply(&lazily("pp", "m2")).await;
        stage.expect(None, Some("pp")).await;
        stage.edit().await;
        stage.expect(Some("m2"), Some("pp")).await;
        stage.restart().await;
        assert_eq!(stage.events("PropagationPolicy").await.len(), 2);
    }
}

/// Case P43: Karmada leaves such a template alone for ever (W4).
#[tokio::test(start_paused = true)]
async fn unbound_template_follows_immediate_policy() {
    let stage = Stage::running().await;
    stage.deploy().await;
    tokio::time::sleep(LATER).await;
    stage.apply(&lazily("pp", "m1")).await;
    stage.expect(None, Some("pp")).await;
    stage.apply(&placing("pp", "m2", &json!({}))).await;
    stage.expect(Some("m2"), Some("pp")).await;
}

/// Cases P33, P40, P42 and P50: a change that waits, shown where people look and written nowhere else; a restart moves
/// nothing (W2).
#[tokio::test(start_paused = true)]
async fn policy_change_awaits_edit() {
    for first in [placing("pp", "m1", &json!({})), lazily("pp", "m1")] {
        let mut stage = Stage::running().await;
        stage.apply(&first).await;
        stage.deploy().await;
        assert_eq!(stage.policy_applied().await, None);
        stage.written();
        stage.apply(&lazily("pp", "m2")).await;
        stage.expect(Some("m1"), Some("pp")).await;
        let status = format!("PATCH {}/status", bound());
        // The record of the template's generation, which its claim has raised, may come before.
        assert_eq!(stage.written().last(), Some(&status));
        assert_eq!(stage.binding().await.metadata.generation, Some(1));
        let (is_applied, reason, message) = stage.policy_applied().await.unwrap();
        assert_eq!((&*is_applied, &*reason), ("False", "WaitsForTemplate"));
        let expected = "Generation 2 of policy shop/pp waits for the next edit of the template, which follows generation 1.";
        assert_eq!(message, expected);
        let note = "WaitsForTemplate: Templates follow generation 2 of this policy when they are edited next";
        assert_eq!(stage.events("PropagationPolicy").await, [note]);

        stage.restart().await;
        stage.expect(Some("m1"), Some("pp")).await;
        assert_eq!(stage.written(), [""; 0]);
        assert_eq!(stage.events("PropagationPolicy").await, [note]);

        stage.edit().await;
        stage.expect(Some("m2"), Some("pp")).await;
        assert_eq!(stage.written(), [format!("PATCH {}", bound()), status]);
        assert_eq!(stage.policy_applied().await.unwrap().0, "True");
    }
}

/// An edit right after the change of the policy is not lost.
#[tokio::test(start_paused = true)]
async fn edit_without_controller_counts() {
    let mut stage = Stage::running().await;
    stage.apply(&placing("pp", "m1", &json!({}))).await;
    stage.deploy().await;
    stage.kill().await;
    stage.apply(&lazily("pp", "m2")).await;
    stage.edit().await;
    stage.start(&[]).await;
    stage.expect(Some("m2"), Some("pp")).await;
}

/// Cases P34 and P35, which move the workload in Karmada (W2), and P41.
#[tokio::test(start_paused = true)]
async fn handed_over_template_waits() {
    for (is_deleted, is_lazy) in [(true, true), (false, true), (true, false), (false, false)] {
        let mut stage = Stage::running().await;
        stage.apply(&lazily("pp1", "m1")).await;
        stage.deploy().await;
        let second = if is_lazy {
            lazily("pp2", "m2")
        } else {
            placing("pp2", "m2", &json!({}))
        };
        stage.apply(&second).await;
        stage.expect(Some("m1"), Some("pp1")).await;
        if is_deleted {
            stage.remove("pp1").await;
        } else {
            let mut unmatched = lazily("pp1", "m1");
            unmatched["spec"]["resourceSelectors"][0]["name"] = json!("other");
            stage.apply(&unmatched).await;
        }
        if is_lazy {
            stage.expect(Some("m1"), Some("pp2")).await;
            let message = stage.policy_applied().await.unwrap().2;
            assert!(
                message.ends_with("which follows generation 1 of shop/pp1."),
                "{message}"
            );
            stage.restart().await;
            stage.expect(Some("m1"), Some("pp2")).await;
            stage.edit().await;
        }
        stage.expect(Some("m2"), Some("pp2")).await;
    }
}

/// Case P45: a selector that drops a template while it waits (W5).
#[tokio::test(start_paused = true)]
async fn dropped_template_is_let_go() {
    for (field, value) in [("name", "other"), ("kind", "StatefulSet")] {
        let stage = Stage::running().await;
        stage.deploy().await;
        tokio::time::sleep(LATER).await;
        stage.apply(&lazily("pp", "m1")).await;
        let mut unmatched = lazily("pp", "m1");
        unmatched["spec"]["resourceSelectors"][0][field] = json!(value);
        stage.apply(&unmatched).await;
        stage.expect(None, None).await;
        let annotations = &stage.get(&web(DEPLOYMENT)).await["metadata"]["annotations"];
        assert_eq!(annotations.get(names::CLAIMED_FINGERPRINT), None);
        stage.edit().await;
        stage.expect(None, None).await;
    }
}

#[tokio::test(start_paused = true)]
async fn a_pause_does_not_wait() {
    let stage = Stage::running().await;
    stage.apply(&lazily("pp", "m1")).await;
    stage.deploy().await;
    let mut paused = lazily("pp", "m2");
    paused["spec"]["suspension"] = json!({ "dispatching": true });
    stage.apply(&paused).await;
    stage.expect(Some("m1"), Some("pp")).await;
    let suspension = stage.binding().await.spec.suspension.unwrap();
    assert!(suspension.dispatching.suspends("m1"));
    stage.apply(&lazily("pp", "m2")).await;
    stage.expect(Some("m1"), Some("pp")).await;
    let suspension = stage.binding().await.spec.suspension.unwrap_or_default();
    assert!(!suspension.dispatching.suspends("m1"));
}

/// A pause alone is no change that waits.
#[tokio::test(start_paused = true)]
async fn ineffective_change_does_not_wait() {
    let stage = Stage::running().await;
    stage.apply(&lazily("pp", "m1")).await;
    stage.deploy().await;
    let mut paused = lazily("pp", "m1");
    paused["spec"]["suspension"] = json!({ "dispatching": true });
    stage.apply(&paused).await;
    assert_eq!(stage.policy_applied().await, None);
    assert_eq!(stage.events("PropagationPolicy").await, [""; 0]);
}

/// A binding deleted by hand is made again under a Lazy policy.
#[tokio::test(start_paused = true)]
async fn deleted_binding_is_recreated() {
    let stage = Stage::running().await;
    stage.deploy().await;
    tokio::time::sleep(LATER).await;
    stage.apply(&lazily("pp", "m1")).await;
    stage.edit().await;
    stage.expect(Some("m1"), Some("pp")).await;
    let uid = stage.binding().await.metadata.uid;
    stage.send("DELETE", &bound(), &json!({})).await;
    stage.settle().await;
    stage.expect(Some("m1"), Some("pp")).await;
    assert_ne!(stage.binding().await.metadata.uid, uid);
}

/// A user's PUT wipes the claim, and is an edit only if it changes something else.
#[tokio::test(start_paused = true)]
async fn wiped_claim_activates_nothing() {
    let stage = Stage::running().await;
    stage.apply(&lazily("pp", "m1")).await;
    stage.deploy().await;
    stage.apply(&lazily("pp", "m2")).await;
    for (replicas, cluster) in [(2, "m1"), (3, "m2")] {
        let mut object = deployment();
        object["spec"]["replicas"] = json!(replicas);
        stage.send("PUT", &web(DEPLOYMENT), &object).await;
        stage.settle().await;
        stage.expect(Some(cluster), Some("pp")).await;
    }
}

/// A binding that Karmada made is adopted as it is, whatever the Lazy policy says by now.
#[tokio::test(start_paused = true)]
async fn unrecorded_binding_stays() {
    for cluster in ["m1", "m2"] {
        let mut stage = Stage::running().await;
        stage.apply(&lazily("pp", "m1")).await;
        stage.deploy().await;
        stage.kill().await;
        stage.apply(&lazily("pp", cluster)).await;
        let wiped = json!({ "metadata": { "annotations": { names::ACTIVATED: null } } });
        stage.send("PATCH", &bound(), &wiped).await;
        stage.start(&[]).await;
        stage.expect(Some("m1"), Some("pp")).await;
        let waits = stage.policy_applied().await.map(|(status, ..)| status);
        assert_eq!(waits.as_deref(), (cluster == "m2").then_some("False"));
        stage.edit().await;
        let moved = if cluster == "m2" { "m2" } else { "m1" };
        stage.expect(Some(moved), Some("pp")).await;
    }
}

/// A controller that dies after any write of a hand-over moves nothing when the next one starts.
#[tokio::test(start_paused = true)]
async fn crash_in_hand_over() {
    let mut after = 0;
    loop {
        let mut stage = Stage::running().await;
        stage.apply(&lazily("pp1", "m1")).await;
        stage.deploy().await;
        stage.apply(&lazily("pp2", "m2")).await;
        stage.written();
        stage.limit_writes(after);
        stage.remove("pp1").await;
        let is_complete = stage.written().len() < after;
        stage.kill().await;
        stage.limit_writes(usize::MAX);
        stage.start(&[]).await;
        stage.expect(Some("m1"), Some("pp2")).await;
        stage.edit().await;
        stage.expect(Some("m2"), Some("pp2")).await;
        if is_complete {
            assert!(after > 2, "{after} writes");
            return;
        }
        after += 1;
    }
}
