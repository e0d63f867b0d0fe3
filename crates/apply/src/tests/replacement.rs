//! Objects that are replaced are as their manifests, and nothing else is written.

use proptest::prelude::*;

use super::*;

const SERVICE: &str = "/api/v1/namespaces/shop/services/web";
const ROLE: &str = "/apis/rbac.authorization.k8s.io/v1/clusterroles/shop-all";
const POLICY: &str = "/apis/networking.k8s.io/v1/namespaces/shop/networkpolicies/only-web";
const ONE_CONFIG: &str = "/apis/rbac.authorization.k8s.io/v1/namespaces/shop/roles/one-config";
const PULLER: &str = "/api/v1/namespaces/shop/serviceaccounts/puller";
const SHIRT: &str = "/apis/example.com/v1/namespaces/shop/shirts/one";
const SHIRTS: &str = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions/shirts.example.com";
const POD: &str = "/spec/template/spec";

/// Returns a source whose manifests are replaced.
fn replaced(manifests: &Value) -> Source {
    Source {
        style: WriteStyle::Replace,
        ..source(manifests)
    }
}

/// Returns the manifest with the list of its labels, as Karmada writes one.
fn listed(mut manifest: Value) -> Value {
    let labels = manifest["metadata"]["labels"].as_object().unwrap();
    let labels: Vec<_> = labels.keys().map(String::as_str).collect();
    manifest["metadata"]["annotations"][LABELS] = json!(labels.join(","));
    manifest
}

fn service() -> Value {
    json!({ "apiVersion": "v1", "kind": "Service", "metadata": metadata("web"), "spec": {
        "selector": { "app": "web" },
        "ports": [{ "name": "http", "port": 80, "targetPort": 8080 }] } })
}

fn network_policy() -> Value {
    json!({ "apiVersion": "networking.k8s.io/v1", "kind": "NetworkPolicy", "metadata": metadata("only-web"),
        "spec": { "podSelector": {}, "ingress": [{
            "from": [{ "podSelector": { "matchLabels": { "app": "web" } } }],
            "ports": [{ "port": 80 }] }] } })
}

fn role() -> Value {
    json!({ "apiVersion": "rbac.authorization.k8s.io/v1", "kind": "Role", "metadata": metadata("one-config"),
        "rules": [{ "apiGroups": [""], "resources": ["configmaps"], "resourceNames": ["settings"], "verbs": ["get"] }] })
}

impl Stage {
    /// Syncs a source of one manifest, which succeeds, and returns the note on it.
    async fn note(&self, source: &Source) -> Option<String> {
        let mut synced = self.sync(source).await;
        let synced = synced.remove(0);
        assert!(synced.error.is_none(), "{:?}", synced.error);
        synced.note
    }

    /// Starts anew, as after a crash once the report was written.
    async fn restarted(&self, source: &mut Source) -> Self {
        let note = self.note(source).await;
        source.last_write = LastWrite::OfManifest;
        source.notes = format!("applied; {}", note.unwrap_or_default());
        self.api.writes();
        self.watches.abort();
        Self::of(self.api.clone()).watch().await
    }

    /// Changes an object by a JSON patch of somebody else.
    async fn edit(&self, path: &str, edits: &Value) {
        self.patch(path, "application/json-patch+json", edits).await;
    }

    /// Applies to an object as another program.
    async fn apply_as(&self, manager: &str, path: &str, object: &Value) {
        let path = format!("{path}?fieldManager={manager}&force=true");
        self.patch(&path, "application/apply-patch+yaml", object)
            .await;
    }

    async fn patch(&self, path: &str, content_type: &str, body: &Value) {
        let request = http::Request::patch(path).header("Content-Type", content_type);
        let request = request.body(body.to_string().into_bytes()).unwrap();
        let _: Value = self.api.user().request(request).await.unwrap();
    }
}

