use std::time::Duration;

use health::dns::DnsClass;
use health::observation::Failure;
use k8s_openapi::api::apps::v1::Deployment;
use karmada_api::condition::DNS_READY;
use karmada_api::{Remedy, names};
use serde_json::{Value, json};

use super::*;
use crate::fault::{DnsFault, Outage, ServiceNetworkFault};
use crate::objects::NAMESPACE;
use crate::update::Side;

struct Fleet {
    picture: Picture,
    entries: Vec<TimelineEntry>,
    began: Instant,
    now: Instant,
}

impl Fleet {
    fn new() -> Self {
        let names = ["member1".to_owned(), "member2".to_owned()];
        let picture = Picture::new(&names, ThresholdsState::default(), "/k".to_owned());
        let began = Instant::now();
        Self {
            picture,
            entries: Vec::new(),
            began,
            now: began,
        }
    }

    /// Applies an update so long after the one before.
    fn after(&mut self, ms: u64, update: Update) {
        self.now += Duration::from_millis(ms);
        self.entries.extend(self.picture.apply(self.now, update));
    }

    /// Takes the stages of the entries since the last call, each with the milliseconds since the one
    /// before.
    fn stages(&mut self) -> Vec<(Stage, bool, Option<u64>)> {
        let entries = self.entries.drain(..);
        entries.map(|it| (it.stage, it.good, it.after_ms)).collect()
    }

    fn phase(&mut self) -> Phase {
        self.picture.state(self.now).clusters[0].phase
    }

    fn request(&mut self, cluster: &str, ok: bool) {
        let cluster = cluster.to_owned();
        let sent = Request::Sent {
            cluster: cluster.clone(),
        };
        self.after(10, Update::Request(Site::Shop, sent));
        let responded = Request::Responded { cluster, ok };
        self.after(0, Update::Request(Site::Shop, responded));
    }
}

fn lookup(ok: bool) -> Update {
    let server = "127.0.0.1:5301".parse().unwrap();
    let failure = Failure::new(DnsClass::Refused, server);
    Update::Lookup {
        cluster: "member1".to_owned(),
        result: if ok { Ok(()) } else { Err(failure) },
    }
}

fn parsed<K: serde::de::DeserializeOwned>(object: Value) -> Arc<K> {
    Arc::new(serde_json::from_value(object).unwrap())
}

fn cluster(dns: &str, actions: &[&str]) -> Update {
    let condition = json!({ "type": DNS_READY, "status": dns, "reason": "R", "message": "m",
        "lastTransitionTime": "2026-01-01T00:00:00Z" });
    Update::Clusters(vec![parsed(json!({
        "metadata": { "name": "member1" }, "spec": {},
        "status": { "conditions": [condition], "remedyActions": actions },
    }))])
}

fn ingress(blocked: &[&str]) -> Update {
    Update::Ingresses(vec![parsed(json!({
        "metadata": { "name": "shop", "namespace": "shop" }, "spec": {},
        "status": { "trafficBlockClusters": blocked },
    }))])
}

/// A Remedy for these clusters, or for every cluster.
fn remedy(name: &str, clusters: Option<&[&str]>) -> Arc<Remedy> {
    let affinity = clusters.map(|clusters| json!({ "clusterNames": clusters }));
    parsed(json!({
        "metadata": { "name": name },
        "spec": { "clusterAffinity": affinity, "actions": ["TrafficControl"] },
    }))
}

fn agent(alive: bool) -> Update {
    Update::Agent {
        cluster: "member1".to_owned(),
        node: "member1-node1".to_owned(),
        alive,
    }
}

fn voted(vote: &str) -> Update {
    let response = json!({ "vote": vote, "class": "refused", "server": "127.0.0.1:5301" });
    Update::Vote {
        cluster: "member1".to_owned(),
        node: "member1-node1".to_owned(),
        vote: serde_json::from_value(response).unwrap(),
    }
}

/// The stage of a first verdict, that DNS works.
const FIRST_VERDICT: (Stage, bool, Option<u64>) = (Stage::Condition, true, None);

