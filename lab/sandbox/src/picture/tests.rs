use std::time::Duration;

use karmada_api::condition::DNS_READY;
use karmada_rules::health::failure::FailureClass;
use karmada_rules::health::observation::Failure;
use serde_json::{Value, json};

use super::*;

struct Seen {
    picture: Picture,
    story: Vec<Happened>,
    began: Instant,
    now: Instant,
}

impl Seen {
    fn new() -> Self {
        let names = ["member1".to_owned(), "member2".to_owned()];
        let picture = Picture::new(&names, ThresholdsState::default(), "/k".to_owned());
        let began = Instant::now();
        Self {
            picture,
            story: Vec::new(),
            began,
            now: began,
        }
    }

    /// A fact so long after the last one.
    fn after(&mut self, ms: u64, fact: Fact) {
        self.now += Duration::from_millis(ms);
        self.story.extend(self.picture.take_in(self.now, fact));
    }

    /// The stages that were told since this was last asked, each with the milliseconds since the
    /// one before.
    fn told(&mut self) -> Vec<(Stage, bool, Option<u64>)> {
        let told = self.story.drain(..);
        told.map(|h| (h.stage, h.good, h.after_ms)).collect()
    }

    fn request(&mut self, cluster: &str, ok: bool) {
        let cluster = || cluster.to_owned();
        self.after(10, Fact::Sent { cluster: cluster() });
        self.after(
            0,
            Fact::Answered {
                cluster: cluster(),
                ok,
            },
        );
    }
}

fn asked(ok: bool) -> Fact {
    let server = "127.0.0.1:5301".parse().unwrap();
    let failure = Failure::new(FailureClass::Refused, server);
    Fact::Asked {
        cluster: "member1".to_owned(),
        result: if ok { Ok(()) } else { Err(failure) },
    }
}

fn parsed<K: serde::de::DeserializeOwned>(object: Value) -> Arc<K> {
    Arc::new(serde_json::from_value(object).unwrap())
}

fn cluster(dns: &str, actions: &[&str]) -> Fact {
    let condition = json!({ "type": DNS_READY, "status": dns, "reason": "R", "message": "m",
        "lastTransitionTime": "2026-01-01T00:00:00Z" });
    Fact::Clusters(vec![parsed(json!({
        "metadata": { "name": "member1" }, "spec": {},
        "status": { "conditions": [condition], "remedyActions": actions },
    }))])
}

fn ingress(blocked: &[&str]) -> Fact {
    Fact::Ingresses(vec![parsed(json!({
        "metadata": { "name": "shop", "namespace": "shop" }, "spec": {},
        "status": { "trafficBlockClusters": blocked },
    }))])
}

fn remedy(name: &str, clusters: &[&str]) -> Arc<Remedy> {
    parsed(json!({
        "metadata": { "name": name },
        "spec": { "clusterAffinity": { "clusterNames": clusters }, "actions": ["TrafficControl"] },
    }))
}

fn agent(alive: bool) -> Fact {
    Fact::Agent {
        cluster: "member1".to_owned(),
        node: "member1-node1".to_owned(),
        alive,
    }
}

fn voted(vote: &str) -> Fact {
    let observation = json!({ "vote": vote, "class": "refused", "server": "127.0.0.1:5301" });
    Fact::Voted {
        cluster: "member1".to_owned(),
        node: "member1-node1".to_owned(),
        observation: serde_json::from_value(observation).unwrap(),
    }
}

