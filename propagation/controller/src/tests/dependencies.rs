//! The objects that templates refer to follow them. The tests stand in for the scheduler and the members.

use karmada_api::Work;

use super::works::works;
use super::*;

const MAP: &str = "/api/v1/namespaces/shop/configmaps";
const SECRET: &str = "/api/v1/namespaces/shop/secrets";

fn settings() -> Value {
    json!({ "metadata": { "name": "settings", "namespace": "shop" }, "data": { "a": "1" } })
}

/// A Deployment of the name that refers to the `ConfigMap` `settings` and to a Secret.
fn referring(name: &str, secret: &str) -> Value {
    let mut deployment = deployment();
    deployment["metadata"]["name"] = json!(name);
    deployment["spec"]["template"]["spec"]["volumes"] = json!([
        { "name": "settings", "configMap": { "name": "settings" } },
        { "name": "keys", "secret": { "secretName": secret } },
    ]);
    deployment
}

/// A policy for every Deployment that lets dependencies follow.
fn following(spec: &Value) -> Value {
    let mut fields = json!({
        "resourceSelectors": [{ "apiVersion": "apps/v1", "kind": "Deployment" }],
        "propagateDeps": true,
    });
    for (field, value) in spec.as_object().unwrap() {
        fields[field] = value.clone();
    }
    policy("pp", &fields)
}

/// A policy for the `ConfigMap` alone.
fn own(spec: &Value) -> Value {
    let mut fields = json!({
        "resourceSelectors": [{ "apiVersion": "v1", "kind": "ConfigMap", "name": "settings" }],
    });
    for (field, value) in spec.as_object().unwrap() {
        fields[field] = value.clone();
    }
    policy("own", &fields)
}

fn attached() -> String {
    format!("{BINDING}/settings-configmap")
}

fn depended_by(referrer: &str) -> String {
    names::depended_by(&objects::Key::new("shop", referrer))
}

impl Stage {
    /// Returns the clusters in which each binding requires the map, as `<binding> <cluster>`.
    async fn required(&self) -> Vec<String> {
        let binding = self.get(&attached()).await;
        let snapshots = binding["spec"]["requiredBy"].as_array();
        let mut found = Vec::new();
        for by in snapshots.into_iter().flatten() {
            let referrer = by["name"].as_str().unwrap();
            let label = &binding["metadata"]["labels"][depended_by(referrer)];
            assert!(label.is_string(), "{binding}");
            for cluster in by["clusters"].as_array().into_iter().flatten() {
                found.push(format!("{referrer} {}", cluster["name"].as_str().unwrap()));
            }
        }
        found
    }

    /// Returns the value in the Work of the map for a cluster, unless it has none or that is leaving.
    async fn copy(&self, cluster: &str) -> Option<String> {
        let namespace = format!("karmada-es-{cluster}");
        let works: Api<Work> = Api::namespaced(self.user(), &namespace);
        let name = names::work("ConfigMap", "shop", "settings");
        let work = works.get_opt(&name).await.unwrap()?;
        if work.metadata.deletion_timestamp.is_some() {
            return None;
        }
        let value = &work.spec.workload.manifests[0]["data"]["a"];
        let paused = if work.is_suspended() { " paused" } else { "" };
        Some(format!("{}{paused}", value.as_str().unwrap()))
    }

    async fn copies(&self) -> [Option<String>; 2] {
        [self.copy("m1").await, self.copy("m2").await]
    }

    async fn schedule_binding(&self, name: &str, clusters: &[&str]) {
        let clusters = clusters.iter().map(|name| json!({ "name": name }));
        let clusters = clusters.collect::<Vec<_>>();
        let spec = json!({ "spec": { "clusters": clusters } });
        let path = format!("{BINDING}/{name}");
        self.change("PATCH", &path, &spec).await;
    }
}

fn everywhere(value: &str) -> [Option<String>; 2] {
    [Some(value.to_owned()), Some(value.to_owned())]
}