/// Cases P70 and P110: whatever somebody adds to an object, or renames in it, is gone after a sync, and after a restart: in
/// lists with keys and without, in unions and empty selectors, of kinds with a generation and without.
#[tokio::test(start_paused = true)]
#[expect(clippy::too_many_lines, reason = "a table of cases")]
async fn changes_are_taken_back() {
    let container = format!("{POD}/containers/0");
    let mut web = deployment();
    let pod = web.pointer_mut(POD).unwrap();
    pod["volumes"] = json!([{ "name": "cache", "emptyDir": {} }]);
    pod["containers"][0]["readinessProbe"] = json!({ "httpGet": { "path": "/", "port": 80 } });
    pod["containers"][0]["ports"] = json!([{ "containerPort": 80 }]);
    pod["tolerations"] = json!([{ "key": "gpu", "operator": "Exists" }]);
    let replace =
        |path: &str, value: Value| json!([{ "op": "replace", "path": path, "value": value }]);
    let add = |path: &str, value: Value| json!([{ "op": "add", "path": path, "value": value }]);
    for (manifest, path, edits) in [
        (
            service(),
            SERVICE,
            replace("/spec/ports/0/port", json!(8080)),
        ),
        (
            service(),
            SERVICE,
            add("/spec/ports/-", json!({ "name": "x", "port": 81 })),
        ),
        (
            service(),
            SERVICE,
            add("/spec/selector/version", json!("2")),
        ),
        (
            web.clone(),
            WEB,
            replace(&format!("{container}/name"), json!("other")),
        ),
        (
            web.clone(),
            WEB,
            add(
                &format!("{POD}/containers/-"),
                json!({ "name": "x", "image": "x:1" }),
            ),
        ),
        (
            web.clone(),
            WEB,
            replace(&format!("{container}/ports/0/containerPort"), json!(81)),
        ),
        (
            web.clone(),
            WEB,
            add(
                &format!("{container}/env"),
                json!([{ "name": "A", "value": "1" }]),
            ),
        ),
        (
            web.clone(),
            WEB,
            replace(
                &format!("{container}/readinessProbe"),
                json!({ "exec": { "command": ["x"] } }),
            ),
        ),
        (
            web.clone(),
            WEB,
            replace(
                &format!("{POD}/volumes/0"),
                json!({ "name": "cache", "hostPath": { "path": "/" } }),
            ),
        ),
        (
            web.clone(),
            WEB,
            add(&format!("{POD}/tolerations/0/effect"), json!("NoSchedule")),
        ),
        (
            network_policy(),
            POLICY,
            add("/spec/ingress/0/from/0/namespaceSelector", json!({})),
        ),
        (
            network_policy(),
            POLICY,
            add("/spec/podSelector/matchLabels", json!({ "app": "db" })),
        ),
        (
            role(),
            ONE_CONFIG,
            json!([{ "op": "remove", "path": "/rules/0/resourceNames" }]),
        ),
        (settings(), SETTINGS, add("/data/theirs", json!("x"))),
    ] {
        let mut stage = Stage::watching().await;
        let mut source = replaced(&json!([manifest]));
        assert!(stage.error(&source).await.is_none());
        let before = content(&stage, path).await;
        stage.edit(path, &edits).await;
        for _ in 0..2 {
            // The others are not watched here.
            if [WEB, SETTINGS].contains(&path) {
                stage.woken().await;
            }
        }
        let stage = stage.restarted(&mut source).await;
        assert_eq!(content(&stage, path).await, before, "{edits}");
        stage.edit(path, &edits).await;
        let stage = Stage::of(stage.api.clone()).watch().await;
        assert!(stage.error(&source).await.is_none());
        assert_eq!(content(&stage, path).await, before, "{edits}");
        let stage = stage.restarted(&mut source).await;
        assert!(stage.error(&source).await.is_none());
        assert_eq!(stage.api.writes(), [""; 0], "{edits}");
    }
}

async fn content(stage: &Stage, path: &str) -> Value {
    let mut object = stage.api.find(path).await.unwrap();
    object.as_object_mut().unwrap().remove("metadata");
    object
}

