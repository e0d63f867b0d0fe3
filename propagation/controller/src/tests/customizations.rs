//! Kinds that scripts of users interpret.

use super::works::{dispatched, work};
use super::*;

pub(super) const CUSTOMIZATION: &str =
    "/apis/config.karmada.io/v1alpha1/resourceinterpretercustomizations";

/// The scripts of a customization, by the fields that they stand in.
const SCRIPTS: [(&str, &str); 4] = [
    (
        "replicaResource",
        "local kube = require('kube')
        function GetReplicas(obj)
          return obj.spec.replicas * 10, kube.accuratePodRequirements(obj.spec.template)
        end",
    ),
    (
        "replicaRevision",
        "function ReviseReplica(obj, replicas)
          obj.spec.replicas = replicas * 100
          return obj
        end",
    ),
    (
        "statusAggregation",
        "function AggregateStatus(obj, items)
          local ready = 0
          for _, item in ipairs(items or {}) do
            if item.status then ready = ready + item.status.readyReplicas end
          end
          obj.status = { readyReplicas = ready + 1000 }
          return obj
        end",
    ),
    (
        "dependencyInterpretation",
        "function GetDependencies(obj)
          return { { apiVersion = 'v1', kind = 'ConfigMap', namespace = obj.metadata.namespace, name = 'settings' } }
        end",
    ),
];

/// Returns a customization of Deployments.
fn customization(name: &str, scripts: &[(&str, &str)]) -> Value {
    let scripts = scripts.iter();
    let scripts: serde_json::Map<_, _> = scripts
        .map(|(field, source)| ((*field).to_owned(), json!({ "luaScript": source })))
        .collect();
    json!({
        "apiVersion": "config.karmada.io/v1alpha1",
        "kind": "ResourceInterpreterCustomization",
        "metadata": { "name": name },
        "spec": {
            "target": { "apiVersion": "apps/v1", "kind": "Deployment" },
            "customizations": scripts,
        },
    })
}

fn failing(field: &str, function: &str) -> Value {
    let source = format!("function {function}() error('no', 0) end");
    customization("script", &[(field, &source)])
}

/// Returns the note of an Event about a failure.
fn told(reason: &str) -> String {
    format!("{reason}: no (ResourceInterpreterCustomization script)")
}

/// Returns a customization whose script is no Lua 5.1.
pub(super) fn unreadable() -> Value {
    let source = "function GetReplicas(obj)\n  goto done\n  ::done::\n  return 1\nend";
    customization("script", &[("replicaResource", source)])
}

pub(super) fn script() -> String {
    format!("{CUSTOMIZATION}/script")
}

impl Stage {
    async fn replicas_at(&self, cluster: &str) -> Value {
        let work = self.get(&work(cluster)).await;
        work["spec"]["workload"]["manifests"][0]["spec"]["replicas"].clone()
    }
}

/// Case I65: scripts give a Deployment's replicas, the manifest with those of a cluster, its status and its dependencies.
/// A restart writes nothing.
#[tokio::test(start_paused = true)]
async fn scripts_interpret_a_kind() {
    let mut stage = Stage::new().await;
    stage.join("m1").await;
    stage
        .send("POST", CUSTOMIZATION, &customization("script", &SCRIPTS))
        .await;
    let following = policy("pp", &json!({ "propagateDeps": true }));
    stage.send("POST", POLICY, &following).await;
    stage.send("POST", DEPLOYMENT, &deployment()).await;
    let map = json!({ "metadata": { "name": "settings", "namespace": "shop" } });
    let maps = "/api/v1/namespaces/shop/configmaps";
    stage.send("POST", maps, &map).await;
    stage.start(&[]).await;
    let spec = stage.binding().await.spec;
    assert_eq!(spec.replicas, Some(20));
    assert_eq!(
        spec.replica_requirements,
        Some(json!({ "namespace": "shop", "resourceRequest": { "cpu": "100m" } }))
    );

    stage.schedule(&["m1"]).await;
    assert_eq!(stage.replicas_at("m1").await, 100);
    let attached = stage.get(&format!("{BINDING}/settings-configmap")).await;
    assert_eq!(attached["spec"]["requiredBy"][0]["name"], "web-deployment");
    let template = stage.get(&web(DEPLOYMENT)).await;
    assert_eq!(template["status"]["readyReplicas"], 1000);

    stage.written();
    stage.kill().await;
    stage.start(&[]).await;
    assert_eq!(stage.written(), [""; 0]);
}

