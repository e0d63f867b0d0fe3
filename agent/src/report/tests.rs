mod away;
mod clock;
mod contention;
mod declared;
mod karmada;
mod late;
mod members;
mod refused;
mod resignation;

use std::time::Duration;

use embedded_apiserver::{Fault, Verb};
use health::dns::DnsClass;
use health::observation::Failure;
use health::quorum::Quorum;
use health::report::{Pace, Terms};
use health::signal::PerTarget;
use health::threshold::Vote;
use jiff::Timestamp;
use karmada_api::Condition;
use karmada_api::condition::{
    DNS_FAILED_REASON, DNS_READY, FALSE, INSUFFICIENT_OBSERVATIONS_REASON, REPORTER_READY, TRUE,
};
use karmada_runtime::contention::Contention;
use karmada_runtime::events::{EventBudget, EventRecorder};
use karmada_runtime::lease::{self, Leadership, LeaseConfig};
use karmada_runtime::metrics::WriteMetrics;
use karmada_runtime::program::Program;
use karmada_runtime::watch::Decoded;
use karmada_runtime::write::Writer;
use kube::api::PatchParams;
use kube::{Api, Client};
use lab_parts::mutations::mutations;
use serde_json::{Value, json};
use tokio::time::{sleep, timeout};
use traffic::ClusterKind;

use self::karmada::{Connection, Karmada};
use super::cluster::RawCluster;
use super::cluster_report::change;
use super::*;
use crate::metrics::VerdictMetrics;
use crate::peers::Peers;
use crate::vote::{Votes, on_dns};

const PERIOD: Duration = Duration::from_secs(5);
const THRESHOLD: Duration = Duration::from_secs(30);
const LONG: Duration = Duration::from_hours(1);
const QUORUM: Quorum = Quorum {
    min_answering: 50,
    failure: 80,
};
const MERGE: &str = "application/merge-patch+json";
/// The message of a verdict whose only vote is [`unhealthy`].
const FAILS: &str = "1 of 1 nodes fail: timeout from 10.96.0.10 (1); n1";
/// A time with a fraction of a second, which a typed time loses.
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
    element(DNS_READY, TRUE, DNS_READY, "no node fails")
}

fn reporting() -> Value {
    element(REPORTER_READY, TRUE, "Reporting", "enough nodes vote")
}

fn unhealthy() -> Vote {
    Vote::Unhealthy(Failure::new(
        DnsClass::Timeout,
        "10.96.0.10:53".parse().unwrap(),
    ))
}

/// A running report; it ends when dropped.
struct Running {
    connection: Connection,
    votes: watch::Sender<Votes>,
    declared: watch::Sender<Option<PerTarget<Terms>>>,
    leadership: Leadership,
    program: Program,
}

impl Running {
    /// Starts a report that leads for ever.
    fn start(karmada: &Karmada, vote: Option<Vote>) -> Self {
        Self::of("n1", karmada, vote, 0, |_, _, _| Leadership::always())
    }

    /// Starts the report of the agent on `node`, which campaigns for the lease.
    fn elected(
        karmada: &Karmada,
        node: &str,
        vote: Option<Vote>,
        clock: fn() -> Timestamp,
    ) -> Self {
        Self::of(node, karmada, vote, 0, |program, client, _| {
            program.clock = clock;
            let own = karmada_api::execution_namespace("member1");
            let campaign = LeaseConfig::eager(own, crate::identity::NAME, node.to_owned());
            lease::campaign(program, client, campaign)
        })
    }

    fn of(
        node: &str,
        karmada: &Karmada,
        vote: Option<Vote>,
        silent_peers: u16,
        leadership: impl FnOnce(&mut Program, Client, watch::Receiver<Option<Instant>>) -> Leadership,
    ) -> Self {
        let subject = Subject::Own("member1".to_owned());
        let quorums = on_dns(None).map(|_, _| QUORUM);
        let peers = |own| Peers::for_tests(node, PERIOD, own, silent_peers);
        Self::reporting(karmada, subject, quorums, on_dns(vote), peers, leadership)
    }