#[tokio::test]
async fn an_outage_is_told_stage_by_stage_with_the_time_between() {
    let mut seen = Seen::new();
    for fact in [
        agent(true),
        asked(true),
        voted("healthy"),
        cluster("True", &[]),
        ingress(&[]),
    ] {
        seen.after(0, fact);
    }
    seen.request("member1", true);
    assert_eq!(seen.told(), []);

    seen.after(100, asked(false));
    seen.after(100, asked(false));
    seen.request("member1", false);
    seen.after(2890, voted("unhealthy"));
    seen.after(500, cluster("False", &[]));
    seen.after(7, cluster("False", &["TrafficControl"]));
    seen.after(5, ingress(&["member1"]));
    assert_eq!(
        seen.told(),
        [
            (Stage::DnsBroken, false, None),
            (Stage::Vote, false, Some(3000)),
            (Stage::Condition, false, Some(500)),
            (Stage::Actions, false, Some(7)),
            (Stage::Blocked, false, Some(5)),
        ]
    );
    seen.request("member1", false);
    for _ in 0..30 {
        seen.request("member2", true);
    }
    // The last request went there 10 ms after the block; that it was the last shows later.
    assert_eq!(seen.told(), [(Stage::TrafficGone, true, Some(10))]);
    assert_eq!(seen.picture.state(seen.now).clusters[0].errors, 2);

    seen.after(100, asked(true));
    seen.after(999, asked(true));
    assert_eq!(seen.told(), []);
    seen.after(1, asked(true));
    seen.after(2000, voted("healthy"));
    seen.after(10, cluster("True", &["TrafficControl"]));
    seen.after(10, cluster("True", &[]));
    seen.after(10, ingress(&[]));
    seen.request("member1", true);
    assert_eq!(
        seen.told(),
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

#[tokio::test]
async fn a_cluster_without_block_is_never_said_to_be_left() {
    let mut seen = Seen::new();
    seen.request("member1", true);
    for _ in 0..100 {
        seen.request("member2", true);
    }
    assert_eq!(seen.told(), []);
}

#[tokio::test]
async fn a_remedy_opens_the_story_of_the_clusters_it_covers() {
    let mut seen = Seen::new();
    seen.after(0, cluster("True", &[]));
    seen.after(0, Fact::Remedies(vec![remedy("dns", &[])]));
    assert_eq!(seen.told(), []);
    let both = vec![
        remedy("dns", &[]),
        remedy("maintenance-member1", &["member1"]),
    ];
    seen.after(1000, Fact::Remedies(both));
    seen.after(8, cluster("True", &["TrafficControl"]));
    assert_eq!(
        seen.told(),
        [
            (Stage::RemedyCreated, true, None),
            (Stage::Actions, false, Some(8)),
        ]
    );
    let state = seen.picture.state(seen.now);
    let remedies: Vec<_> = state
        .remedies
        .iter()
        .map(|r| (r.name.as_str(), r.active))
        .collect();
    assert_eq!(remedies, [("dns", true), ("maintenance", true)]);
    let asking = &state.clusters[0].actions[0].remedies;
    assert_eq!(*asking, ["dns", "maintenance-member1"]);
}

#[tokio::test]
async fn the_lease_says_who_leads() {
    let mut seen = Seen::new();
    let lease = |holder: &str| {
        Fact::Leases(vec![parsed(json!({
            "metadata": { "name": "cluster-health-agent", "namespace": "karmada-es-member1" },
            "spec": { "holderIdentity": holder },
        }))])
    };
    seen.after(0, lease("member1-node1_0d9f"));
    assert_eq!(seen.told(), []);
    seen.after(0, lease("member1-node2_77aa"));
    assert_eq!(seen.told(), [(Stage::Leader, true, None)]);
}

#[tokio::test]
async fn rates_are_of_the_last_second_and_a_fault_of_the_api_ends_by_itself() {
    let mut seen = Seen::new();
    for ok in [true, true, false] {
        seen.request("member1", ok);
    }
    seen.after(
        0,
        Fact::Api {
            fault: ApiFault::Cut,
            until: Some(seen.now + Duration::from_millis(1500)),
        },
    );
    let state = seen.picture.state(seen.now);
    assert_eq!(state.clusters[0].requests_per_second, 3);
    assert_eq!(state.clusters[0].errors_per_second, 1);
    assert_eq!(
        (state.api.fault, state.api.left_ms),
        (ApiFault::Cut, Some(1500))
    );
    let state = seen.picture.state(seen.now + Duration::from_secs(2));
    assert_eq!(state.clusters[0].requests_per_second, 0);
    assert_eq!((state.api.fault, state.api.left_ms), (ApiFault::None, None));
    assert!(state.now_ms > seen.picture.clock.ms(seen.began));
}

#[tokio::test]
async fn a_cluster_is_left_no_sooner_than_it_is_blocked() {
    // The last request went there just before the block, and a node votes before that is clear.
    for vote in [None, Some("unhealthy")] {
        let mut seen = Seen::new();
        seen.after(0, agent(true));
        seen.after(0, cluster("True", &[]));
        seen.request("member1", true);
        seen.after(5, ingress(&["member1"]));
        let blocked = seen.now;
        if let Some(fact) = vote.map(voted) {
            seen.after(5, fact);
        }
        for _ in 0..40 {
            seen.request("member2", true);
        }
        let left = seen.story.last().unwrap();
        assert_eq!(left.step(), Step(Stage::TrafficGone, true));
        assert_eq!((left.at, left.after_ms), (blocked, Some(0)), "{vote:?}");
    }
}

#[tokio::test]
async fn a_deleted_cluster_keeps_nothing_of_what_it_was() {
    let mut seen = Seen::new();
    seen.after(0, cluster("True", &["TrafficControl"]));
    assert!(!seen.picture.state(seen.now).clusters[0].deleted);
    seen.after(10, Fact::Clusters(Vec::new()));
    let state = seen.picture.state(seen.now);
    let [gone, unseen] = &*state.clusters else {
        panic!("{state:?}")
    };
    assert!(gone.deleted && gone.conditions.is_empty() && gone.actions.is_empty());
    assert!(!unseen.deleted, "it was never there");
    seen.after(10, cluster("True", &[]));
    assert!(!seen.picture.state(seen.now).clusters[0].deleted);
    assert_eq!(
        seen.told(),
        [
            (Stage::ClusterDeleted, false, None),
            (Stage::ClusterCreated, true, None),
        ]
    );
}

#[tokio::test]
async fn an_ingress_that_comes_or_goes_is_told_after_those_that_were_there() {
    let mut seen = Seen::new();
    assert_eq!(seen.picture.state(seen.now).ingresses, None);
    seen.after(0, ingress(&["member1"]));
    seen.after(1000, Fact::Ingresses(Vec::new()));
    assert_eq!(seen.picture.state(seen.now).ingresses, Some(0));
    seen.after(1000, ingress(&[]));
    assert_eq!(seen.picture.state(seen.now).ingresses, Some(1));
    assert_eq!(
        seen.told(),
        [
            (Stage::Blocked, false, None),
            (Stage::IngressDeleted, false, None),
            (Stage::Unblocked, true, Some(0)),
            (Stage::IngressCreated, true, None),
        ]
    );
}