/// Case I68: a changed customization is applied to every object of its kind at once, and so is its end.
#[tokio::test(start_paused = true)]
async fn changed_script_is_applied() {
    let stage = dispatched().await;
    assert_eq!(stage.replicas_at("m2").await, 1);
    let first = customization("script", &SCRIPTS[..2]);
    stage.change("POST", CUSTOMIZATION, &first).await;
    assert_eq!(stage.replicas_at("m2").await, 100);
    assert_eq!(stage.binding().await.spec.replicas, Some(20));
    let second = "function ReviseReplica(obj, replicas) obj.spec.replicas = 7 return obj end";
    let second =
        json!({ "spec": { "customizations": { "replicaRevision": { "luaScript": second } } } });
    stage.change("PATCH", &script(), &second).await;
    assert_eq!(stage.replicas_at("m1").await, 7);
    stage.change("DELETE", &script(), &json!({})).await;
    assert_eq!(stage.replicas_at("m1").await, 1);
    assert_eq!(stage.binding().await.spec.replicas, Some(2));
}

/// Case I68: a changed customization is no edit: a template that waits for one under a Lazy policy goes on waiting.
#[tokio::test(start_paused = true)]
async fn changed_script_activates_nothing() {
    let mut stage = Stage::new().await;
    stage.send("POST", POLICY, &policy("pp", &json!({}))).await;
    stage.send("POST", DEPLOYMENT, &deployment()).await;
    stage.start(&[]).await;
    let lazy = json!({ "spec": { "activationPreference": "Lazy",
        "placement": { "clusterAffinity": { "clusterNames": ["m2"] } } } });
    stage.change("PATCH", &format!("{POLICY}/pp"), &lazy).await;
    let waiting = stage.binding().await.spec;
    let scripts = customization("script", &SCRIPTS[..1]);
    stage.change("POST", CUSTOMIZATION, &scripts).await;
    assert_eq!(stage.binding().await.spec, waiting);
    let edit = json!({ "metadata": { "labels": { "edited": "yes" } } });
    stage.change("PATCH", &web(DEPLOYMENT), &edit).await;
    assert_eq!(stage.binding().await.spec.replicas, Some(20));
}

/// Case I66: of two customizations for a kind the first by name decides, the other is told, and their
/// dependencies are united.
#[tokio::test(start_paused = true)]
async fn two_customizations_agree() {
    let stage = dispatched().await;
    let keys = "function GetDependencies(obj)
        return { { apiVersion = 'v1', kind = 'Secret', namespace = 'shop', name = 'keys' } } end";
    let ten = customization("a-script", &SCRIPTS);
    let other = "function GetReplicas(obj) return 3 end";
    let three = customization(
        "b-script",
        &[
            ("replicaResource", other),
            ("dependencyInterpretation", keys),
        ],
    );
    stage.send("POST", CUSTOMIZATION, &three).await;
    stage.send("POST", CUSTOMIZATION, &ten).await;
    let follow = json!({ "spec": { "propagateDeps": true } });
    stage
        .change("PATCH", &format!("{POLICY}/pp"), &follow)
        .await;
    let binding = stage.binding().await;
    assert_eq!(binding.spec.replicas, Some(20));
    let listed = &binding.metadata.annotations.unwrap()[names::DEPENDENCIES];
    assert!(
        listed.contains("settings") && listed.contains("keys"),
        "{listed}"
    );
    let conflict = "InvalidCustomization: conflicting with InterpreterOperation(InterpretReplica) of existing ResourceInterpreterCustomization(a-script)";
    let told = stage.events("ResourceInterpreterCustomization").await;
    assert_eq!(told, [conflict]);
}