/// An outage is on the timeline stage by stage with the time between.
#[tokio::test]
async fn outage_shows_stage_by_stage() {
    let mut fleet = Fleet::new();
    for update in [
        agent(true),
        lookup(true),
        voted("healthy"),
        cluster("True", &[]),
        ingress(&[]),
    ] {
        fleet.after(0, update);
    }
    fleet.request("member1", true);
    assert_eq!(fleet.stages(), [FIRST_VERDICT]);

    fleet.after(100, lookup(false));
    fleet.after(100, lookup(false));
    fleet.request("member1", false);
    fleet.after(2890, voted("unhealthy"));
    fleet.after(500, cluster("False", &[]));
    fleet.after(7, cluster("False", &["TrafficControl"]));
    fleet.after(5, ingress(&["member1"]));
    assert_eq!(
        fleet.stages(),
        [
            (Stage::DnsBroken, false, None),
            (Stage::Vote, false, Some(3000)),
            (Stage::Condition, false, Some(500)),
            (Stage::Actions, false, Some(7)),
            (Stage::Blocked, false, Some(5)),
        ]
    );
    fleet.request("member1", false);
    for _ in 0..30 {
        fleet.request("member2", true);
    }
    // The last request went there 10 ms after the block; only later ones show that it was the last.
    assert_eq!(fleet.stages(), [(Stage::TrafficGone, true, Some(10))]);
    assert_eq!(fleet.picture.state(fleet.now).clusters[0].errors, 2);

    fleet.after(100, lookup(true));
    fleet.after(999, lookup(true));
    assert_eq!(fleet.stages(), []);
    fleet.after(1, lookup(true));
    fleet.after(2000, voted("healthy"));
    fleet.after(10, cluster("True", &["TrafficControl"]));
    fleet.after(10, cluster("True", &[]));
    fleet.after(10, ingress(&[]));
    fleet.request("member1", true);
    assert_eq!(
        fleet.stages(),
        [
            (Stage::DnsMended, true, None),
            (Stage::Vote, true, Some(3000)),
            (Stage::Condition, true, Some(10)),
            (Stage::Actions, true, Some(10)),
            (Stage::Unblocked, true, Some(10)),
            (Stage::TrafficBack, true, Some(10)),
        ]
    );
}

/// Traffic is never gone from a cluster that is not blocked.
#[tokio::test]
async fn unblocked_traffic_is_never_gone() {
    let mut fleet = Fleet::new();
    fleet.request("member1", true);
    for _ in 0..100 {
        fleet.request("member2", true);
    }
    assert_eq!(fleet.stages(), []);
}

/// A remedy opens the sequence of the clusters it covers.
#[tokio::test]
async fn remedy_opens_a_sequence() {
    let mut fleet = Fleet::new();
    fleet.after(0, cluster("True", &[]));
    fleet.after(0, Update::Remedies(vec![remedy("dns", None)]));
    assert_eq!(fleet.stages(), [FIRST_VERDICT]);
    let both = vec![
        remedy("dns", None),
        remedy("maintenance-member1", Some(&["member1"])),
    ];
    fleet.after(1000, Update::Remedies(both));
    fleet.after(8, cluster("True", &["TrafficControl"]));
    assert_eq!(
        fleet.stages(),
        [
            (Stage::RemedyCreated, true, None),
            (Stage::Actions, false, Some(8)),
        ]
    );
    let state = fleet.picture.state(fleet.now);
    let remedies: Vec<_> = state
        .remedies
        .iter()
        .map(|r| (r.name.as_str(), r.phase))
        .collect();
    let no_status = RemedyPhase::NoStatus;
    assert_eq!(
        remedies,
        [
            ("dns", no_status),
            ("unreachable", RemedyPhase::Absent),
            ("maintenance-member1", no_status),
        ]
    );
    let causing = &state.clusters[0].actions[0].remedies;
    assert_eq!(*causing, ["dns", "maintenance-member1"]);
}

fn lease(holder: &str) -> Update {
    Update::Leases(vec![parsed(json!({
        "metadata": { "name": "cluster-health-agent", "namespace": "karmada-es-member1" },
        "spec": { "holderIdentity": holder },
    }))])
}

#[tokio::test]
async fn lease_holder_is_leader() {
    let mut fleet = Fleet::new();
    fleet.after(0, lease("member1-node1_0d9f"));
    assert_eq!(fleet.stages(), []);
    fleet.after(0, lease("member1-node2_77aa"));
    assert_eq!(fleet.stages(), [(Stage::Leader, true, None)]);
}