/// A fleet with a Deployment, a map and a Secret that it refers to, and a policy; without the program.
async fn prepared(policy: &Value) -> Stage {
    let stage = Stage::new().await;
    for cluster in ["m1", "m2"] {
        stage.join(cluster).await;
    }
    stage.send("POST", MAP, &settings()).await;
    let keys = json!({ "metadata": { "name": "keys", "namespace": "shop" } });
    stage.send("POST", SECRET, &keys).await;
    stage.send("POST", POLICY, policy).await;
    stage
        .send("POST", DEPLOYMENT, &referring("web", "keys"))
        .await;
    stage
}

/// A program and a Deployment that is scheduled to both clusters.
async fn followed() -> Stage {
    let mut stage = prepared(&following(&json!({}))).await;
    stage.start(&[]).await;
    stage.schedule(&["m1", "m2"]).await;
    stage
}

/// The dependencies of a template follow it.
#[tokio::test(start_paused = true)]
async fn dependencies_follow_template() {
    let mut stage = prepared(&following(&json!({}))).await;
    stage.start(&[]).await;
    stage.written();
    // Nothing is attached before the template has clusters.
    assert_eq!(stage.copies().await, [None, None]);
    let wrote = stage.schedule(&["m1", "m2"]).await;
    let count = |line: &str| wrote.iter().filter(|wrote| *wrote == line).count();
    assert_eq!(count(&format!("POST {BINDING}")), 2, "{wrote:?}");
    assert_eq!(count(&format!("POST {}", works("m1"))), 3, "{wrote:?}");
    assert_eq!(wrote.len(), 8, "{wrote:?}");
    assert_eq!(stage.copies().await, everywhere("1"));
    let expected = ["web-deployment m1", "web-deployment m2"];
    assert_eq!(stage.required().await, expected);
    let binding = stage.get(&attached()).await;
    assert_eq!(binding["spec"].get("placement"), None);
    assert_eq!(binding["spec"]["conflictResolution"], "Abort");

    // Neither time nor a restart is a reason to write.
    stage.kill().await;
    stage.start(&[]).await;
    assert_eq!(stage.written(), [""; 0]);

    // An edit flows at once, and so does another placement.
    let edit = json!({ "data": { "a": "2" } });
    let wrote = stage
        .change("PATCH", &format!("{MAP}/settings"), &edit)
        .await;
    assert_eq!(wrote.len(), 2, "{wrote:?}");
    assert_eq!(stage.copies().await, everywhere("2"));
    stage.schedule(&["m2"]).await;
    assert_eq!(stage.copies().await, [None, Some("2".to_owned())]);
    assert_eq!(stage.required().await, ["web-deployment m2"]);
}

/// Case P111: the binding of a dependency is in a version that the API does not serve any more.
#[tokio::test(start_paused = true)]
async fn dropped_version_is_left() {
    let stage = followed().await;
    let dropped = json!({ "spec": { "resource": { "apiVersion": "v2" } } });
    stage.change("PATCH", &attached(), &dropped).await;
    let binding = stage.get(&attached()).await;
    assert_eq!(binding["spec"]["resource"]["apiVersion"], "v1");
    assert_eq!(stage.copies().await, everywhere("1"));
}

/// A former dependency goes.
#[tokio::test(start_paused = true)]
async fn dropped_dependencies_go() {
    let stage = followed().await;
    let drop = json!({ "spec": { "template": { "spec": { "volumes": [] } } } });
    stage.change("PATCH", &web(DEPLOYMENT), &drop).await;
    assert_eq!(stage.copies().await, [None, None]);
    assert_eq!(stage.required().await, [""; 0]);
    let label = depended_by("web-deployment");
    let binding = stage.get(&attached()).await;
    assert_eq!(binding["metadata"]["labels"].get(&label), None);
    // It comes back.
    let again = referring("web", "keys");
    let again = json!({ "spec": { "template": again["spec"]["template"] } });
    stage.change("PATCH", &web(DEPLOYMENT), &again).await;
    assert_eq!(stage.required().await.len(), 2);
}

