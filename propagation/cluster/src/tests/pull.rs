//! The program inside a member of mode Pull, and the control plane's handling of its silence.

use lab_parts::agent_rights::beyond_rights;
use tokio::task::JoinHandle;
use tokio::time::{Instant, sleep};

use super::*;

const CLUSTER: &str = "/apis/cluster.karmada.io/v1alpha1/clusters/m1";
const LEASE: &str = "/apis/coordination.k8s.io/v1/namespaces/karmada-cluster/leases/m1";

/// Returns a stage with a Cluster of mode Pull, and the API of its member.
async fn registered() -> (Stage, TestApi) {
    let stage = Stage::new().await;
    let models = json!([
        { "grade": 0, "ranges": [{ "name": "cpu", "min": "0", "max": "8" }] },
        { "grade": 1, "ranges": [{ "name": "cpu", "min": "2", "max": "8" }] },
    ]);
    let theirs =
        json!({ "type": "ServiceDomainNameResolutionReady", "status": "True", "newer": 1 });
    let cluster = json!({ "apiVersion": "cluster.karmada.io/v1alpha1", "kind": "Cluster",
        "metadata": { "name": "m1" },
        "spec": { "syncMode": "Pull", "resourceModels": models, "newer": { "a": 1 } },
        "status": { "conditions": [theirs], "newer": 1 } });
    stage.api.create(&cluster).await;
    let member = TestApi::of(ApiServer::starting_at(Timestamp::now()));
    member.create_namespace("karmada-system").await;
    member.create(&node()).await;
    member.create(&pod()).await;
    (stage, member)
}

/// A program in the background.
struct Running(JoinHandle<bool>);

impl Drop for Running {
    fn drop(&mut self) {
        self.0.abort();
    }
}

fn run(program: Program) -> Running {
    Running(tokio::spawn(program.run_until(std::future::pending)))
}

/// Starts the program in the member.
fn start_inside(stage: &Stage, member: &TestApi, flags: &[&str]) -> Running {
    let own = [
        NAME,
        "--pull",
        "--cluster-name=m1",
        "--karmada-kubeconfig=/unused",
    ];
    let args = Args::parse_from([&own, flags].concat());
    let place = Place::Member("m1".to_owned(), client(&stage.api), client(member));
    let mut program = Program::new(IDENTITY, ([127, 0, 0, 1], 0).into());
    assemble(&args, place, &mut program);
    run(program)
}

/// Case I99: with the rights of Karmada's agent, and none but these, the program writes the status of its own Cluster, and
/// a Lease that goes with it. Objects of others there stay. The lease of the replicas is in the member.
#[tokio::test(start_paused = true)]
async fn status_is_written_by_put() {
    let (stage, member) = registered().await;
    let running = start_inside(&stage, &member, &["--leader-elect"]);
    let cluster = stage
        .until("m1", |cluster| {
            has(cluster, "CompleteAPIEnablements", "True")
        })
        .await;
    let status = &cluster.data["status"];
    assert!(has(&cluster, "Ready", "True"), "{status}");
    assert_eq!(
        status["nodeSummary"],
        json!({ "totalNum": 1, "readyNum": 1 })
    );
    assert_eq!(
        status["resourceSummary"]["allocatableModelings"],
        json!([{ "grade": 0, "count": 0 }, { "grade": 1, "count": 1 }])
    );
    assert!(status["apiEnablements"].is_array(), "{status}");
    assert_eq!(status["newer"], 1);
    assert_eq!(cluster.data["spec"]["newer"], json!({ "a": 1 }));
    let theirs = conditions(&cluster, "ServiceDomainNameResolutionReady");
    assert_eq!(theirs.unwrap()["newer"], 1);
    assert_eq!(cluster.metadata.finalizers, None);

    let lease = stage.api.get(LEASE).await;
    assert_eq!(lease["spec"]["holderIdentity"], "m1");
    assert_eq!(lease["spec"]["leaseDurationSeconds"], 40);
    let owner = &lease["metadata"]["ownerReferences"][0];
    assert_eq!(owner["uid"], json!(cluster.metadata.uid));
    let leads = "/apis/coordination.k8s.io/v1/namespaces/karmada-system/leases/cluster-controller";
    assert!(member.find(leads).await.is_some());
    // Events wait until nothing is in progress.
    sleep(Duration::from_secs(20)).await;
    drop(running);
    let calls = stage.api.calls();
    assert!(calls.contains(&"POST /api/v1/namespaces/default/events".to_owned()));
    assert_eq!(beyond_rights(calls, "m1"), [""; 0]);
}

