mod away;

use api::condition::{
    DNS_FAILED_REASON, DNS_READY, FALSE, INSUFFICIENT_OBSERVATIONS_REASON, REPORTER_READY, TRUE,
};
use axum::http::StatusCode;
use prometheus_client::registry::Registry;
use rules::observation::{Failure, FailureClass};
use rules::threshold::Vote;
use runtime::metrics::WriteMetrics;
use serde_json::{Value, json};
use tokio::time::sleep;

use super::fake_api::FakeApi;
use super::*;

const PERIOD: Duration = Duration::from_secs(5);
const THRESHOLD: Duration = Duration::from_secs(30);
const LONG: Duration = Duration::from_hours(1);
const MERGE: &str = "application/merge-patch+json";
const JSON_PATCH: &str = "application/json-patch+json";
/// As another writer may leave it: a fraction of a second that a typed time loses.
const FRACTION: &str = "2026-11-20T08:00:00.123456Z";

fn cluster(conditions: &[Value]) -> Value {
    json!({
        "apiVersion": "cluster.karmada.io/v1alpha1",
        "kind": "Cluster",
        "metadata": { "name": "member1", "uid": "u1" },
        "spec": { "syncMode": "Push" },
        "status": { "conditions": conditions, "kubernetesVersion": "v1.36.3" },
    })
}

fn element(kind: &str, status: &str, reason: &str, message: &str) -> Value {
    json!({
        "type": kind,
        "status": status,
        "reason": reason,
        "message": message,
        "lastTransitionTime": FRACTION,
    })
}

fn ready() -> Value {
    element("Ready", "True", "ClusterReady", "cluster is healthy")
}

fn dns_true() -> Value {
    element(DNS_READY, TRUE, DNS_READY, "0 of 1 nodes fail")
}

fn reporting() -> Value {
    element(REPORTER_READY, TRUE, "Reporting", "1 of 1 nodes vote")
}

fn unhealthy() -> Vote {
    Vote::Unhealthy(Failure::new(
        FailureClass::Timeout,
        "10.96.0.10:53".parse().unwrap(),
    ))
}

fn report(client: Client, votes: watch::Receiver<Option<Vote>>, leadership: Leadership) -> Report {
    Report {
        client,
        cluster: "member1".to_owned(),
        pace: Pace {
            period: PERIOD,
            patience: THRESHOLD,
        },
        quorum: Quorum {
            min_answering: 50,
            failure: 80,
        },
        peers: Peers::alone("n1", PERIOD, votes),
        metrics: VerdictMetrics::register(&mut Registry::default()),
        leadership: leadership.clone(),
        writer: Writer::new(leadership, WriteMetrics::register(&mut Registry::default())),
    }
}

/// A report that runs against a fake API server; it ends when dropped.
struct Running {
    api: FakeApi,
    votes: watch::Sender<Option<Vote>>,
    stopping: CancellationToken,
    task: tokio::task::JoinHandle<Result<(), BoxError>>,
}

impl Running {
    fn start(cluster: Option<Value>, vote: Option<Vote>) -> Self {
        let api = FakeApi::new(cluster);
        let (changed, votes) = watch::channel(vote);
        let report = report(api.client(), votes, Leadership::always());
        let stopping = CancellationToken::new();
        Self {
            api,
            votes: changed,
            task: tokio::spawn(report.run(stopping.clone())),
            stopping,
        }
    }

    async fn until(&self, kind: &str, status: &str) {
        self.api
            .until(|api| api.condition(kind)["status"] == status)
            .await;
    }

    fn codes(&self) -> Vec<u16> {
        let patches = self.api.patches();
        patches.iter().map(|patch| patch.answer.as_u16()).collect()
    }
}

#[tokio::test(start_paused = true)]
async fn a_first_verdict_is_merged_into_the_list_with_the_version_it_was_read_at() {
    let running = Running::start(Some(cluster(&[ready()])), Some(Vote::FirstSuccess));
    running.until(REPORTER_READY, TRUE).await;
    let patches = running.api.patches();
    assert_eq!(patches.len(), 2);
    for (patch, version) in patches.iter().zip(["1", "2"]) {
        assert_eq!(
            patch.path,
            "/apis/cluster.karmada.io/v1alpha1/clusters/member1/status"
        );
        assert_eq!(patch.content_type, MERGE);
        assert_eq!(
            patch.body["metadata"],
            json!({ "resourceVersion": version })
        );
        assert_eq!(patch.body["status"]["conditions"][0], ready());
    }
    assert_eq!(running.api.condition(DNS_READY)["status"], TRUE);
    assert_eq!(
        running.api.cluster()["status"]["kubernetesVersion"],
        "v1.36.3"
    );
}