/// Case P71: an element that another program has touched leaves with the manifest's.
#[tokio::test(start_paused = true)]
async fn touched_sidecar_leaves() {
    let mut stage = Stage::watching().await;
    let mut manifest = listed(deployment());
    let containers = manifest.pointer_mut(&format!("{POD}/containers")).unwrap();
    let containers = containers.as_array_mut().unwrap();
    containers.push(json!({ "name": "proxy", "image": "proxy:1" }));
    let mut source = replaced(&json!([manifest]));
    assert!(stage.error(&source).await.is_none());
    stage.woken().await;
    let limits = json!({ "name": "proxy", "resources": { "limits": { "cpu": "1" } } });
    let tuned = json!({ "apiVersion": "apps/v1", "kind": "Deployment", "metadata": { "name": "web" },
        "spec": { "template": { "spec": { "containers": [limits] } } } });
    stage.apply_as("tuner", WEB, &tuned).await;
    stage.woken().await;
    source.generation = 2;
    source.manifests = vec![listed(deployment())];
    assert!(stage.error(&source).await.is_none());
    let web = stage.api.find(WEB).await.unwrap();
    let containers = web.pointer(&format!("{POD}/containers")).unwrap();
    assert_eq!(containers.as_array().unwrap().len(), 1);
    assert_eq!(containers[0]["name"], "web");
}

/// Case P72: rules that the member adds up stay, at once, at the next edit, and after a restart.
#[tokio::test(start_paused = true)]
async fn aggregated_rules_stay() {
    let mut meta = metadata("shop-all");
    meta.as_object_mut().unwrap().remove("namespace");
    let selectors = json!([{ "matchLabels": { "aggregate-to-shop": "true" } }]);
    let role = json!({ "apiVersion": "rbac.authorization.k8s.io/v1", "kind": "ClusterRole", "metadata": meta,
        "aggregationRule": { "clusterRoleSelectors": selectors }, "rules": [] });
    let stage = Stage::watching().await;
    let mut source = replaced(&json!([role]));
    assert!(stage.error(&source).await.is_none());
    let rules = json!([{ "apiGroups": [""], "resources": ["pods"], "verbs": ["get"] }]);
    let added = json!({ "apiVersion": "rbac.authorization.k8s.io/v1", "kind": "ClusterRole",
        "metadata": { "name": "shop-all" }, "rules": rules });
    stage
        .apply_as("clusterrole-aggregation-controller", ROLE, &added)
        .await;
    stage.api.writes();
    assert!(stage.error(&source).await.is_none());
    assert_eq!(stage.api.writes(), [""; 0]);
    source.generation = 2;
    source.manifests[0]["metadata"]["labels"]["team"] = json!("b");
    assert!(stage.error(&source).await.is_none());
    let role = stage.api.find(ROLE).await.unwrap();
    assert_eq!(role["rules"], rules);
    assert_eq!(role["metadata"]["labels"]["team"], "b");
    let stage = stage.restarted(&mut source).await;
    assert!(stage.error(&source).await.is_none());
    assert_eq!(stage.api.writes(), [""; 0]);
}

/// Returns a list of Secrets of a `ServiceAccount`.
fn secrets(names: &[&str]) -> Value {
    let secrets = names.iter().map(|name| json!({ "name": name }));
    Value::from(secrets.collect::<Vec<_>>())
}

fn account(names: &[&str]) -> Value {
    json!({ "apiVersion": "v1", "kind": "ServiceAccount", "metadata": metadata("puller"),
        "imagePullSecrets": secrets(names) })
}