/// Nothing follows once the policy says so.
#[tokio::test(start_paused = true)]
async fn policy_ends_following() {
    let stage = followed().await;
    let off = json!({ "spec": { "propagateDeps": false } });
    let policy = format!("{POLICY}/pp");
    stage.change("PATCH", &policy, &off).await;
    assert_eq!(stage.copies().await, [None, None]);
    let metadata = stage.binding().await.metadata;
    assert_eq!(
        metadata.finalizers,
        Some(vec![names::BINDING_FINALIZER.to_owned()])
    );
    let annotations = metadata.annotations.unwrap();
    assert_eq!(annotations.get(names::DEPENDENCIES), None);
    assert_eq!(stage.change("PATCH", &policy, &off).await, [""; 0]);
}

/// The dependencies of a deleted binding go with it.
#[tokio::test(start_paused = true)]
async fn deleted_referrer_takes_dependencies() {
    let stage = followed().await;
    stage.change("DELETE", &bound(), &json!({})).await;
    // The policy makes the binding anew, which has no clusters yet.
    assert_eq!(stage.binding().await.spec.clusters, None);
    assert_eq!(stage.required().await, [""; 0]);
    assert_eq!(stage.copies().await, [None, None]);
}

/// A binding that vanished while nobody looked is required no more.
#[tokio::test(start_paused = true)]
async fn vanished_referrer_is_forgotten() {
    let mut stage = followed().await;
    stage.kill().await;
    stage
        .send("DELETE", &format!("{POLICY}/pp"), &json!({}))
        .await;
    stage.send("DELETE", &web(DEPLOYMENT), &json!({})).await;
    stage.send("DELETE", &bound(), &json!({})).await;
    let released = json!({ "metadata": { "finalizers": null } });
    stage.send("PATCH", &bound(), &released).await;
    stage.start(&[]).await;
    assert_eq!(stage.required().await, [""; 0]);
    assert_eq!(stage.copies().await, [None, None]);
}

/// Two templates share a dependency of both.
#[tokio::test(start_paused = true)]
async fn templates_share_dependencies() {
    let stage = followed().await;
    stage
        .change("POST", DEPLOYMENT, &referring("api", "keys"))
        .await;
    stage.schedule_binding("api-deployment", &["m2"]).await;
    assert_eq!(stage.required().await.len(), 3);
    stage.schedule(&["m1"]).await;
    assert_eq!(
        stage.required().await,
        ["web-deployment m1", "api-deployment m2"]
    );
    assert_eq!(stage.copies().await, everywhere("1"));
    stage.schedule(&[]).await;
    assert_eq!(stage.required().await, ["api-deployment m2"]);
    assert_eq!(stage.copies().await, [None, Some("1".to_owned())]);

    // They disagree about their shared dependency.
    stage.schedule(&["m2"]).await;
    let mut other = own(
        &json!({ "conflictResolution": "Overwrite", "propagateDeps": true, "priority": 1,
        "preemption": "Always" }),
    );
    other["spec"]["resourceSelectors"] =
        json!([{ "apiVersion": "apps/v1", "kind": "Deployment", "name": "api" }]);
    stage.change("POST", POLICY, &other).await;
    let binding = stage.get(&attached()).await;
    assert_eq!(binding["spec"]["conflictResolution"], "Overwrite");
    let notes = stage.events("ResourceBinding").await;
    let conflicts = notes
        .iter()
        .filter(|note| note.starts_with("DependencyPolicyConflict"));
    // One each about the map and the Secret.
    assert_eq!(conflicts.count(), 2, "{notes:?}");
}

/// An object that appears later follows then and one made anew again.
#[tokio::test(start_paused = true)]
async fn late_object_follows() {
    let mut stage = prepared(&following(&json!({}))).await;
    let map = format!("{MAP}/settings");
    stage.send("DELETE", &map, &json!({})).await;
    stage.start(&[]).await;
    stage.schedule(&["m1", "m2"]).await;
    assert_eq!(stage.copies().await, [None, None]);
    stage.change("POST", MAP, &settings()).await;
    assert_eq!(stage.copies().await, everywhere("1"));

    // It is deleted, and takes its binding along.
    stage.change("DELETE", &map, &json!({})).await;
    assert_eq!(stage.copies().await, [None, None]);
    let bindings: Api<ResourceBinding> = Api::namespaced(stage.user(), "shop");
    let gone = bindings.get_opt("settings-configmap").await.unwrap();
    assert_eq!(gone, None);
    stage.change("POST", MAP, &settings()).await;
    assert_eq!(stage.required().await.len(), 2);
}