#[tokio::test(start_paused = true)]
async fn a_cluster_without_any_status_gets_one() {
    let mut bare = cluster(&[]);
    bare.as_object_mut().unwrap().remove("status");
    let running = Running::start(Some(bare), Some(Vote::Healthy));
    running.until(REPORTER_READY, TRUE).await;
    assert_eq!(running.api.condition(DNS_READY)["status"], TRUE);
}

#[tokio::test(start_paused = true)]
async fn a_changed_verdict_replaces_its_element_tested_whole_as_the_server_has_it() {
    let before = cluster(&[ready(), dns_true(), reporting()]);
    let running = Running::start(Some(before), Some(unhealthy()));
    running.until(DNS_READY, FALSE).await;
    let patches = running.api.patches();
    assert_eq!(patches.len(), 1);
    assert_eq!(patches[0].content_type, JSON_PATCH);
    let path = "/status/conditions/1";
    let new = running.api.condition(DNS_READY);
    let expected = json!([
        { "op": "test", "path": path, "value": dns_true() },
        { "op": "replace", "path": path, "value": new },
    ]);
    assert_eq!(patches[0].body, expected);
    assert_eq!(new["reason"], DNS_FAILED_REASON);
    assert_eq!(
        new["message"],
        "1 of 1 nodes fail: timeout from 10.96.0.10 (1); n1"
    );
}

#[tokio::test(start_paused = true)]
async fn nothing_is_written_or_read_while_nothing_changes() {
    let before = cluster(&[ready(), dns_true(), reporting()]);
    let running = Running::start(Some(before), Some(Vote::Healthy));
    sleep(LONG).await;
    assert_eq!(running.codes(), [0_u16; 0]);
    assert_eq!(running.api.reads(), 0);
}

#[tokio::test(start_paused = true)]
async fn a_condition_that_someone_overwrote_is_put_right_at_most_once_a_period() {
    let before = cluster(&[ready(), dns_true(), reporting()]);
    let running = Running::start(Some(before), Some(unhealthy()));
    running.until(DNS_READY, FALSE).await;
    let first = Instant::now();
    running
        .api
        .edit(|cluster| cluster["status"]["conditions"][1] = dns_true());
    running.until(DNS_READY, FALSE).await;
    assert!(first.elapsed() >= PERIOD && first.elapsed() < 2 * PERIOD);
    assert_eq!(running.codes(), [200, 200]);
}

#[tokio::test(start_paused = true)]
async fn an_element_that_moved_or_changed_is_read_again_and_the_others_survive() {
    let before = cluster(&[dns_true(), reporting()]);
    let running = Running::start(Some(before), Some(Vote::Healthy));
    let mut others = 0;
    running.api.before_each_patch(move |cluster| {
        // For a while, another writer is always just ahead.
        if others < 5 {
            others += 1;
            let conditions = cluster["status"]["conditions"].as_array_mut().unwrap();
            conditions.insert(0, element(&format!("Other{others}"), "True", "R", ""));
        }
    });
    running.votes.send_replace(Some(unhealthy()));
    running.until(DNS_READY, FALSE).await;
    assert_eq!(running.codes(), [422, 422, 422, 422, 422, 200]);
    assert_eq!(running.api.reads(), 5);
    for other in 1..=5 {
        assert_eq!(
            running.api.condition(&format!("Other{other}"))["status"],
            "True"
        );
    }
}

#[tokio::test(start_paused = true)]
async fn a_list_that_changed_before_an_element_was_added_is_read_again() {
    let running = Running::start(Some(cluster(&[ready()])), None);
    let mut writes = 0;
    running.api.before_each_patch(move |cluster| {
        if writes < 3 {
            writes += 1;
            cluster["status"]["conditions"][0]["message"] = json!(format!("written {writes}"));
        }
    });
    running.votes.send_replace(Some(Vote::Healthy));
    running.until(REPORTER_READY, TRUE).await;
    assert_eq!(running.codes(), [409, 409, 409, 200, 200]);
    assert_eq!(running.api.condition("Ready")["message"], "written 3");
}