/// Case P118: a pull secret leaves with the manifest's, and one that the member has added stays. At rest and after a restart nothing
/// is written.
#[tokio::test(start_paused = true)]
async fn own_pull_secrets_leave() {
    let stage = Stage::watching().await;
    let mut source = replaced(&json!([account(&["old", "new"])]));
    assert!(stage.error(&source).await.is_none());
    let more =
        json!([{ "op": "add", "path": "/imagePullSecrets/-", "value": { "name": "cluster" } }]);
    stage.edit(PULLER, &more).await;
    assert!(stage.error(&source).await.is_none());
    let puller = stage.api.find(PULLER).await.unwrap();
    assert_eq!(
        puller["imagePullSecrets"],
        secrets(&["old", "new", "cluster"])
    );

    source.generation = 2;
    source.manifests = vec![account(&["new"])];
    assert!(stage.error(&source).await.is_none());
    let puller = stage.api.find(PULLER).await.unwrap();
    assert_eq!(puller["imagePullSecrets"], secrets(&["new", "cluster"]));
    let stage = stage.restarted(&mut source).await;
    assert!(stage.error(&source).await.is_none());
    assert_eq!(stage.api.writes(), [""; 0]);
}

/// A pull secret that the member has added stays where a script has a say, too: the object that a script is shown has it,
/// and is not the manifest.
#[tokio::test(start_paused = true)]
async fn interpreted_account_keeps_additions() {
    let interpreted = |names: &[&str], label: &str| {
        let mut account = account(names);
        let labels = &mut account["metadata"]["labels"];
        labels["is-interpreted"] = json!("true");
        labels["edit"] = json!(label);
        account
    };
    let stage = Stage::watching().await;
    let mut source = replaced(&json!([interpreted(&["old", "new"], "0")]));
    assert!(stage.error(&source).await.is_none());
    let more =
        json!([{ "op": "add", "path": "/imagePullSecrets/-", "value": { "name": "cluster" } }]);
    stage.edit(PULLER, &more).await;
    let edits: [(i64, &[&str], &[&str]); 3] = [
        (2, &["old", "new"], &["old", "new", "cluster"]),
        (3, &["new"], &["new", "cluster"]),
        (4, &["new"], &["new", "cluster"]),
    ];
    for (generation, wanted, expected) in edits {
        source.generation = generation;
        source.manifests = vec![interpreted(wanted, &generation.to_string())];
        assert!(stage.error(&source).await.is_none());
        let puller = stage.api.find(PULLER).await.unwrap();
        assert_eq!(
            puller["imagePullSecrets"],
            secrets(expected),
            "{generation}"
        );
    }
}

/// Case P110: a default of the cluster within an element that nobody may share is no change: not at rest, not after a
/// restart. Somebody who has set it to the same owns the whole list, until we do so again.
#[tokio::test(start_paused = true)]
async fn defaults_in_elements_stay() {
    let stage = Stage::watching().await;
    let sleeve = json!({ "type": "object", "properties": {
        "side": { "type": "string" }, "length": { "type": "integer", "default": 60 } } });
    let definition = shirts(&json!({ "sleeves": { "type": "array", "items": sleeve } }));
    stage.api.install([definition]);
    let shirt = json!({ "apiVersion": "example.com/v1", "kind": "Shirt", "metadata": metadata("one"),
        "spec": { "sleeves": [{ "side": "left" }] } });
    let mut source = replaced(&json!([shirt]));
    assert!(stage.error(&source).await.is_none());
    let before = content(&stage, SHIRT).await;
    assert_eq!(before["spec"]["sleeves"][0]["length"], 60);
    let put = format!("PUT {SHIRT}");
    for (length, writes) in [(30, vec![put.clone()]), (60, vec![])] {
        for length in [1, length] {
            let edits =
                json!([{ "op": "replace", "path": "/spec/sleeves/0/length", "value": length }]);
            stage.edit(SHIRT, &edits).await;
        }
        stage.api.writes();
        assert!(stage.error(&source).await.is_none());
        assert_eq!(stage.api.writes(), writes, "{length}");
        assert_eq!(content(&stage, SHIRT).await, before);
    }
    let mut stage = stage;
    for writes in [vec![put], vec![]] {
        stage = stage.restarted(&mut source).await;
        assert!(stage.error(&source).await.is_none());
        assert_eq!(stage.api.writes(), writes);
    }
}