/// Rates are of the last second and a fault of the API ends by itself.
#[tokio::test]
async fn rates_cover_last_second() {
    let mut fleet = Fleet::new();
    for ok in [true, true, false] {
        fleet.request("member1", ok);
    }
    fleet.after(
        0,
        Update::Api {
            fault: ApiFault::Cut,
            until: Some(fleet.now + Duration::from_millis(1500)),
        },
    );
    let state = fleet.picture.state(fleet.now);
    assert_eq!(state.clusters[0].requests_per_second, 3);
    assert_eq!(state.clusters[0].errors_per_second, 1);
    assert_eq!(
        (state.api.fault, state.api.left_ms),
        (ApiFault::Cut, Some(1500))
    );
    let state = fleet.picture.state(fleet.now + Duration::from_secs(2));
    assert_eq!(state.clusters[0].requests_per_second, 0);
    assert_eq!((state.api.fault, state.api.left_ms), (ApiFault::None, None));
    assert!(state.now_ms > fleet.picture.clock.ms(fleet.began));
}

/// Traffic is gone no sooner than the cluster is blocked.
#[tokio::test]
async fn traffic_goes_after_block() {
    // The last request went there just before the block, and a node votes before that is clear.
    for vote in [None, Some("unhealthy")] {
        let mut fleet = Fleet::new();
        fleet.after(0, agent(true));
        fleet.after(0, cluster("True", &[]));
        fleet.request("member1", true);
        fleet.after(5, ingress(&["member1"]));
        let blocked = fleet.now;
        if let Some(update) = vote.map(voted) {
            fleet.after(5, update);
        }
        for _ in 0..40 {
            fleet.request("member2", true);
        }
        let left = fleet.entries.last().unwrap();
        assert_eq!(left.step(), Step(Stage::TrafficGone, true));
        assert_eq!((left.at, left.after_ms), (blocked, Some(0)), "{vote:?}");
    }
}

/// A deleted cluster keeps nothing of its old state.
#[tokio::test]
async fn deleted_cluster_keeps_nothing() {
    let mut fleet = Fleet::new();
    fleet.after(0, cluster("True", &["TrafficControl"]));
    assert!(!fleet.picture.state(fleet.now).clusters[0].deleted);
    fleet.after(10, Update::Clusters(Vec::new()));
    let state = fleet.picture.state(fleet.now);
    let [gone, unseen] = &*state.clusters else {
        panic!("{state:?}")
    };
    assert!(gone.deleted && gone.conditions.is_empty() && gone.actions.is_empty());
    assert!(!unseen.deleted, "it was never there");
    fleet.after(10, cluster("True", &[]));
    assert!(!fleet.picture.state(fleet.now).clusters[0].deleted);
    assert_eq!(
        fleet.stages(),
        [
            FIRST_VERDICT,
            (Stage::ClusterDeleted, false, None),
            (Stage::ClusterCreated, true, None),
            (Stage::Condition, true, Some(0)),
        ]
    );
}

/// An ingress is created or deleted only after the first list.
#[tokio::test]
async fn first_list_creates_no_ingress() {
    let mut fleet = Fleet::new();
    assert_eq!(fleet.picture.state(fleet.now).ingresses, None);
    fleet.after(0, ingress(&["member1"]));
    fleet.after(1000, Update::Ingresses(Vec::new()));
    assert_eq!(fleet.picture.state(fleet.now).ingresses, Some(0));
    fleet.after(1000, ingress(&[]));
    assert_eq!(fleet.picture.state(fleet.now).ingresses, Some(1));
    assert_eq!(
        fleet.stages(),
        [
            (Stage::Blocked, false, None),
            (Stage::IngressDeleted, false, None),
            (Stage::Unblocked, true, Some(0)),
            (Stage::IngressCreated, true, None),
        ]
    );
}

/// A cluster as it joins: without a verdict.
fn joined() -> Update {
    Update::Clusters(vec![parsed(json!({
        "metadata": { "name": "member1" }, "spec": {},
        "status": { "conditions": [{ "type": "Ready", "status": "True", "reason": "R",
            "message": "m", "lastTransitionTime": "2026-01-01T00:00:00Z" }] },
    }))])
}

/// A cluster without a verdict is not in service whatever it serves.
#[tokio::test]
async fn verdictless_cluster_is_not_serving() {
    let mut fleet = Fleet::new();
    assert_eq!(fleet.phase(), Phase::NoVerdict);
    fleet.after(0, joined());
    fleet.after(0, lookup(true));
    fleet.request("member1", true);
    assert_eq!(fleet.phase(), Phase::NoVerdict);
    fleet.after(0, cluster("Unknown", &[]));
    assert_eq!(fleet.phase(), Phase::NoVerdict);
    fleet.after(0, cluster("True", &[]));
    assert_eq!(fleet.phase(), Phase::InService);
}