/// A dependency with a policy of its own goes to the clusters of both.
#[tokio::test(start_paused = true)]
async fn own_policy_adds_clusters() {
    for is_first in [true, false] {
        let mut stage = prepared(&following(&json!({}))).await;
        if is_first {
            stage.send("POST", POLICY, &own(&json!({}))).await;
        }
        stage.start(&[]).await;
        stage.schedule(&["m2"]).await;
        if !is_first {
            stage.change("POST", POLICY, &own(&json!({}))).await;
        }
        stage.schedule_binding("settings-configmap", &["m1"]).await;
        assert_eq!(stage.required().await, ["web-deployment m2"]);
        let binding = stage.get(&attached()).await;
        assert!(binding["spec"]["placement"].is_object(), "{binding}");
        assert_eq!(claim_of(&binding), Some("own"));
        assert_eq!(stage.copies().await, everywhere("1"));
        stage.written();
        stage.kill().await;
        stage.start(&[]).await;
        assert_eq!(stage.written(), [""; 0], "{is_first}");

        stage.schedule(&[]).await;
        let alone = [Some("1".to_owned()), None];
        assert_eq!(stage.copies().await, alone, "{is_first}");
    }
}

/// Case P39: a dependency that waits for its Lazy policy is attached without its placement.
#[tokio::test(start_paused = true)]
async fn waiting_dependency_lacks_placement() {
    let mut stage = Stage::new().await;
    for cluster in ["m1", "m2"] {
        stage.join(cluster).await;
    }
    stage.send("POST", MAP, &settings()).await;
    stage.start(&[]).await;
    stage.settle().await;
    let lazy = own(&json!({ "activationPreference": "Lazy" }));
    stage.change("POST", POLICY, &lazy).await;
    stage.change("POST", POLICY, &following(&json!({}))).await;
    stage
        .change("POST", DEPLOYMENT, &referring("web", "keys"))
        .await;
    stage.schedule(&["m2"]).await;
    let binding = stage.get(&attached()).await;
    assert_eq!(binding["spec"].get("placement"), None);
    assert_eq!(stage.required().await, ["web-deployment m2"]);
    assert_eq!(
        claim_of(&stage.get(&format!("{MAP}/settings")).await),
        Some("own")
    );
    // Its edit reaches the bindings that require it, and activates the policy.
    let edit = json!({ "data": { "a": "2" } });
    stage
        .change("PATCH", &format!("{MAP}/settings"), &edit)
        .await;
    assert_eq!(stage.copies().await, [None, Some("2".to_owned())]);
    let binding = stage.get(&attached()).await;
    assert!(binding["spec"]["placement"].is_object(), "{binding}");
    assert_eq!(claim_of(&binding), Some("own"));
    assert_eq!(stage.required().await, ["web-deployment m2"]);
}

/// A pause holds dependencies and lets nothing go.
#[tokio::test(start_paused = true)]
async fn pause_holds_dependencies() {
    let stage = followed().await;
    let pause = json!({ "spec": { "suspension": { "dispatching": true } } });
    let edit = json!({ "data": { "a": "2" } });
    let (policy, map) = (format!("{POLICY}/pp"), format!("{MAP}/settings"));
    // An edit does not overtake the pause before it.
    futures::join!(
        stage.send("PATCH", &policy, &pause),
        stage.send("PATCH", &map, &edit),
    );
    stage.settle().await;
    assert_eq!(stage.copies().await, everywhere("2 paused"));
    let work = format!(
        "{}/{}",
        works("m1"),
        names::work("ConfigMap", "shop", "settings")
    );
    // At once: a version with the edit alone would have left.
    assert_eq!(stage.get(&work).await["metadata"]["generation"], 2);

    // The dependencies of the former template's copies stay, wherever they may be.
    let drop = json!({ "spec": { "template": { "spec": { "volumes": [] } } } });
    stage.change("PATCH", &web(DEPLOYMENT), &drop).await;
    stage.schedule(&["m2"]).await;
    assert_eq!(stage.copies().await, everywhere("2 paused"));
    let resume = json!({ "spec": { "suspension": null } });
    stage.change("PATCH", &policy, &resume).await;
    assert_eq!(stage.copies().await, [None, None]);
}

