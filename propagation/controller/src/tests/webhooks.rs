//! Kinds that webhooks of users interpret. Those that are asked are on sockets: time is not virtual then.

use k8s_openapi::api::apps::v1::Deployment;
use karmada_api::Work;
use lab_parts::test_api::until;
use lab_parts::webhook::{Answer, WebhookServer, patch};

use super::*;

const WEBHOOKS: &str = "/apis/config.karmada.io/v1alpha1/resourceinterpreterwebhookconfigurations";

/// Starts a webhook that interprets Deployments.
async fn interpreter() -> WebhookServer {
    WebhookServer::start(|request| {
        let number = |pointer: &str| request.pointer(pointer).and_then(Value::as_i64);
        match request["operation"].as_str() {
            Some("InterpretReplica") => Answer::Fields(json!({
                "replicas": number("/object/spec/replicas").unwrap() * 10,
                "replicaRequirements": { "resourceRequest": { "cpu": "7" } },
            })),
            Some("ReviseReplica") => {
                let replicas = number("/replicas").unwrap() * 100;
                patch(&json!([{ "op": "replace", "path": "/spec/replicas", "value": replicas }]))
            }
            Some("InterpretDependency") => Answer::Fields(json!({ "dependencies": [
                { "apiVersion": "v1", "kind": "ConfigMap", "namespace": "shop", "name": "settings" },
            ] })),
            Some("AggregateStatus") => {
                let status = json!({ "readyReplicas": 1000 });
                patch(&json!([{ "op": "add", "path": "/status", "value": status }]))
            }
            other => panic!("{other:?}"),
        }
    })
    .await
}

impl Stage {
    /// Starts the program.
    fn run(&mut self) {
        self.running = Some(self.spawn(&["--leader-elect=false"]));
    }

    /// Waits until a binding is so.
    async fn bound_so(
        &self,
        name: &str,
        is_so: impl Fn(&ResourceBinding) -> bool,
    ) -> ResourceBinding {
        let bindings = Api::namespaced(self.user(), "shop");
        let bound = until(bindings, name, |binding| binding.is_some_and(&is_so)).await;
        bound.unwrap()
    }

    /// Waits for an Event of Deployments that begins so, and returns it.
    async fn told(&self, beginning: &str) -> String {
        let told = async {
            loop {
                let events = self.events("Deployment").await;
                let mut events = events.into_iter();
                if let Some(event) = events.find(|event| event.starts_with(beginning)) {
                    return event;
                }
                tokio::task::yield_now().await;
            }
        };
        tokio::time::timeout(Duration::from_secs(30), told)
            .await
            .unwrap()
    }
}

/// Case I79: a webhook gives a Deployment's replicas, the manifest with those of a cluster, its status and its
/// dependencies.
#[tokio::test]
async fn webhook_interprets_a_kind() {
    let server = interpreter().await;
    let mut stage = Stage::new().await;
    stage.join("m1").await;
    let hooks = server.configuration(&["*"], "apps", "Deployment");
    stage.send("POST", WEBHOOKS, &hooks).await;
    let following = policy("pp", &json!({ "propagateDeps": true }));
    stage.send("POST", POLICY, &following).await;
    stage.send("POST", DEPLOYMENT, &deployment()).await;
    let map = json!({ "metadata": { "name": "settings", "namespace": "shop" } });
    let maps = "/api/v1/namespaces/shop/configmaps";
    stage.send("POST", maps, &map).await;
    stage.run();
    let multiplied = stage.bound_so("web-deployment", |one| one.spec.replicas == Some(20));
    let spec = multiplied.await.spec;
    let needs = json!({ "namespace": "shop", "resourceRequest": { "cpu": "7" } });
    assert_eq!(spec.replica_requirements, Some(needs));

    let clusters = json!({ "spec": { "clusters": [{ "name": "m1", "replicas": 1 }] } });
    stage.send("PATCH", &bound(), &clusters).await;
    let works: Api<Work> = Api::namespaced(stage.user(), "karmada-es-m1");
    let name = names::work("Deployment", "shop", "web");
    let revised = until(works, &name, |work| {
        work.is_some_and(|work| work.spec.workload.manifests[0]["spec"]["replicas"] == 100)
    });
    revised.await;
    let attached = stage.bound_so("settings-configmap", |binding| {
        let required_by = binding.spec.required_by.iter().flatten();
        let names = required_by.map(|one| one.name.as_deref());
        names.eq([Some("web-deployment")])
    });
    attached.await;
    let deployments: Api<Deployment> = Api::namespaced(stage.user(), "shop");
    let reported = until(deployments, "web", |deployment| {
        let status = deployment.and_then(|deployment| deployment.status.as_ref());
        status.is_some_and(|status| status.ready_replicas == Some(1000))
    });
    reported.await;
}

