//! The program inside a member of mode Pull.

use lab_parts::agent_rights::beyond_rights;
use tokio::task::JoinHandle;
use tokio::time::sleep;

use super::*;

const MAPS: &str = "/api/v1/namespaces/shop/configmaps";

/// A program in the background.
struct Running(JoinHandle<bool>);

impl Drop for Running {
    fn drop(&mut self) {
        self.0.abort();
    }
}

/// Returns a Karmada with a Cluster of mode Pull, and the API of its member.
async fn registered() -> (Stage, TestApi) {
    let stage = Stage::new().await;
    stage.join("m1", CLOSED).await;
    set_mode(&stage, "m1", "Pull").await;
    let member = TestApi::of(ApiServer::starting_at(Timestamp::now()));
    for name in ["shop", "karmada-system"] {
        member.create_namespace(name).await;
    }
    (stage, member)
}

async fn set_mode(stage: &Stage, cluster: &str, mode: &str) {
    let patch = Patch::Merge(json!({ "spec": { "syncMode": mode } }));
    let parameters = PatchParams::default();
    let patched = stage.clusters().patch(cluster, &parameters, &patch).await;
    patched.unwrap();
}

/// Assembles the program in the member.
fn inside(stage: &Stage, cluster: &str, member: &TestApi) -> Program {
    let flags = [
        NAME,
        "--pull",
        "--karmada-kubeconfig=/unused",
        "--cluster-name",
        cluster,
    ];
    let mut program = Program::new(IDENTITY, ([127, 0, 0, 1], 0).into());
    let (karmada, member) = (client(&stage.api), client(member));
    assemble_in_member(&Args::parse_from(flags), karmada, member, &mut program);
    program
}

fn run(program: Program) -> Running {
    Running(tokio::spawn(program.run_until(std::future::pending)))
}

async fn delete(stage: &Stage, cluster: &str, name: &str) {
    let parameters = DeleteParams::default();
    stage
        .works(cluster)
        .delete(name, &parameters)
        .await
        .unwrap();
}

/// Case I99: with the rights of Karmada's agent, and none but these, the program carries out the Works of its own cluster
/// and reports on them. The lease of the replicas is in the member.
#[tokio::test(start_paused = true)]
async fn works_live_and_go() {
    let (stage, member) = registered().await;
    stage.join("m2", CLOSED).await;
    set_mode(&stage, "m2", "Pull").await;
    for cluster in ["m1", "m2"] {
        stage.dispatch(cluster, cluster, json!({})).await;
    }
    let running = run(inside(&stage, "m1", &member));
    stage.condition("m1", "m1", APPLIED, TRUE).await;
    assert!(member.find(&format!("{MAPS}/m1")).await.is_some());
    let leads =
        "/apis/coordination.k8s.io/v1/namespaces/karmada-system/leases/execution-controller";
    assert!(member.find(leads).await.is_some());
    let theirs =
        json!({ "metadata": { "finalizers": ["x.io/theirs", "karmada.io/execution-controller"] } });
    stage.patch("m1", "m1", theirs).await;
    delete(&stage, "m1", "m1").await;
    let released = until(stage.works("m1"), "m1", |work| {
        let finalizers = work.and_then(|work| work.metadata.finalizers.as_ref());
        finalizers.is_some_and(|finalizers| *finalizers == ["x.io/theirs"])
    });
    released.await;
    assert!(member.find(&format!("{MAPS}/m1")).await.is_none());
    // Events wait until nothing is in progress.
    sleep(Duration::from_secs(20)).await;
    drop(running);
    let calls = stage.api.calls();
    assert!(calls.contains(&"POST /api/v1/namespaces/karmada-es-m1/events".to_owned()));
    assert_eq!(beyond_rights(calls, "m1"), [""; 0]);
    assert!(member.find(&format!("{MAPS}/m2")).await.is_none());
}

/// A cluster is carried out from one place: from the control plane in mode Push, from inside in mode Pull.
#[tokio::test]
async fn modes_are_kept_apart() {
    let pushed = member(|_| true).await;
    let (stage, inner) = registered().await;
    stage.join("m2", pushed.address()).await;
    let control_plane = stage.start(&[]);
    for cluster in ["m1", "m2"] {
        stage.dispatch(cluster, "a", json!({})).await;
        stage.dispatch(cluster, "gone", json!({})).await;
        delete(&stage, cluster, "gone").await;
    }
    stage.condition("m2", "a", APPLIED, TRUE).await;
    stage.gone("m2", "gone").await;
    for name in ["a", "gone"] {
        let work = stage.works("m1").get(name).await.unwrap();
        assert_eq!(work.status, None, "{name}");
    }
    drop(control_plane);

    set_mode(&stage, "m1", "Push").await;
    let program = inside(&stage, "m1", &inner);
    counts(
        &program,
        r#"reconciles_total{controller="work",result="success"} 2"#,
    )
    .await;
    assert!(inner.find(&format!("{MAPS}/a")).await.is_none());
    set_mode(&stage, "m1", "Pull").await;
    stage.condition("m1", "a", APPLIED, TRUE).await;
    stage.gone("m1", "gone").await;
}