    /// Starts a report on these clusters.
    fn reporting(
        karmada: &Karmada,
        subject: Subject,
        quorums: PerTarget<Quorum>,
        votes: Votes,
        peers: impl FnOnce(watch::Receiver<Votes>) -> Peers,
        leadership: impl FnOnce(&mut Program, Client, watch::Receiver<Option<Instant>>) -> Leadership,
    ) -> Self {
        let connection = karmada.connect();
        let mut program = Program::new(crate::identity::IDENTITY, ([127, 0, 0, 1], 0).into());
        let (abstentions, abstained) = watch::channel(None);
        let declared = watch::channel(None);
        let leadership = leadership(&mut program, connection.client(), abstained);
        let (votes, own) = watch::channel(votes);
        let budget = EventBudget {
            burst: 10,
            per_second: 1,
        };
        let report = Report {
            events: EventRecorder::spawn(&mut program, connection.client(), budget),
            lease: lease_in(karmada_api::execution_namespace("member1")),
            client: connection.client(),
            kind: ClusterKind::Cluster,
            subject,
            pace: Pace {
                period: PERIOD,
                patience: THRESHOLD,
            },
            peers: peers(own),
            metrics: VerdictMetrics::register(&mut program.registry, &quorums),
            quorums,
            declared: declared.1,
            leadership: leadership.clone(),
            abstentions,
            writer: Writer::new(
                leadership.clone(),
                WriteMetrics::register(&mut program.registry),
            ),
            contention: Contention::default(),
            clock: program.clock,
        };
        let task = report.run(program.stopping.clone());
        program.tasks.spawn("report", task);
        Self {
            connection,
            votes,
            declared: declared.0,
            leadership,
            program,
        }
    }
}

#[tokio::test(start_paused = true)]
async fn a_first_verdict_is_merged_into_the_list_with_the_version_it_was_read_at() {
    let karmada = Karmada::new(Some(cluster(&[ready()]))).await;
    let read_at = karmada.cluster().await.metadata.resource_version.unwrap();
    let running = Running::start(&karmada, Some(Vote::FirstSuccess));
    karmada.until(REPORTER_READY, TRUE).await;
    let patches = running.connection.patches();
    assert_eq!(running.connection.codes(), [200, 200]);
    for patch in &patches {
        assert_eq!(
            patch.path,
            "/apis/cluster.karmada.io/v1alpha1/clusters/member1/status"
        );
        assert_eq!(patch.content_type, MERGE);
        assert_eq!(patch.body["status"]["conditions"][0], ready());
    }
    let versions = [0, 1].map(|patch| &patches[patch].body["metadata"]["resourceVersion"]);
    assert_eq!(versions[0], &read_at);
    assert!(versions[1].is_string() && versions[1] != versions[0]);
    assert_eq!(karmada.condition(DNS_READY).await["status"], TRUE);
    let cluster = karmada.cluster().await.data;
    assert_eq!(cluster["status"]["kubernetesVersion"], "v1.36.3");
}

#[tokio::test(start_paused = true)]
async fn a_cluster_without_any_status_gets_one() {
    let mut bare = cluster(&[]);
    bare.as_object_mut().unwrap().remove("status");
    let karmada = Karmada::new(Some(bare)).await;
    let _running = Running::start(&karmada, Some(Vote::Healthy));
    karmada.until(REPORTER_READY, TRUE).await;
    assert_eq!(karmada.condition(DNS_READY).await["status"], TRUE);
}

