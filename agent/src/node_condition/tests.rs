use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use embedded_apiserver::{ApiServer, Fault};
use health::dns::{DNS, DnsClass};
use health::observation::Failure;
use http::Request;
use karmada_api::condition::{DNS_READY, DNS_READY_REASON};
use karmada_runtime::lease::Leadership;
use karmada_runtime::metrics::Registry;
use karmada_runtime::metrics::WriteMetrics;
use kube::api::{DeleteParams, PostParams};
use kube::client::Body;
use tokio::time::sleep;
use tower::ServiceExt;

use super::*;
use crate::vote::on_dns;

const HOUR: Duration = Duration::from_hours(1);

/// The API of a member with one Node, and the agent that runs there.
struct Member {
    server: ApiServer,
    nodes: Api<Node>,
    /// The number of requests of the agent.
    requests: Arc<AtomicUsize>,
    votes: watch::Sender<Votes>,
}

impl Member {
    async fn new(conditions: &[Value]) -> Self {
        let server = ApiServer::new();
        let requests = Arc::<AtomicUsize>::default();
        let count = Arc::clone(&requests);
        let counting = server.service().map_request(move |request: Request<Body>| {
            count.fetch_add(1, Ordering::Relaxed);
            request
        });
        let (votes, receiver) = watch::channel(on_dns(None));
        let metrics = WriteMetrics::register(&mut Registry::default());
        let agent = NodeCondition {
            client: Client::new(counting, "default"),
            node: "n1".to_owned(),
            signal: &DNS,
            votes: receiver,
            writer: Writer::new(Leadership::always(), metrics),
        };
        let member = Self {
            nodes: Api::all(Client::new(server.service(), "default")),
            server,
            requests,
            votes,
        };
        member.create(conditions).await;
        tokio::spawn(agent.run(CancellationToken::new()));
        member
    }

    async fn create(&self, conditions: &[Value]) {
        let node = serde_json::from_value(json!({ "metadata": { "name": "n1" } })).unwrap();
        let parameters = PostParams::default();
        self.nodes.create(&parameters, &node).await.unwrap();
        let status = Patch::Merge(json!({ "status": { "conditions": conditions } }));
        let parameters = PatchParams::default();
        let patched = self.nodes.patch_status("n1", &parameters, &status).await;
        patched.unwrap();
    }

    /// Returns each condition's type and status.
    async fn shown(&self) -> Vec<String> {
        let status = self.nodes.get("n1").await.unwrap().status.unwrap();
        let conditions = status.conditions.into_iter().flatten();
        let shown = conditions.map(|condition| format!("{} {}", condition.type_, condition.status));
        shown.collect()
    }

    async fn version(&self) -> String {
        let node = self.nodes.get("n1").await.unwrap();
        node.metadata.resource_version.unwrap()
    }

    fn requests(&self) -> usize {
        self.requests.swap(0, Ordering::Relaxed)
    }
}

fn unhealthy(class: DnsClass) -> Vote {
    Vote::Unhealthy(Failure::new(class, "10.96.0.10:53".parse().unwrap()))
}

fn ours(status: &str) -> String {
    format!("{DNS_READY} {status}")
}

#[tokio::test(start_paused = true)]
async fn the_condition_is_written_when_the_vote_changes_and_at_no_other_time() {
    let member = Member::new(&[json!({ "type": "Ready", "status": "True" })]).await;
    sleep(HOUR).await;
    assert_eq!(member.requests(), 0);
    let turns = [
        (Some(Vote::FirstSuccess), None),
        (Some(Vote::Healthy), Some("True")),
        (Some(unhealthy(DnsClass::Timeout)), Some("False")),
        (Some(unhealthy(DnsClass::Timeout)), None),
        (Some(unhealthy(DnsClass::Refused)), Some("False")),
        (None, Some("Unknown")),
        (Some(Vote::FirstSuccess), None),
        (Some(Vote::Healthy), Some("True")),
    ];
    for (vote, written) in turns {
        let before = member.version().await;
        member.votes.send_replace(on_dns(vote));
        sleep(HOUR).await;
        let changed = member.version().await != before;
        assert_eq!(changed, written.is_some(), "{vote:?}");
        if let Some(status) = written {
            let mut shown = member.shown().await;
            shown.sort();
            assert_eq!(shown, ["Ready True".to_owned(), ours(status)], "{vote:?}");
        }
    }
}