/// Case I101: the control plane is away. Changes and deletions in the member are put right by the last Works, for as long
/// as that lasts, and nothing is taken away. Works that were dispatched meanwhile arrive in the end.
#[tokio::test(start_paused = true)]
async fn drift_goes_without_control_plane() {
    let (stage, member) = registered().await;
    for name in ["a", "b"] {
        stage.dispatch("m1", name, json!({})).await;
    }
    let _running = run(inside(&stage, "m1", &member));
    for name in ["a", "b"] {
        stage.condition("m1", name, APPLIED, TRUE).await;
    }
    member.calls();
    let away = Fault::Disconnect.client(NAME);
    let away = stage.api.server.faults().inject(away);
    let maps: Api<ConfigMap> = Api::namespaced(member.user(), "shop");
    for _ in 0..3 {
        let drift = json!({ "data": { "greeting": "drift" } });
        member.send("PATCH", &format!("{MAPS}/a"), &drift).await;
        member
            .send("DELETE", &format!("{MAPS}/b"), &json!({}))
            .await;
        for name in ["a", "b"] {
            let right = until(maps.clone(), name, |map| {
                let data = map.and_then(|map| map.data.as_ref());
                data.is_some_and(|data| data["greeting"] == "hello")
            });
            right.await;
        }
        sleep(Duration::from_mins(10)).await;
    }
    let calls = member.calls();
    let deleted: Vec<_> = calls
        .iter()
        .filter(|call| call.starts_with("DELETE"))
        .collect();
    assert_eq!(deleted, [""; 0]);
    stage.dispatch("m1", "c", json!({})).await;
    delete(&stage, "m1", "b").await;
    stage.api.server.faults().remove(away);
    stage.condition("m1", "c", APPLIED, TRUE).await;
    stage.gone("m1", "b").await;
}

/// The path of an object of one of the recorded kinds.
fn path(object: &Value) -> String {
    let name = object["metadata"]["name"].as_str().unwrap();
    match object["kind"].as_str().unwrap() {
        "Namespace" => format!("/api/v1/namespaces/{name}"),
        "Deployment" => format!("/apis/apps/v1/namespaces/shop/deployments/{name}"),
        "Service" => format!("/api/v1/namespaces/shop/services/{name}"),
        _ => format!("{MAPS}/{name}"),
    }
}

/// Case I102: a scripted agent of Karmada has carried out Works, with the objects as a whole Karmada left them in another
/// member. The program takes over and writes nothing, to the member or to the Works.
#[tokio::test]
async fn swapped_agent_writes_nothing() {
    let stage = Stage::new().await;
    stage.join("member1", CLOSED).await;
    set_mode(&stage, "member1", "Pull").await;
    let member = TestApi::of(ApiServer::starting_at(Timestamp::now()));
    member.create_namespace("karmada-system").await;
    let recorded =
        include_str!("../../../../propagation/rules/src/execution/fixtures/member1.json");
    let mut pairs: Vec<Value> = serde_json::from_str(recorded).unwrap();
    for pair in &mut pairs {
        // Its owners are not here.
        for field in [
            "resourceVersion",
            "uid",
            "generation",
            "managedFields",
            "ownerReferences",
        ] {
            for part in ["work", "object"] {
                pair[part]["metadata"]
                    .as_object_mut()
                    .unwrap()
                    .remove(field);
            }
        }
        // The recording leaves this annotation out of the member's objects.
        let last = "kubectl.kubernetes.io/last-applied-configuration";
        let manifest = &pair["work"]["spec"]["workload"]["manifests"][0];
        let text = manifest["metadata"]["annotations"][last].clone();
        if text.is_string() {
            pair["object"]["metadata"]["annotations"][last] = text;
        }
        let (object, status) = (&pair["object"], pair["object"]["status"].clone());
        let path = path(object);
        let (collection, _) = path.rsplit_once('/').unwrap();
        let create = format!("{collection}?fieldManager=karmada-agent");
        member.send("POST", &create, object).await;
        if !status.is_null() {
            let status = json!({ "status": status });
            member
                .send("PATCH", &format!("{path}/status"), &status)
                .await;
        }
        stage.api.create(&pair["work"]).await;
    }
    let _program = inside(&stage, "member1", &member);
    // Its turn comes after that of those that exist already.
    stage.dispatch("member1", "last", json!({})).await;
    stage.condition("member1", "last", APPLIED, TRUE).await;
    let mut writes = stage.api.writes();
    writes.retain(|call| !call.ends_with("/works/last/status"));
    assert_eq!(writes, [""; 0]);
    let mut writes = member.writes();
    writes.retain(|call| !call.contains("/leases"));
    assert_eq!(writes, [format!("POST {MAPS}")]);
}