/// Case I69: where the script fails that reads replicas, there is no binding, and the template says why, once.
#[tokio::test(start_paused = true)]
async fn failed_replicas_make_no_binding() {
    let mut stage = Stage::new().await;
    let script = failing("replicaResource", "GetReplicas");
    stage.send("POST", CUSTOMIZATION, &script).await;
    stage.send("POST", POLICY, &policy("pp", &json!({}))).await;
    stage.send("POST", DEPLOYMENT, &deployment()).await;
    stage.start(&[]).await;
    stage.settle().await;
    let bindings: Api<ResourceBinding> = Api::namespaced(stage.user(), "shop");
    assert_eq!(bindings.get_opt("web-deployment").await.unwrap(), None);
    let events = stage.events("Deployment").await;
    assert_eq!(
        events,
        [told("ApplyPolicyFailed"), told("GetReplicasFailed")]
    );
    stage
        .change("DELETE", &format!("{CUSTOMIZATION}/script"), &json!({}))
        .await;
    assert_eq!(stage.binding().await.spec.replicas, Some(2));
}

/// Case I69: where the script fails that revises replicas, the Works stay, and binding and template say why.
#[tokio::test(start_paused = true)]
async fn failed_revision_keeps_works() {
    let stage = dispatched().await;
    let before = stage.get(&work("m1")).await["spec"].clone();
    let script = failing("replicaRevision", "ReviseReplica");
    stage.change("POST", CUSTOMIZATION, &script).await;
    let image = json!({ "spec": { "minReadySeconds": 7 } });
    stage.change("PATCH", &web(DEPLOYMENT), &image).await;
    assert_eq!(stage.get(&work("m1")).await["spec"], before);
    for kind in ["Deployment", "ResourceBinding"] {
        let mut events = stage.events(kind).await;
        events.retain(|event| event.starts_with("SyncWorkFailed"));
        assert_eq!(events.len(), 1, "{events:?}");
        assert!(events[0].ends_with("no (ResourceInterpreterCustomization script)"));
    }
}

/// Case I69: where the scripts fail that put the status together and list dependencies, the status and the attached
/// bindings stay, and the template says why.
#[tokio::test(start_paused = true)]
async fn failed_scripts_change_nothing() {
    let stage = dispatched().await;
    let status = json!({ "status": { "readyReplicas": 5 } });
    stage
        .change("PATCH", &format!("{DEPLOYMENT}/web/status"), &status)
        .await;
    let follow = json!({ "spec": { "propagateDeps": true } });
    stage
        .change("PATCH", &format!("{POLICY}/pp"), &follow)
        .await;
    let before = stage.get(&web(DEPLOYMENT)).await["status"].clone();
    let aggregate = "function AggregateStatus() error('no', 0) end";
    let dependencies = "function GetDependencies() error('no', 0) end";
    let scripts = customization(
        "script",
        &[
            ("statusAggregation", aggregate),
            ("dependencyInterpretation", dependencies),
        ],
    );
    stage.change("POST", CUSTOMIZATION, &scripts).await;
    assert_eq!(stage.get(&web(DEPLOYMENT)).await["status"], before);
    let mut events = stage.events("Deployment").await;
    events.retain(|event| event.contains("Failed"));
    assert_eq!(
        events,
        [told("AggregateStatusFailed"), told("GetDependenciesFailed")]
    );
}