/// Nothing is written of a Cluster whose mode says that the control plane keeps it.
#[tokio::test(start_paused = true)]
async fn push_cluster_is_left() {
    let (stage, member) = registered().await;
    stage
        .patch("m1", json!({ "spec": { "syncMode": "Push" } }))
        .await;
    let _running = start_inside(&stage, &member, &["--leader-elect=false"]);
    sleep(Duration::from_mins(2)).await;
    assert_eq!(stage.api.writes(), [""; 0]);
    stage
        .patch("m1", json!({ "spec": { "syncMode": "Pull" } }))
        .await;
    stage
        .until("m1", |cluster| has(cluster, "Ready", "True"))
        .await;
}

/// At rest nothing but the Lease is written, every ten seconds.
#[tokio::test(start_paused = true)]
async fn only_lease_is_renewed() {
    let (stage, member) = registered().await;
    let _running = start_inside(&stage, &member, &["--leader-elect=false"]);
    sleep(Duration::from_secs(15)).await;
    stage.api.writes();
    sleep(Duration::from_mins(1)).await;
    assert_eq!(stage.api.writes(), [&*format!("PUT {LEASE}"); 6]);
}

/// The Lease is renewed every ten seconds, too, while the watch has still to show the last write.
#[tokio::test(start_paused = true)]
async fn late_watch_delays_no_heartbeat() {
    let (stage, member) = registered().await;
    let _running = start_inside(&stage, &member, &["--leader-elect=false"]);
    sleep(Duration::from_secs(15)).await;
    stage.api.writes();
    let (by, coalesce) = (Duration::from_secs(12), false);
    let late = Fault::DelayEvents { by, coalesce };
    stage.api.server.faults().inject(late.kind("clusters"));
    let wrong = json!({ "status": { "kubernetesVersion": "v0" } });
    let status = format!("{CLUSTER}/status");
    stage.api.send("PATCH", &status, &wrong).await;
    sleep(Duration::from_secs(40)).await;
    let writes = stage.api.writes();
    assert!(writes.contains(&format!("PUT {status}")), "{writes:?}");
    let renewals = writes.iter().filter(|write| write.ends_with(LEASE));
    assert_eq!(renewals.count(), 4, "{writes:?}");
}

/// Case I100: the Lease is renewed no more, and the health is unknown once it has run out: nothing new goes there. Once
/// the member speaks again, all is as before.
#[tokio::test(start_paused = true)]
async fn silent_member_is_unreachable() {
    let (stage, member) = registered().await;
    let _control_plane = run(stage.start(&[]));
    let running = start_inside(&stage, &member, &["--leader-elect=false"]);
    let is_fine = |cluster: &DynamicObject| {
        has(cluster, "Ready", "True") && cluster.data["spec"]["taints"].is_null()
    };
    stage.until("m1", is_fine).await;
    sleep(Duration::from_mins(5)).await;
    assert!(is_fine(&stage.cluster("m1").await), "it was heard of");
    drop(running);
    let stopped = Instant::now();
    sleep(Duration::from_secs(29)).await;
    assert!(is_fine(&stage.cluster("m1").await), "its Lease is valid");
    sleep(Duration::from_secs(13)).await;
    let unreachable = stage.until("m1", |cluster| {
        has(cluster, "Ready", "Unknown")
            && cluster.data["spec"]["taints"][0]["key"] == "cluster.karmada.io/unreachable"
    });
    let cluster = unreachable.await;
    assert!(stopped.elapsed() < Duration::from_secs(43));
    let ready = conditions(&cluster, "Ready").unwrap();
    assert_eq!(ready["reason"], "ClusterStatusUnknown");
    let _running = start_inside(&stage, &member, &["--leader-elect=false"]);
    stage.until("m1", is_fine).await;
}

/// A write of others to the Lease of a member is no sign of it.
#[tokio::test(start_paused = true)]
async fn others_speak_for_no_member() {
    let (stage, member) = registered().await;
    let _control_plane = run(stage.start(&[]));
    let running = start_inside(&stage, &member, &["--leader-elect=false"]);
    stage
        .until("m1", |cluster| has(cluster, "Ready", "True"))
        .await;
    drop(running);
    let stopped = Instant::now();
    while !has(&stage.cluster("m1").await, "Ready", "Unknown") {
        assert!(stopped.elapsed() < Duration::from_mins(1));
        let seconds = stopped.elapsed().as_secs().to_string();
        let touched = json!({ "metadata": { "annotations": { "backup.example/at": seconds } } });
        stage.api.send("PATCH", LEASE, &touched).await;
        sleep(Duration::from_secs(3)).await;
    }
}