#[tokio::test(start_paused = true)]
async fn a_changed_verdict_replaces_its_element_of_the_list_that_was_read() {
    let before = cluster(&[ready(), dns_true(), reporting()]);
    let karmada = Karmada::new(Some(before)).await;
    let read_at = karmada.cluster().await.metadata.resource_version;
    let running = Running::start(&karmada, Some(unhealthy()));
    karmada.until(DNS_READY, FALSE).await;
    let patches = running.connection.patches();
    assert_eq!(patches.len(), 1);
    assert_eq!(patches[0].content_type, MERGE);
    let new = karmada.condition(DNS_READY).await;
    let expected = json!({
        "metadata": { "resourceVersion": read_at },
        "status": { "conditions": [ready(), new, reporting()] },
    });
    assert_eq!(patches[0].body, expected);
    assert_eq!(new["reason"], DNS_FAILED_REASON);
    assert_eq!(new["message"], FAILS);
}

#[tokio::test(start_paused = true)]
async fn nothing_is_written_or_read_while_nothing_changes() {
    let before = cluster(&[ready(), dns_true(), reporting()]);
    let karmada = Karmada::new(Some(before)).await;
    let running = Running::start(&karmada, Some(Vote::Healthy));
    sleep(LONG).await;
    assert_eq!(running.connection.codes(), [0_u16; 0]);
    assert_eq!(running.connection.reads(), 0);
}

#[tokio::test(start_paused = true)]
async fn a_condition_that_another_client_overwrote_is_restored_at_most_once_a_period() {
    let before = cluster(&[ready(), dns_true(), reporting()]);
    let karmada = Karmada::new(Some(before)).await;
    let running = Running::start(&karmada, Some(unhealthy()));
    karmada.until(DNS_READY, FALSE).await;
    let first = Instant::now();
    karmada
        .edit(|status| status["conditions"][1] = dns_true())
        .await;
    karmada.until(DNS_READY, FALSE).await;
    assert!(first.elapsed() >= PERIOD && first.elapsed() < 2 * PERIOD);
    assert_eq!(running.connection.codes(), [200, 200]);
}

#[tokio::test(start_paused = true)]
async fn an_element_that_moved_or_changed_is_read_again_and_the_others_survive() {
    let before = cluster(&[dns_true(), reporting()]);
    let karmada = Karmada::new(Some(before)).await;
    let running = Running::start(&karmada, Some(Vote::Healthy));
    sleep(PERIOD).await;
    karmada.delay_watches();
    let mut others = 0;
    running.connection.before_each_patch(move |status| {
        // For a while, another writer is always just ahead.
        if others < 5 {
            others += 1;
            let conditions = status["conditions"].as_array_mut().unwrap();
            conditions.insert(0, element(&format!("Other{others}"), "True", "R", ""));
        }
    });
    running.votes.send_replace(on_dns(Some(unhealthy())));
    karmada.until(DNS_READY, FALSE).await;
    assert_eq!(running.connection.codes(), [409, 409, 409, 409, 409, 200]);
    assert_eq!(running.connection.reads(), 5);
    for other in 1..=5 {
        let other = karmada.condition(&format!("Other{other}")).await;
        assert_eq!(other["status"], "True");
    }
}

#[tokio::test(start_paused = true)]
async fn a_list_that_changed_before_an_element_was_added_is_read_again() {
    let karmada = Karmada::new(Some(cluster(&[ready()]))).await;
    let running = Running::start(&karmada, None);
    sleep(PERIOD).await;
    karmada.delay_watches();
    let mut writes = 0;
    running.connection.before_each_patch(move |status| {
        if writes < 3 {
            writes += 1;
            status["conditions"][0]["message"] = json!(format!("written {writes}"));
        }
    });
    running.votes.send_replace(on_dns(Some(Vote::Healthy)));
    karmada.until(REPORTER_READY, TRUE).await;
    assert_eq!(running.connection.codes(), [409, 409, 409, 200, 200]);
    assert_eq!(karmada.condition("Ready").await["message"], "written 3");
}