/// Case I74: a script that never ends delays no other kind.
#[tokio::test(start_paused = true)]
async fn endless_script_delays_no_other_kind() {
    let mut stage = Stage::new().await;
    let endless = "function GetReplicas(obj) while true do end end";
    let script = customization("script", &[("replicaResource", endless)]);
    stage.send("POST", CUSTOMIZATION, &script).await;
    let both = json!({ "resourceSelectors": [
        { "apiVersion": "apps/v1", "kind": "Deployment" },
        { "apiVersion": "v1", "kind": "ConfigMap" },
    ] });
    stage.send("POST", POLICY, &policy("pp", &both)).await;
    for name in ["web", "api", "db"] {
        let mut deployment = deployment();
        deployment["metadata"]["name"] = json!(name);
        stage.send("POST", DEPLOYMENT, &deployment).await;
    }
    let map = json!({ "metadata": { "name": "settings", "namespace": "shop" } });
    let maps = "/api/v1/namespaces/shop/configmaps";
    stage.send("POST", maps, &map).await;
    stage.start(&[]).await;
    let bound = stage.get(&format!("{BINDING}/settings-configmap")).await;
    assert_eq!(claim_of(&bound), Some("pp"));
    let bindings: Api<ResourceBinding> = Api::namespaced(stage.user(), "shop");
    assert_eq!(bindings.get_opt("web-deployment").await.unwrap(), None);
    let events = stage.events("Deployment").await;
    let reason = "GetReplicasFailed: context deadline exceeded";
    assert!(
        events.iter().any(|event| event.starts_with(reason)),
        "{events:?}"
    );
}

/// Case I76: a kind whose script is no Lua 5.1 is left alone. Template and customization say why.
#[tokio::test(start_paused = true)]
async fn unreadable_script_leaves_kind_alone() {
    let mut stage = Stage::new().await;
    stage.send("POST", CUSTOMIZATION, &unreadable()).await;
    stage.send("POST", POLICY, &policy("pp", &json!({}))).await;
    stage.send("POST", DEPLOYMENT, &deployment()).await;
    stage.start(&[]).await;
    assert_eq!(stage.written(), [format!("PATCH {POLICY}/pp")]);
    let events = stage.events("Deployment").await;
    assert_eq!(events.len(), 1);
    assert!(events[0].starts_with("ApplyPolicyFailed: "), "{events:?}");
    let told = stage.events("ResourceInterpreterCustomization").await;
    let expected = "InvalidCustomization: InterpreterOperation(InterpretReplica) Lua script error: <string>:2: goto is not supported";
    assert!(told.len() == 1 && told[0].starts_with(expected), "{told:?}");
    // Without the script the kind is one of ours.
    stage.change("DELETE", &script(), &json!({})).await;
    assert_eq!(claim_of(&stage.get(&bound()).await), Some("pp"));
}

/// Case I67: until every customization is known nothing is interpreted.
#[tokio::test(start_paused = true)]
async fn nothing_is_interpreted_unlisted() {
    let mut stage = Stage::new().await;
    let unlisted = Fault::InternalError.kind("resourceinterpretercustomizations");
    let unlisted = stage.server.faults().inject(unlisted.verbs([Verb::List]));
    stage
        .send(
            "POST",
            CUSTOMIZATION,
            &customization("script", &SCRIPTS[..1]),
        )
        .await;
    stage.send("POST", POLICY, &policy("pp", &json!({}))).await;
    stage.send("POST", DEPLOYMENT, &deployment()).await;
    stage.start(&[]).await;
    let bindings: Api<ResourceBinding> = Api::namespaced(stage.user(), "shop");
    assert_eq!(bindings.get_opt("web-deployment").await.unwrap(), None);
    stage.server.faults().remove(unlisted);
    stage.settle().await;
    stage.settle().await;
    assert_eq!(stage.binding().await.spec.replicas, Some(20));
}

/// Case I78: a status with a time in it settles.
#[tokio::test(start_paused = true)]
async fn timed_status_settles() {
    let stage = dispatched().await;
    let source = "function AggregateStatus(obj, items)
        obj.status = { conditions = { { type = 'Seen', status = 'True', lastTransitionTime = os.date('!%Y-%m-%dT%H:%M:%SZ', os.time() + math.random(100)) } } }
        return obj
    end";
    let script = customization("script", &[("statusAggregation", source)]);
    stage.change("POST", CUSTOMIZATION, &script).await;
    let status = stage.get(&web(DEPLOYMENT)).await["status"].clone();
    assert_eq!(status["conditions"][0]["type"], "Seen");
    let edit = json!({ "metadata": { "labels": { "edited": "yes" } } });
    stage.change("PATCH", &web(DEPLOYMENT), &edit).await;
    assert_eq!(stage.get(&web(DEPLOYMENT)).await["status"], status);
}