#[tokio::test(start_paused = true)]
async fn a_restarted_program_leaves_an_up_to_date_condition_alone() {
    let right = json!({
        "type": DNS_READY,
        "status": "True",
        "reason": DNS_READY_REASON,
        "message": DNS.works,
    });
    let member = Member::new(&[right]).await;
    let before = member.version().await;
    member.votes.send_replace(on_dns(Some(Vote::Healthy)));
    sleep(HOUR).await;
    assert!(member.requests() > 0);
    assert_eq!(member.version().await, before);
}

/// Another program has left a condition of our type, and the failure changes while it lasts: operators read
/// when the status changed, and the present failure.
#[tokio::test(start_paused = true)]
async fn message_changes_and_time_stays() {
    let before = "2026-11-01T00:00:00Z";
    let member = Member::new(&[json!({
        "type": DNS_READY,
        "status": "False",
        "reason": "CoreDNSUnhealthy",
        "message": "old",
        "lastTransitionTime": before,
        "lastHeartbeatTime": before,
    })])
    .await;
    let shown = async || {
        let status = member.nodes.get("n1").await.unwrap().status.unwrap();
        let condition = status.conditions.unwrap().remove(0);
        let time = condition.last_transition_time.unwrap().0.to_string();
        let heartbeat = condition.last_heartbeat_time.unwrap().0.to_string();
        assert_ne!(heartbeat, before);
        (time, condition.reason.unwrap(), condition.message.unwrap())
    };
    let is = |message: &str| {
        (
            before.to_owned(),
            DNS.failed_reason.to_owned(),
            message.to_owned(),
        )
    };
    let timeout = unhealthy(DnsClass::Timeout);
    member.votes.send_replace(on_dns(Some(timeout)));
    sleep(Duration::from_secs(1)).await;
    assert_eq!(shown().await, is("timeout from 10.96.0.10"));
    // One that lasts is written, with one read and one write.
    member.requests();
    for class in [DnsClass::Refused, DnsClass::Timeout, DnsClass::ServFail] {
        member.votes.send_replace(on_dns(Some(unhealthy(class))));
        sleep(Duration::from_secs(1)).await;
    }
    assert_eq!(shown().await, is("timeout from 10.96.0.10"));
    sleep(MESSAGE_LASTS).await;
    assert_eq!(shown().await, is("servfail from 10.96.0.10"));
    assert_eq!(member.requests(), 2);
    member.votes.send_replace(on_dns(Some(Vote::Healthy)));
    sleep(Duration::from_secs(1)).await;
    let (time, _, message) = shown().await;
    assert_ne!(time, before);
    assert_eq!(message, DNS.works);
}

/// In an outage two failures take turns: as few writes as reads at rest, and a recovery is written at once.
#[tokio::test(start_paused = true)]
async fn turns_are_not_written() {
    let member = Member::new(&[]).await;
    let turns = 720;
    for turn in 0..turns {
        let class = [DnsClass::Timeout, DnsClass::ServFail][turn % 2];
        member.votes.send_replace(on_dns(Some(unhealthy(class))));
        sleep(HOUR / u32::try_from(turns).unwrap()).await;
    }
    let requests = member.requests();
    assert!((2..=14).contains(&requests), "{requests}");
    member.votes.send_replace(on_dns(Some(Vote::Healthy)));
    sleep(Duration::from_secs(1)).await;
    assert_eq!(member.shown().await, [ours("True")]);
}

#[tokio::test(start_paused = true)]
async fn a_recreated_node_gets_its_condition_again() {
    let member = Member::new(&[]).await;
    member.votes.send_replace(on_dns(Some(Vote::Healthy)));
    sleep(HOUR).await;
    assert_eq!(member.shown().await, [ours("True")]);
    let parameters = DeleteParams::default();
    member.nodes.delete("n1", &parameters).await.unwrap();
    member.create(&[]).await;
    assert_eq!(member.shown().await, [""; 0]);
    sleep(HOUR).await;
    assert_eq!(member.shown().await, [ours("True")]);
}

#[tokio::test(start_paused = true)]
async fn an_api_that_is_away_gets_one_request_a_minute_and_the_newest_vote_when_it_is_back() {
    let member = Member::new(&[]).await;
    let away = member.server.faults().inject(Fault::Unavailable);
    member.votes.send_replace(on_dns(Some(Vote::Healthy)));
    sleep(HOUR / 2).await;
    member
        .votes
        .send_replace(on_dns(Some(unhealthy(DnsClass::Timeout))));
    sleep(HOUR / 2).await;
    let requests = member.requests();
    assert!((55..80).contains(&requests), "{requests}");
    member.server.faults().remove(away);
    sleep(LONGEST_RETRY).await;
    assert_eq!(member.shown().await, [ours("False")]);
    // One read and one write.
    assert_eq!(member.requests(), 2);
}