#[tokio::test(start_paused = true)]
async fn a_verdict_that_another_writer_has_written_meanwhile_is_not_written_again() {
    let before = cluster(&[dns_true(), reporting()]);
    let karmada = Karmada::new(Some(before)).await;
    let running = Running::start(&karmada, Some(Vote::Healthy));
    sleep(PERIOD).await;
    karmada.delay_watches();
    running.connection.before_each_patch(move |status| {
        status["conditions"][0] = element(DNS_READY, FALSE, DNS_FAILED_REASON, FAILS);
    });
    running.votes.send_replace(on_dns(Some(unhealthy())));
    sleep(LONG).await;
    assert_eq!(running.connection.codes(), [409]);
    assert_eq!(running.connection.reads(), 1);
}

/// After 1, 2, 4, 8, 16 and 30 seconds.
const TRIES_IN_A_MINUTE: usize = 6;

#[tokio::test(start_paused = true)]
async fn a_patch_that_is_rejected_without_a_conflict_backs_off() {
    let before = cluster(&[dns_true(), reporting()]);
    let karmada = Karmada::new(Some(before.clone())).await;
    karmada.server.faults().inject(Fault::Conflict);
    let running = Running::start(&karmada, Some(unhealthy()));
    sleep(Duration::from_mins(1)).await;
    assert_eq!(running.connection.codes(), [409; TRIES_IN_A_MINUTE]);

    let karmada = Karmada::new(Some(before)).await;
    karmada.accept_only_short_messages();
    let running = Running::start(&karmada, Some(unhealthy()));
    sleep(Duration::from_mins(1)).await;
    assert_eq!(running.connection.codes(), [422; TRIES_IN_A_MINUTE]);
    assert_eq!(running.connection.reads(), 0);
}

#[tokio::test(start_paused = true)]
async fn a_failed_write_is_retried_until_the_server_is_back() {
    let before = cluster(&[dns_true(), reporting()]);
    let karmada = Karmada::new(Some(before)).await;
    let refusal = Fault::Unavailable.verbs([Verb::Patch]);
    let refusal = karmada.server.faults().inject(refusal);
    let running = Running::start(&karmada, Some(unhealthy()));
    running.connection.patched(3).await;
    assert_eq!(running.connection.codes(), [503; 3]);
    assert_eq!(running.connection.reads(), 0);
    karmada.server.faults().remove(refusal);
    karmada.until(DNS_READY, FALSE).await;
}

#[tokio::test(start_paused = true)]
async fn the_report_waits_for_a_missing_cluster() {
    let karmada = Karmada::new(None).await;
    let running = Running::start(&karmada, Some(Vote::Healthy));
    sleep(LONG).await;
    assert_eq!(running.connection.codes(), [0_u16; 0]);
    karmada.put(cluster(&[ready()])).await;
    karmada.until(REPORTER_READY, TRUE).await;
}

#[tokio::test(start_paused = true)]
async fn a_cluster_that_is_being_deleted_is_left_alone() {
    let mut deleting = cluster(&[dns_true(), reporting()]);
    deleting["metadata"]["finalizers"] = json!(["karmada.io/cluster-controller"]);
    let karmada = Karmada::new(Some(deleting)).await;
    karmada.delete().await;
    let running = Running::start(&karmada, Some(unhealthy()));
    sleep(LONG).await;
    assert_eq!(running.connection.codes(), [0_u16; 0]);
}

#[tokio::test(start_paused = true)]
async fn a_vote_that_is_gone_for_a_whole_threshold_makes_the_verdict_stale_and_keeps_it() {
    let before = cluster(&[dns_true(), reporting()]);
    let karmada = Karmada::new(Some(before)).await;
    let running = Running::start(&karmada, Some(Vote::Healthy));
    sleep(LONG).await;
    let gone = Instant::now();
    running.votes.send_replace(on_dns(None));
    karmada.until(REPORTER_READY, FALSE).await;
    assert!(gone.elapsed() >= THRESHOLD && gone.elapsed() < THRESHOLD + PERIOD);
    let reason = &karmada.condition(REPORTER_READY).await["reason"];
    assert_eq!(reason, INSUFFICIENT_OBSERVATIONS_REASON);
    assert_eq!(karmada.condition(DNS_READY).await, dns_true());
}