/// Case I81: where a webhook fails there is no binding, and the template says why. Once its configuration is gone the
/// template is looked at again.
#[tokio::test]
async fn failed_webhook_makes_no_binding() {
    let no = json!({ "successful": false, "status": { "code": 400, "message": "no" } });
    let server = WebhookServer::start(move |_| Answer::Fields(no.clone())).await;
    let mut stage = Stage::new().await;
    let hooks = server.configuration(&["InterpretReplica"], "apps", "Deployment");
    stage.send("POST", WEBHOOKS, &hooks).await;
    stage.send("POST", POLICY, &policy("pp", &json!({}))).await;
    stage.send("POST", DEPLOYMENT, &deployment()).await;
    stage.run();
    let why = "failed calling webhook \"hooks/hook.example.com\": webhook call failed, get status code: 400, msg: no";
    let told = stage.told("GetReplicasFailed").await;
    assert_eq!(told, format!("GetReplicasFailed: {why}"));
    let bindings: Api<ResourceBinding> = Api::namespaced(stage.user(), "shop");
    assert_eq!(bindings.get_opt("web-deployment").await.unwrap(), None);
    let hooks = format!("{WEBHOOKS}/hooks");
    stage.send("DELETE", &hooks, &json!({})).await;
    let bound = stage.bound_so("web-deployment", |one| one.spec.replicas == Some(2));
    bound.await;
}

/// Case I83: a webhook that never answers delays no other kind, though more objects wait for it than are looked at at a
/// time.
#[tokio::test]
async fn silent_webhook_delays_no_other_kind() {
    let server = WebhookServer::start(|_| Answer::Never).await;
    let mut stage = Stage::new().await;
    let mut hooks = server.configuration(&["*"], "apps", "Deployment");
    hooks["webhooks"][0]["timeoutSeconds"] = json!(30);
    stage.send("POST", WEBHOOKS, &hooks).await;
    let both = json!({ "resourceSelectors": [
        { "apiVersion": "apps/v1", "kind": "Deployment" },
        { "apiVersion": "v1", "kind": "ConfigMap" },
    ] });
    stage.send("POST", POLICY, &policy("pp", &both)).await;
    for number in 0..20 {
        let mut deployment = deployment();
        deployment["metadata"]["name"] = json!(format!("web-{number}"));
        stage.send("POST", DEPLOYMENT, &deployment).await;
    }
    stage.run();
    let asked = async {
        while server.calls().len() < 8 {
            tokio::task::yield_now().await;
        }
    };
    tokio::time::timeout(Duration::from_secs(30), asked)
        .await
        .unwrap();
    let map = json!({ "metadata": { "name": "settings", "namespace": "shop" } });
    let maps = "/api/v1/namespaces/shop/configmaps";
    stage.send("POST", maps, &map).await;
    let start = std::time::Instant::now();
    stage.bound_so("settings-configmap", |_| true).await;
    // Nobody was given up meanwhile.
    assert!(start.elapsed() < Duration::from_secs(20));
    assert_eq!(server.calls().len(), 8);
}

/// A configuration that Karmada's webhook would refuse is told its problems.
#[tokio::test(start_paused = true)]
async fn wrong_configuration_is_told() {
    let mut stage = Stage::new().await;
    let hooks = json!({
        "apiVersion": "config.karmada.io/v1alpha1",
        "kind": "ResourceInterpreterWebhookConfiguration",
        "metadata": { "name": "hooks" },
        "webhooks": [{
            "name": "hook.example.com", "clientConfig": {},
            "rules": [{ "operations": ["*"], "apiGroups": ["apps"], "apiVersions": ["v1"], "kinds": ["Deployment"] }],
            "interpreterContextVersions": ["v1alpha1"],
        }],
    });
    stage.send("POST", WEBHOOKS, &hooks).await;
    stage.send("POST", POLICY, &policy("pp", &json!({}))).await;
    stage.send("POST", DEPLOYMENT, &deployment()).await;
    stage.start(&[]).await;
    let wrong = "exactly one of url or service is required";
    assert_eq!(
        stage
            .events("ResourceInterpreterWebhookConfiguration")
            .await,
        [format!(
            "InvalidCustomization: webhooks[0].clientConfig: Required value: {wrong}"
        )]
    );
    let events = stage.events("Deployment").await;
    let why =
        format!("GetReplicasFailed: failed calling webhook \"hooks/hook.example.com\": {wrong}");
    assert!(events.contains(&why), "{events:?}");
}