/// A policy that pauses in the edit by which it drops a template holds its dependencies no longer than it has it.
#[tokio::test(start_paused = true)]
async fn lost_claim_ends_pause() {
    let stage = followed().await;
    // The binding keeps the claim for a while.
    let refused = Fault::Conflict.kind("resourcebindings");
    let refused = refused.object("web-deployment").verbs([Verb::Patch]);
    let refused = stage.server.faults().inject(refused);
    let other = json!({ "apiVersion": "apps/v1", "kind": "Deployment", "name": "other" });
    let pause = json!({ "spec": {
        "resourceSelectors": [other],
        "suspension": { "dispatching": true },
    } });
    stage.change("PATCH", &format!("{POLICY}/pp"), &pause).await;
    assert_eq!(claim_of(&stage.get(&bound()).await), Some("pp"));
    assert_eq!(stage.copies().await, everywhere("1 paused"));

    stage.server.faults().remove(refused);
    // The next attempt may be as far away as the first one is past.
    stage.settle().await;
    stage.settle().await;
    assert_eq!(claim_of(&stage.get(&bound()).await), None);
    assert_eq!(stage.copies().await, everywhere("1"));
}

/// The dependencies of a template without a policy stay as they are.
#[tokio::test(start_paused = true)]
async fn unclaimed_templates_dependencies_stay() {
    let stage = followed().await;
    stage
        .change("DELETE", &format!("{POLICY}/pp"), &json!({}))
        .await;
    let drop = json!({ "spec": { "template": { "spec": { "volumes": [] } } } });
    let wrote = stage.change("PATCH", &web(DEPLOYMENT), &drop).await;
    assert_eq!(wrote, [""; 0]);
    assert_eq!(stage.copies().await, everywhere("1"));
}

/// A program killed at any write leaves nothing behind.
#[tokio::test(start_paused = true)]
async fn crash_after_each_write() {
    for after in 0..12 {
        let mut stage = prepared(&following(&json!({}))).await;
        stage.start(&[]).await;
        stage.limit_writes(after);
        stage.schedule(&["m1", "m2"]).await;
        stage.kill().await;
        stage.limit_writes(usize::MAX);
        stage.start(&[]).await;
        assert_eq!(stage.copies().await, everywhere("1"), "{after}");
        assert_eq!(stage.required().await.len(), 2, "{after}");

        // The same of its end.
        stage.limit_writes(after);
        let off = json!({ "spec": { "propagateDeps": false } });
        stage.change("PATCH", &format!("{POLICY}/pp"), &off).await;
        stage.kill().await;
        stage.limit_writes(usize::MAX);
        stage.start(&[]).await;
        assert_eq!(stage.required().await, [""; 0], "{after}");
        assert_eq!(stage.copies().await, [None, None], "{after}");
        let finalizers = stage.binding().await.metadata.finalizers.unwrap();
        assert_eq!(finalizers, [names::BINDING_FINALIZER], "{after}");
    }
}

/// Dependencies follow through refused and lost writes.
#[tokio::test(start_paused = true)]
async fn lost_writes_are_repeated() {
    for fault in [
        Fault::Conflict.every(2),
        Fault::LoseResponse.every(2),
        Fault::Unavailable
            .every(2)
            .verbs([Verb::Patch, Verb::Create, Verb::Delete]),
    ] {
        let mut stage = prepared(&following(&json!({}))).await;
        stage.start(&[]).await;
        stage.limit_writes(0);
        stage.schedule(&["m1", "m2"]).await;
        stage.kill().await;
        stage.limit_writes(usize::MAX);
        let name = format!("{fault:?}");
        stage.server.faults().inject(fault);
        stage.start(&[]).await;
        stage.settle().await;
        stage.settle().await;
        stage.server.faults().clear();
        assert_eq!(stage.copies().await, everywhere("1"), "{name}");
        assert_eq!(stage.required().await.len(), 2, "{name}");
    }
}