/// Case I100: a member that never speaks is unknown after a minute.
#[tokio::test(start_paused = true)]
async fn mute_member_is_unknown() {
    let (stage, _) = registered().await;
    let _control_plane = run(stage.start(&[]));
    sleep(Duration::from_secs(58)).await;
    assert!(conditions(&stage.cluster("m1").await, "Ready").is_none());
    sleep(Duration::from_secs(4)).await;
    let cluster = stage.cluster("m1").await;
    let ready = conditions(&cluster, "Ready").unwrap();
    assert_eq!(ready["reason"], "ClusterStatusNeverUpdated");
}

/// Returns `true` if the kinds of a cluster were read.
fn is_read(cluster: &DynamicObject) -> bool {
    has(cluster, "CompleteAPIEnablements", "True")
}

/// Case I104: a leader loses its lease for a while, in which the member dies and another leader says so. When it leads again,
/// it writes nothing that it saw before.
#[tokio::test(start_paused = true)]
async fn new_term_remembers_nothing() {
    const DIED: &str = "2026-11-28T08:00:00Z";
    let (stage, member) = registered().await;
    let _running = start_inside(&stage, &member, &["--leader-elect"]);
    let cluster = stage.until("m1", is_read).await;
    assert!(has(&cluster, "Ready", "True"));
    let lease = "/apis/coordination.k8s.io/v1/namespaces/karmada-system/leases/cluster-controller";
    let holder = async || member.get(lease).await["spec"]["holderIdentity"].clone();
    let first = holder().await;
    let other = json!({ "spec": { "holderIdentity": "other" } });
    member.send("PATCH", lease, &other).await;
    sleep(Duration::from_secs(11)).await;
    assert_eq!(holder().await, "other", "it knows that by now");

    let fail = || member.refuse("GET /readyz", 500, "InternalError", "etcd is gone");
    fail();
    let mut status = stage.cluster("m1").await.data["status"].clone();
    let list = status["conditions"].as_array_mut().unwrap();
    list.retain(|condition| condition["type"] != "Ready");
    list.push(
        json!({ "type": "Ready", "status": "False", "reason": "ClusterNotHealthy",
        "message": "seen by the other", "lastTransitionTime": DIED }),
    );
    let path = "/apis/cluster.karmada.io/v1alpha1/clusters/m1/status";
    stage
        .api
        .send("PATCH", path, &json!({ "status": status }))
        .await;
    while holder().await != first {
        sleep(Duration::from_secs(1)).await;
    }
    // One request is refused at a time, and it probes every ten seconds.
    for _ in 0..20 {
        sleep(Duration::from_secs(1)).await;
        fail();
    }
    let cluster = stage.cluster("m1").await;
    let ready = conditions(&cluster, "Ready").unwrap();
    let seen = [&ready["status"], &ready["lastTransitionTime"]];
    assert_eq!(seen, ["False", DIED], "it was never called ready: {ready}");
}

/// Case I101: the control plane is away for a while. A change in the member is told then, and the Lease renewed
/// within its validity.
#[tokio::test(start_paused = true)]
async fn returned_control_plane_is_told() {
    let (stage, member) = registered().await;
    let _running = start_inside(&stage, &member, &["--leader-elect=false"]);
    stage.until("m1", is_read).await;
    let away = stage
        .api
        .server
        .faults()
        .inject(Fault::Disconnect.client(NAME));
    let path = "/api/v1/nodes/n1/status";
    let more = json!({ "status": { "allocatable": { "cpu": "8" } } });
    member.send("PATCH", path, &more).await;
    sleep(Duration::from_mins(10)).await;
    let before = stage.api.get(LEASE).await["metadata"]["resourceVersion"].clone();
    stage.api.server.faults().remove(away);
    sleep(Duration::from_secs(39)).await;
    assert_ne!(
        stage.api.get(LEASE).await["metadata"]["resourceVersion"],
        before
    );
    let status = stage.api.get(CLUSTER).await["status"].clone();
    assert_eq!(status["resourceSummary"]["allocatable"]["cpu"], "8");
}