/// A first verdict is on the timeline whatever it is.
#[tokio::test]
async fn first_verdict_shows() {
    for (status, good) in [("True", true), ("False", false)] {
        let mut fleet = Fleet::new();
        fleet.after(0, joined());
        fleet.after(0, lookup(false));
        fleet.after(400, cluster(status, &[]));
        let broken = (Stage::DnsBroken, false, None);
        let verdict = (Stage::Condition, good, Some(400));
        assert_eq!(fleet.stages(), [broken, verdict], "{status}");
        // It is there once.
        fleet.after(0, cluster(status, &[]));
        assert_eq!(fleet.stages(), [], "{status}");
    }
}

fn failing(failing: usize) -> Update {
    Update::Connections {
        cluster: "member1".to_owned(),
        failing,
    }
}

/// Each further node on which connections fail is an entry, and the end of all failures is one.
#[tokio::test]
async fn cut_nodes_are_counted() {
    let mut fleet = Fleet::new();
    for count in [0, 1, 1, 3, 2, 0, 0] {
        fleet.after(100, failing(count));
    }
    let broken = (Stage::NetworkBroken, false, None);
    let mended = (Stage::NetworkMended, true, None);
    assert_eq!(fleet.stages(), [broken, broken, mended]);
}

fn outage(outage: Outage) -> Update {
    Update::Outage {
        cluster: "member1".to_owned(),
        outage,
    }
}

/// A cluster without power responds to nobody, and no pod is left there that could notice anything.
#[tokio::test]
async fn powerless_cluster_is_seen_from_outside() {
    let mut fleet = Fleet::new();
    let reach = |from, reached| Update::Reach {
        cluster: "member1".to_owned(),
        from,
        reached,
    };
    fleet.after(0, reach(Side::Gateway, true));
    fleet.after(0, outage(Outage::PowerOff));
    fleet.after(0, lookup(false));
    fleet.after(0, failing(3));
    for side in [Side::ControlPlane, Side::Gateway, Side::Gateway] {
        fleet.after(10, reach(side, false));
    }
    let lost_by = fleet.picture.state(fleet.now).clusters[0].lost_by.clone();
    assert_eq!(lost_by, [Side::Gateway, Side::ControlPlane]);
    fleet.after(10, reach(Side::Gateway, true));
    assert_eq!(
        fleet.stages(),
        [
            (Stage::LinkLost, false, None),
            (Stage::ReachLost, false, None),
            (Stage::ReachBack, true, None),
        ]
    );
}

/// Each phase follows from the fault, the verdict and the block.
#[tokio::test]
async fn phase_follows_fault_and_verdict() {
    let mut fleet = Fleet::new();
    let dns = |fault| Update::Dns {
        cluster: "member1".to_owned(),
        fault,
    };
    let network = |fault| Update::ServiceNetwork {
        cluster: "member1".to_owned(),
        fault,
    };
    let steps = [
        (cluster("True", &[]), Phase::Idle),
        (network(ServiceNetworkFault::OneNode), Phase::Disturbed),
        (network(ServiceNetworkFault::None), Phase::Idle),
        (outage(Outage::LinkCut), Phase::Disturbed),
        (outage(Outage::None), Phase::Idle),
        (dns(DnsFault::Refuse), Phase::Disturbed),
        (cluster("False", &[]), Phase::Disturbed),
        (ingress(&["member1"]), Phase::Blocked),
        (dns(DnsFault::None), Phase::BlockedRecovering),
        (ingress(&[]), Phase::Recovering),
        (cluster("True", &[]), Phase::Idle),
        (Update::Clusters(Vec::new()), Phase::Deleted),
    ];
    for (update, expected) in steps {
        fleet.after(0, update);
        assert_eq!(fleet.phase(), expected);
    }
}

/// A Deployment of the shop, whose pods are ready if it is `ready`.
fn deployment(image: &str, generation: i64, ready: bool) -> Vec<Arc<Deployment>> {
    let pod = json!({ "spec": { "containers": [{ "name": "web", "image": image }] } });
    let updated = i32::from(ready);
    vec![parsed(json!({
        "metadata": { "name": "web", "generation": generation },
        "spec": { "replicas": 1, "selector": {}, "template": pod },
        "status": { "observedGeneration": generation, "updatedReplicas": updated,
            "readyReplicas": 1, "availableReplicas": 1 },
    }))]
}

fn copies(image: &str, generation: i64, ready: bool) -> Update {
    Update::Copies {
        site: Site::Shop,
        cluster: "member1".to_owned(),
        copies: deployment(image, generation, ready),
    }
}

/// A taint that drives workloads out of member1.
fn tainted() -> Update {
    Update::Profiles(vec![parsed(json!({
        "metadata": { "name": "member1" },
        "spec": { "taints": [{ "key": "dns", "effect": "NoExecute" }] },
    }))])
}

