//! The agents on a gateway's nodes report on every member.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use health::reachability::{REACHABILITY, ReachabilityClass};
use karmada_api::Cluster;
use karmada_api::condition::{GATEWAY_REPORTER_READY, REACHABLE, UNREACHABLE_REASON};
use kube::api::{DeleteParams, PostParams};
use kube::runtime::wait::await_condition;
use tokio::time::timeout;

use super::*;

const LONGEST_WAIT: Duration = Duration::from_hours(2);

fn unreached() -> Vote {
    let address = "10.0.0.7:8080".parse().unwrap();
    Vote::Unhealthy(Failure::new(ReachabilityClass::Timeout, address))
}

fn votes(of: &[(&str, Option<Vote>)]) -> Votes {
    let each = of.iter().flat_map(|(cluster, vote)| {
        PerTarget::from_iter([(&REACHABILITY, *vote)]).about(&Arc::from(*cluster))
    });
    each.collect()
}

fn start(karmada: &Karmada, votes: Votes) -> Running {
    start_at(Timestamp::now, karmada, votes)
}

fn start_at(clock: fn() -> Timestamp, karmada: &Karmada, votes: Votes) -> Running {
    let quorums = PerTarget::from_iter([(&REACHABILITY, QUORUM)]);
    let peers = |own| Peers::for_tests("g1", PERIOD, own, 0);
    let leads = |program: &mut Program, _, _| {
        program.clock = clock;
        Leadership::always()
    };
    Running::reporting(karmada, Subject::Members, quorums, votes, peers, leads)
}

fn clusters(karmada: &Karmada) -> Api<Cluster> {
    Api::all(Client::new(karmada.server.service(), "default"))
}

/// Joins a member.
async fn join(karmada: &Karmada, name: &str) {
    let cluster = json!({ "metadata": { "name": name }, "spec": {} });
    let cluster = serde_json::from_value(cluster).unwrap();
    let (clusters, parameters) = (clusters(karmada), PostParams::default());
    clusters.create(&parameters, &cluster).await.unwrap();
}

/// Waits until the condition of a member has this status, and returns its reason.
async fn until(karmada: &Karmada, member: &str, kind: &str, status: &str) -> String {
    let reached = await_condition(clusters(karmada), member, |cluster: Option<&Cluster>| {
        let condition = cluster.and_then(|cluster| cluster.condition(kind));
        condition.is_some_and(|condition| condition.status == status)
    });
    let cluster = timeout(LONGEST_WAIT, reached).await.unwrap().unwrap();
    cluster.unwrap().condition(kind).unwrap().reason.clone()
}

/// Each member gets its verdict, also one that joins later; one that nobody votes on gets none.
#[tokio::test(start_paused = true)]
async fn each_member_gets_its_verdict() {
    let karmada = Karmada::new(None).await;
    for name in ["m1", "m2", "idle"] {
        join(&karmada, name).await;
    }
    let both = [("m1", Some(Vote::Healthy)), ("m2", Some(unreached()))];
    let running = start(&karmada, votes(&both));
    until(&karmada, "m1", REACHABLE, TRUE).await;
    let reason = until(&karmada, "m2", REACHABLE, FALSE).await;
    assert_eq!(reason, UNREACHABLE_REASON);
    until(&karmada, "m2", GATEWAY_REPORTER_READY, TRUE).await;
    let three = [both[0], both[1], ("m3", Some(Vote::Healthy))];
    running.votes.send_replace(votes(&three));
    join(&karmada, "m3").await;
    until(&karmada, "m3", REACHABLE, TRUE).await;
    let idle = clusters(&karmada).get("idle").await.unwrap();
    assert!(idle.conditions().is_empty());
}

/// A fault of the program at one member is told of, and ends no report on another.
#[tokio::test(start_paused = true)]
async fn fault_stays_at_its_member() {
    fn fails_once() -> Timestamp {
        static HAS_FAILED: AtomicBool = AtomicBool::new(false);
        assert!(HAS_FAILED.swap(true, Ordering::Relaxed), "deliberate");
        Timestamp::now()
    }
    let karmada = Karmada::new(None).await;
    for name in ["m1", "m2"] {
        join(&karmada, name).await;
    }
    let both = votes(&[("m1", Some(Vote::Healthy)), ("m2", Some(Vote::Healthy))]);
    let _running = start_at(fails_once, &karmada, both);
    for name in ["m2", "m1"] {
        until(&karmada, name, REACHABLE, TRUE).await;
    }
    let events = karmada.events().await;
    assert_eq!(events.len(), 1, "{events:?}");
    assert_eq!(events[0].reason.as_deref(), Some("ReportFailed"));
    let note = events[0].note.as_deref().unwrap();
    assert!(note.starts_with("m1 is not reported on"), "{note}");
}

/// A member without a vote keeps its verdict, which becomes stale; one that leaves is let go.
#[tokio::test(start_paused = true)]
async fn lost_votes_make_stale() {
    let karmada = Karmada::new(None).await;
    for name in ["m1", "m2"] {
        join(&karmada, name).await;
    }
    let both = [("m1", Some(Vote::Healthy)), ("m2", Some(unreached()))];
    let running = start(&karmada, votes(&both));
    until(&karmada, "m2", REACHABLE, FALSE).await;
    let parameters = DeleteParams::default();
    clusters(&karmada).delete("m1", &parameters).await.unwrap();
    running.votes.send_replace(votes(&[]));
    let reason = until(&karmada, "m2", GATEWAY_REPORTER_READY, FALSE).await;
    assert_eq!(reason, INSUFFICIENT_OBSERVATIONS_REASON);
    until(&karmada, "m2", REACHABLE, FALSE).await;
    // It is reached again.
    running
        .votes
        .send_replace(votes(&[("m2", Some(Vote::Healthy))]));
    until(&karmada, "m2", REACHABLE, TRUE).await;
    until(&karmada, "m2", GATEWAY_REPORTER_READY, TRUE).await;
}