fn shirts(fields: &Value) -> Value {
    let schema = json!({ "type": "object", "properties": {
        "spec": { "type": "object", "properties": fields } } });
    json!({
        "apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition",
        "metadata": { "name": "shirts.example.com" },
        "spec": { "group": "example.com", "scope": "Namespaced",
            "names": { "plural": "shirts", "singular": "shirt", "kind": "Shirt" },
            "versions": [{ "name": "v1", "served": true, "storage": true,
                "schema": { "openAPIV3Schema": schema } }] },
    })
}

/// Case P73: a field that a member does not know is left out and noted, without a write at rest or after a restart, and
/// written once it knows it: also if it learned it while nobody looked.
#[tokio::test(start_paused = true)]
async fn unknown_field_awaits_its_schema() {
    for is_restarted in [false, true] {
        let stage = Stage::watching().await;
        let older = json!({ "size": { "type": "integer" } });
        stage.api.install([shirts(&older)]);
        let shirt = json!({ "apiVersion": "example.com/v1", "kind": "Shirt", "metadata": metadata("one"),
            "spec": { "size": 1, "color": "red" } });
        let mut source = replaced(&json!([shirt]));
        let note = stage.note(&source).await.unwrap();
        assert!(
            note.ends_with(" lacks spec.color of Shirt shop/one"),
            "{note}"
        );
        assert_eq!(
            stage.api.find(SHIRT).await.unwrap()["spec"],
            json!({ "size": 1 })
        );
        let mut stage = stage.restarted(&mut source).await;
        let kind = GroupVersionKind::new("example.com/v1", "Shirt");
        stage.member.want(BTreeSet::from([kind]));
        while let SyncResult::Later(_) = stage.member.sync(&stage.writes, &source.set()).await {
            stage.woken().await;
        }
        for _ in 0..3 {
            assert_eq!(stage.note(&source).await.as_ref(), Some(&note));
            tokio::time::advance(Duration::from_mins(1)).await;
        }
        assert_eq!(stage.api.writes(), [""; 0]);
        let mut definition =
            shirts(&json!({ "size": { "type": "integer" }, "color": { "type": "string" } }));
        definition["metadata"] = json!({ "name": "shirts.example.com" });
        stage
            .api
            .send("PATCH", SHIRTS, &json!({ "spec": definition["spec"] }))
            .await;
        if is_restarted {
            stage.watches.abort();
            stage = Stage::of(stage.api.clone()).watch().await;
        }
        assert_eq!(stage.note(&source).await, None);
        let spec = &stage.api.find(SHIRT).await.unwrap()["spec"];
        assert_eq!(*spec, json!({ "size": 1, "color": "red" }));
    }
}

/// Case P73: a built-in kind of an older member fares alike.
#[tokio::test(start_paused = true)]
async fn built_in_unknowns_are_noted() {
    let stage = Stage::watching().await;
    let mut manifest = deployment();
    manifest.pointer_mut(POD).unwrap()["fromTheFuture"] = json!({ "a": 1 });
    let mut source = replaced(&json!([manifest]));
    let note = stage.note(&source).await.unwrap();
    let end = " lacks spec.template.spec.fromTheFuture of Deployment shop/web";
    assert!(note.ends_with(end), "{note}");
    let stage = stage.restarted(&mut source).await;
    assert_eq!(stage.note(&source).await, Some(note));
    assert_eq!(stage.api.writes(), [""; 0]);
}

fn with_node_ports(name: &str, ports: &[u16]) -> Value {
    let ports = ports
        .iter()
        .map(|port| json!({ "name": port.to_string(), "port": port - 30_000, "nodePort": port }));
    json!({ "apiVersion": "v1", "kind": "Service", "metadata": metadata(name),
        "spec": { "type": "NodePort", "ports": ports.collect::<Vec<_>>() } })
}