/// The Work of the Deployment in member1.
fn work(dispatching: &str) -> Update {
    let name = names::work("Deployment", NAMESPACE, "web");
    Update::Works(vec![parsed(json!({
        "metadata": { "name": name, "namespace": "karmada-es-member1" }, "spec": {},
        "status": { "conditions": [{ "type": "Dispatching", "status": dispatching }] },
    }))])
}

/// A rollout is on the timeline and is no part of an outage.
#[tokio::test(start_paused = true)]
async fn rollout_is_apart_from_outage() {
    let mut fleet = Fleet::new();
    fleet.after(0, Update::Templates(deployment("web:1.4.0", 1, false)));
    fleet.after(0, copies("web:1.4.0", 1, true));
    fleet.after(100, lookup(false));
    fleet.after(10, work("False"));
    fleet.after(10, Update::Templates(deployment("web:1.5.0", 2, false)));
    fleet.after(980, cluster("False", &[]));
    fleet.after(10, work("True"));
    fleet.after(10, copies("web:1.5.0", 2, false));
    let starting = fleet.picture.state(fleet.now).rollout.clusters;
    fleet.after(500, copies("web:1.5.0", 2, true));
    let expected = [
        (Stage::VersionRuns, true, None),
        (Stage::DnsBroken, false, None),
        (Stage::RolloutPaused, false, None),
        (Stage::VersionWanted, true, None),
        (Stage::Condition, false, Some(1000)),
        (Stage::RolloutResumed, true, None),
        (Stage::VersionRuns, true, Some(510)),
    ];
    assert_eq!(fleet.stages(), expected);
    assert_eq!(starting[0].runs.as_deref(), Some("1.4.0"));
    assert_eq!(starting[0].starts.as_deref(), Some("1.5.0"));
    let state = fleet.picture.state(fleet.now).rollout;
    assert_eq!(state.wanted.as_deref(), Some("1.5.0"));
    assert_eq!(state.clusters[0].runs.as_deref(), Some("1.5.0"));
    assert!(!state.is_complete(), "member2 runs nothing");
}

/// A taint counts from the outage that it comes of, not from the rollout long before; the eviction counts from
/// the taint.
#[tokio::test(start_paused = true)]
async fn taint_counts_from_verdict() {
    let mut fleet = Fleet::new();
    fleet.after(0, copies("web:1.4.0", 1, true));
    fleet.after(41_000, cluster("True", &[]));
    fleet.after(0, lookup(false));
    fleet.after(3000, cluster("False", &[]));
    fleet.after(40, tainted());
    fleet.after(
        10_000,
        Update::Copies {
            site: Site::Shop,
            cluster: "member1".to_owned(),
            copies: Vec::new(),
        },
    );
    let expected = [
        (Stage::VersionRuns, true, None),
        FIRST_VERDICT,
        (Stage::DnsBroken, false, None),
        (Stage::Condition, false, Some(3000)),
        (Stage::Taints, false, Some(40)),
        (Stage::VersionRuns, false, Some(10_000)),
    ];
    assert_eq!(fleet.stages(), expected);
}

/// A change of anything but the version starts none.
#[tokio::test(start_paused = true)]
async fn other_changes_start_no_rollout() {
    let mut fleet = Fleet::new();
    fleet.after(0, copies("web:1.4.0", 1, true));
    fleet.after(10, copies("web:1.4.0", 2, false));
    fleet.after(10, copies("web:1.4.0", 2, true));
    let expected = [(Stage::VersionRuns, true, None)];
    assert_eq!(fleet.stages(), expected);
    assert_eq!(
        fleet.picture.state(fleet.now).rollout.clusters[0].starts,
        None
    );
    let gone = Update::Copies {
        site: Site::Shop,
        cluster: "member1".to_owned(),
        copies: Vec::new(),
    };
    fleet.after(10, gone);
    assert_eq!(fleet.stages(), [(Stage::VersionRuns, false, Some(30))]);
}

/// A pause that ends with its work is no resumption.
#[tokio::test(start_paused = true)]
async fn deleted_work_resumes_nothing() {
    let mut fleet = Fleet::new();
    fleet.after(0, work("False"));
    assert!(fleet.picture.state(fleet.now).rollout.clusters[0].paused);
    fleet.after(10, Update::Works(Vec::new()));
    assert!(!fleet.picture.state(fleet.now).rollout.clusters[0].paused);
    assert_eq!(fleet.stages(), [(Stage::RolloutPaused, false, None)]);
}