#[tokio::test(start_paused = true)]
async fn a_verdict_that_another_writer_has_written_meanwhile_is_not_written_again() {
    let before = cluster(&[dns_true(), reporting()]);
    let running = Running::start(Some(before), Some(Vote::Healthy));
    let theirs = "1 of 1 nodes fail: timeout from 10.96.0.10 (1); n1";
    running.api.before_each_patch(move |cluster| {
        cluster["status"]["conditions"][0] = element(DNS_READY, FALSE, DNS_FAILED_REASON, theirs);
    });
    running.votes.send_replace(Some(unhealthy()));
    sleep(LONG).await;
    assert_eq!(running.codes(), [422]);
    assert_eq!(running.api.reads(), 1);
}

#[tokio::test(start_paused = true)]
async fn a_patch_that_is_refused_although_nothing_stood_in_the_way_is_put_off() {
    for code in [StatusCode::UNPROCESSABLE_ENTITY, StatusCode::FORBIDDEN] {
        let before = cluster(&[dns_true(), reporting()]);
        let running = Running::start(Some(before), Some(unhealthy()));
        running.api.refuse(code);
        sleep(Duration::from_mins(1)).await;
        // After 1, 2, 4, 8, 16 and 30 seconds.
        assert_eq!(running.codes().len(), 6);
    }
}

#[tokio::test(start_paused = true)]
async fn a_write_that_fails_is_tried_again_until_the_server_is_back() {
    let before = cluster(&[dns_true(), reporting()]);
    let running = Running::start(Some(before.clone()), Some(unhealthy()));
    running.api.refuse(StatusCode::SERVICE_UNAVAILABLE);
    running.api.until(|api| api.patches().len() == 3).await;
    assert_eq!(running.api.reads(), 0);
    running.api.accept();
    running.until(DNS_READY, FALSE).await;
}

#[tokio::test(start_paused = true)]
async fn a_missing_cluster_is_waited_for() {
    let running = Running::start(None, Some(Vote::Healthy));
    sleep(LONG).await;
    assert_eq!(running.codes(), [0_u16; 0]);
    running.api.put(cluster(&[ready()]));
    running.until(REPORTER_READY, TRUE).await;
}

#[tokio::test(start_paused = true)]
async fn a_cluster_that_is_being_deleted_is_left_alone() {
    let mut going = cluster(&[dns_true(), reporting()]);
    going["metadata"]["deletionTimestamp"] = json!("2026-11-21T10:00:00Z");
    let running = Running::start(Some(going), Some(unhealthy()));
    sleep(LONG).await;
    assert_eq!(running.codes(), [0_u16; 0]);
}

#[tokio::test(start_paused = true)]
async fn a_vote_that_is_gone_for_a_whole_threshold_makes_the_verdict_stale_and_keeps_it() {
    let before = cluster(&[dns_true(), reporting()]);
    let running = Running::start(Some(before), Some(Vote::Healthy));
    sleep(LONG).await;
    let gone = Instant::now();
    running.votes.send_replace(None);
    running.until(REPORTER_READY, FALSE).await;
    assert!(gone.elapsed() >= THRESHOLD && gone.elapsed() < THRESHOLD + PERIOD);
    let reason = &running.api.condition(REPORTER_READY)["reason"];
    assert_eq!(reason, INSUFFICIENT_OBSERVATIONS_REASON);
    assert_eq!(running.api.condition(DNS_READY), dns_true());
}

#[tokio::test(start_paused = true)]
async fn a_condition_of_ours_that_cannot_be_read_is_overwritten() {
    let odd = json!({ "type": DNS_READY, "status": 7 });
    let running = Running::start(Some(cluster(&[odd, reporting()])), Some(Vote::Healthy));
    running.until(DNS_READY, TRUE).await;
    assert_eq!(
        running.api.cluster()["status"]["conditions"]
            .as_array()
            .unwrap()
            .len(),
        2
    );
}

#[tokio::test(start_paused = true)]
async fn reporting_ends_when_the_program_stops() {
    let running = Running::start(Some(cluster(&[])), None);
    running.stopping.cancel();
    assert!(running.task.await.unwrap().is_ok());
}