fn node_ports(service: &Value) -> Vec<Value> {
    let ports = service["spec"]["ports"].as_array().unwrap().iter();
    ports.map(|port| port["nodePort"].clone()).collect()
}

/// Case P114: a node port that was allocated elsewhere, and that the member has given to another, is left to it, which is
/// noted; the others are as they are to be. At rest and after a restart nothing is written. One that was asked for is not.
#[tokio::test(start_paused = true)]
async fn taken_node_port_is_left() {
    const SERVICES: &str = "/api/v1/namespaces/shop/services";
    let stage = Stage::watching().await;
    let other = with_node_ports("other", &[30_080]);
    stage.api.send("POST", SERVICES, &other).await;
    let mut source = replaced(&json!([with_node_ports("web", &[30_080, 30_443])]));
    let error = stage.error(&source).await.unwrap();
    assert!(error.to_string().contains("already allocated"), "{error}");
    source.manifests[0]["metadata"]["annotations"][ALLOCATED] = json!("30080,30443");
    let note = stage.note(&source).await.unwrap();
    assert!(
        note.starts_with("the member refuses node port 30080 of Service shop/web"),
        "{note}"
    );
    let web = stage.api.find(SERVICE).await.unwrap();
    assert_eq!(node_ports(&web), [Value::Null, json!(30_443)]);
    // As a real API server does at the creation.
    let chosen = json!([{ "op": "add", "path": "/spec/ports/0/nodePort", "value": 31_000 }]);
    stage.edit(SERVICE, &chosen).await;
    let stage = stage.restarted(&mut source).await;
    for _ in 0..2 {
        assert_eq!(stage.note(&source).await.as_ref(), Some(&note));
    }
    let web = stage.api.find(SERVICE).await.unwrap();
    assert_eq!(node_ports(&web), [31_000, 30_443]);
    assert_eq!(stage.api.writes(), [""; 0]);

    stage
        .api
        .send("DELETE", &format!("{SERVICES}/other"), &json!({}))
        .await;
    source.generation = 2;
    source.manifests[0]["metadata"]["labels"]["new"] = json!("edit");
    assert_eq!(stage.note(&source).await, None);
    let web = stage.api.find(SERVICE).await.unwrap();
    assert_eq!(node_ports(&web), [30_080, 30_443]);
}

/// An object that was never there is created without a look, one as we have left it is edited without one, and labels go.
#[tokio::test(start_paused = true)]
async fn own_objects_need_no_read() {
    let mut stage = Stage::watching().await;
    stage.read();
    let mut labelled = deployment();
    labelled["metadata"]["labels"]["gone"] = json!("x");
    let mut source = replaced(&json!([listed(labelled)]));
    assert!(stage.error(&source).await.is_none());
    stage.woken().await;
    // As the Deployment's controller does.
    let revision =
        json!({ "metadata": { "annotations": { "deployment.kubernetes.io/revision": "1" } } });
    stage.api.send("PATCH", WEB, &revision).await;
    stage.woken().await;
    assert!(stage.error(&source).await.is_none());
    source.generation = 2;
    source.manifests = vec![listed(deployment())];
    source.manifests[0]["spec"]["replicas"] = json!(3);
    assert!(stage.error(&source).await.is_none());
    assert_eq!(
        stage.api.writes(),
        [format!("POST {DEPLOYMENTS}"), format!("PUT {WEB}")]
    );
    assert_eq!(stage.read(), [""; 0]);
    let web = stage.api.find(WEB).await.unwrap();
    assert_eq!(web["spec"]["replicas"], 3);
    assert_eq!(web["metadata"]["labels"], json!({ OWNED: "true" }));
    assert_eq!(
        web["metadata"]["annotations"]["deployment.kubernetes.io/revision"],
        "1"
    );
}