#[test]
fn a_condition_of_ours_that_cannot_be_read_is_overwritten() {
    let odd = json!({ "type": DNS_READY, "status": 7 });
    let found = cluster(&[odd, reporting()]);
    let found: RawCluster = serde_json::from_value(found).unwrap();
    let ours = found.ours();
    let kinds: Vec<_> = ours.iter().map(|condition| &condition.type_).collect();
    assert_eq!(kinds, [REPORTER_READY]);
    let wanted: Condition = serde_json::from_value(dns_true()).unwrap();
    let patch = change(&found, &wanted).unwrap();
    assert_eq!(patch["status"]["conditions"], json!([wanted, reporting()]));
}

/// The API takes a condition that lacks everything but its type and status.
#[test]
fn a_verdict_without_time_reason_and_message_is_read() {
    for nothing in [Value::Null, json!(7)] {
        let mut bare = element(DNS_READY, FALSE, "", "");
        for field in ["reason", "message", "lastTransitionTime"] {
            bare[field] = nothing.clone();
        }
        let found: RawCluster = serde_json::from_value(cluster(&[bare])).unwrap();
        let statuses: Vec<_> = found.ours().into_iter().map(|c| c.status).collect();
        assert_eq!(statuses, [FALSE], "{nothing}");
    }
}

/// As a real Karmada serves it.
#[test]
fn the_verdict_of_a_cluster_is_read_and_replaced_whatever_any_foreign_value_is() {
    let text = include_str!("../../../tests/fixtures/cluster.json");
    let mut object: Value = serde_json::from_str(text).unwrap();
    // Most of their many elements are of the same shape.
    for list in ["/status/apiEnablements", "/spec/resourceModels"] {
        let list = object.pointer_mut(list).and_then(Value::as_array_mut);
        list.unwrap().truncate(2);
    }
    let wanted: Condition = serde_json::from_value(dns_true()).unwrap();
    let parts = [
        "",
        "/metadata",
        "/metadata/name",
        "/status",
        "/status/conditions",
    ];
    let own = "/status/conditions/2";
    for mutation in mutations(&object) {
        let at = mutation.path.as_str();
        let decides = [own, &format!("{own}/type"), &format!("{own}/status")].contains(&at);
        if parts.contains(&at) || decides {
            continue;
        }
        let text = mutation.object.to_string();
        let Decoded::Valid(found) = serde_json::from_str::<Decoded<RawCluster>>(&text).unwrap()
        else {
            panic!("{at}: unreadable");
        };
        let statuses: Vec<_> = found.ours().into_iter().map(|c| c.status).collect();
        assert_eq!(statuses, [FALSE], "{at}");
        let patch = change(&found, &wanted).unwrap();
        let mut expected = mutation.object["status"]["conditions"].clone();
        let place = expected.as_array().unwrap().iter();
        let place = place.enumerate().find(|(_, one)| one["type"] == DNS_READY);
        let place = place.map(|(place, _)| place).unwrap();
        expected[place] = json!(wanted);
        assert_eq!(patch["status"]["conditions"], expected, "{at}");
    }
}

#[tokio::test(start_paused = true)]
async fn reporting_ends_when_the_program_stops() {
    let karmada = Karmada::new(Some(cluster(&[]))).await;
    let running = Running::start(&karmada, None);
    let mut stopped = false;
    let stop_once = async || {
        if std::mem::replace(&mut stopped, true) {
            std::future::pending::<()>().await;
        }
    };
    assert!(running.program.run_until(stop_once).await);
}