/// An object of somebody else is found by the creation that it stops, and from then on before one.
#[tokio::test(start_paused = true)]
async fn foreign_object_stops_creation() {
    let stage = Stage::watching().await;
    let theirs = json!({ "metadata": { "name": "settings" }, "data": { "theirs": "x" } });
    stage.api.send("POST", MAPS, &theirs).await;
    let mut source = replaced(&json!([settings()]));
    for writes in [vec![format!("POST {MAPS}")], vec![]] {
        let error = stage.error(&source).await.unwrap();
        assert!(matches!(error, MemberError::Refused { .. }), "{error}");
        assert_eq!(stage.api.writes(), writes);
    }
    source.manifests[0]["metadata"]["annotations"][ADOPTS] = json!("true");
    assert!(stage.error(&source).await.is_none());
    let data = stage.api.find(SETTINGS).await.unwrap()["data"].clone();
    assert_eq!(data, settings()["data"]);
    let stage = stage.restarted(&mut source).await;
    assert!(stage.error(&source).await.is_none());
    assert_eq!(stage.api.writes(), [""; 0]);
}

/// An edit that was stored and not reported before a crash is not taken for a converged object.
#[tokio::test(start_paused = true)]
async fn unreported_edit_is_finished() {
    for (manifest, path) in [
        (deployment(), WEB),
        (settings(), SETTINGS),
        (service(), SERVICE),
    ] {
        let stage = Stage::watching().await;
        let mut more = manifest.clone();
        if path == SETTINGS {
            more["data"]["former"] = json!("x");
        } else {
            more["spec"]["minReadySeconds"] = json!(5);
            more["spec"]["externalName"] = json!("former");
        }
        assert!(stage.error(&replaced(&json!([more]))).await.is_none());
        stage.watches.abort();
        let stage = Stage::of(stage.api.clone()).watch().await;
        let mut source = replaced(&json!([manifest]));
        source.generation = 2;
        assert!(stage.error(&source).await.is_none());
        let object = stage.api.find(path).await.unwrap();
        for gone in [
            "/data/former",
            "/spec/minReadySeconds",
            "/spec/externalName",
        ] {
            assert_eq!(object.pointer(gone), None, "{path}");
        }
    }
}

/// Another's write between the look and ours is looked at again, more than once.
#[tokio::test(start_paused = true)]
async fn conflicts_are_read_again() {
    let stage = Stage::watching().await;
    let mut source = replaced(&json!([settings()]));
    assert!(stage.error(&source).await.is_none());
    source.generation = 2;
    source.manifests[0]["data"]["more"] = json!("y");
    let conflicts = Fault::Conflict.verbs([Verb::Update]).times(3);
    stage.api.server.faults().inject(conflicts);
    assert!(stage.error(&source).await.is_none());
    let data = stage.api.find(SETTINGS).await.unwrap()["data"].clone();
    assert_eq!(data["more"], "y");
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 64, ..ProptestConfig::default() })]
    /// Cases P74 and F57: any text arrives equal, in any field, whichever way it is written.
    #[test]
    fn texts_arrive_equal(text in "(.|[ \u{7f}-\u{9f}\u{2028}\u{2029}\u{feff}\u{fffe}\u{ffff}]){0,12}") {
        let runtime = tokio::runtime::Builder::new_current_thread()
            .enable_time().start_paused(true).build().unwrap();
        runtime.block_on(async {
            for style in [WriteStyle::Apply, WriteStyle::Replace] {
                let stage = Stage::new().await;
                let mut manifest = settings();
                manifest["metadata"]["annotations"]["text"] = json!(text);
                manifest["data"] = json!({ "text": text });
                let mut source = Source { style, ..source(&json!([manifest])) };
                assert!(stage.error(&source).await.is_none());
                source.generation = 2;
                source.manifests[0]["data"]["more"] = json!(text);
                assert!(stage.error(&source).await.is_none());
                let map = stage.api.find(SETTINGS).await.unwrap();
                prop_assert_eq!(&map["data"], &json!({ "text": text, "more": text }));
                prop_assert_eq!(&map["metadata"]["annotations"]["text"], &text);
            }
            Ok(())
        })?;
    }
}
