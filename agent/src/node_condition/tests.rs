use std::convert::Infallible;
use std::sync::Arc;

use http::{Method, Request, Response, StatusCode};
use kube::client::Body;
use prometheus_client::registry::Registry;
use rules::observation::{Failure, FailureClass};
use runtime::lease::Leadership;
use runtime::metrics::WriteMetrics;
use std::sync::Mutex;
use tokio::time::sleep;

use super::*;

const HOUR: Duration = Duration::from_hours(1);

/// An API server that has one Node, and may be away.
#[derive(Clone)]
struct FakeApi(Arc<Mutex<State>>);

struct State {
    conditions: Vec<Value>,
    away: bool,
    requests: usize,
    writes: Vec<Value>,
}

impl FakeApi {
    fn new(conditions: Vec<Value>) -> Self {
        Self(Arc::new(Mutex::new(State {
            conditions,
            away: false,
            requests: 0,
            writes: Vec::new(),
        })))
    }

    fn client(&self) -> Client {
        let api = self.clone();
        let service = tower::service_fn(move |request: Request<Body>| {
            let api = api.clone();
            async move { Ok::<_, Infallible>(api.answer(request).await) }
        });
        Client::new(service, "default")
    }

    async fn answer(&self, request: Request<Body>) -> Response<Body> {
        let (parts, body) = request.into_parts();
        let body = body.collect_bytes().await.unwrap();
        let mut state = self.0.lock().unwrap();
        state.requests += 1;
        if state.away {
            let mut response = Response::new(Body::empty());
            *response.status_mut() = StatusCode::SERVICE_UNAVAILABLE;
            return response;
        }
        if parts.method == Method::PATCH {
            assert_eq!(parts.uri.path(), "/api/v1/nodes/n1/status");
            let kind = &parts.headers[http::header::CONTENT_TYPE];
            assert_eq!(kind, "application/strategic-merge-patch+json");
            let patch: Value = serde_json::from_slice(&body).unwrap();
            let new = patch["status"]["conditions"][0].clone();
            state.conditions.retain(|old| old["type"] != new["type"]);
            state.conditions.push(new.clone());
            state.writes.push(new);
        } else {
            assert_eq!(parts.uri.path(), "/api/v1/nodes/n1");
        }
        let node = json!({ "apiVersion": "v1", "kind": "Node", "metadata": { "name": "n1" },
            "status": { "conditions": state.conditions } });
        Response::new(Body::from(node.to_string().into_bytes()))
    }

    fn set_away(&self, away: bool) {
        self.0.lock().unwrap().away = away;
    }

    fn requests(&self) -> usize {
        std::mem::take(&mut self.0.lock().unwrap().requests)
    }

    /// The statuses written since the last call.
    fn written(&self) -> Vec<String> {
        let writes = std::mem::take(&mut self.0.lock().unwrap().writes);
        let status = |write: &Value| write["status"].as_str().unwrap().to_owned();
        writes.iter().map(status).collect()
    }
}

fn start(api: &FakeApi) -> watch::Sender<Option<Vote>> {
    let (votes, receiver) = watch::channel(None);
    let metrics = WriteMetrics::register(&mut Registry::default());
    let conditions = NodeConditions {
        client: api.client(),
        node: "n1".to_owned(),
        votes: receiver,
        writer: Writer::new(Leadership::always(), metrics),
    };
    tokio::spawn(conditions.run(CancellationToken::new()));
    votes
}

fn unhealthy(class: FailureClass) -> Vote {
    Vote::Unhealthy(Failure::new(class, "10.96.0.10:53".parse().unwrap()))
}

#[tokio::test(start_paused = true)]
async fn the_condition_is_written_when_the_vote_turns_and_at_no_other_time() {
    let ready = json!({ "type": "Ready", "status": "True" });
    let api = FakeApi::new(vec![ready.clone()]);
    let votes = start(&api);
    sleep(HOUR).await;
    assert_eq!(api.requests(), 0);
    let turns = [
        (Some(Vote::FirstSuccess), None),
        (Some(Vote::Healthy), Some("True")),
        (Some(unhealthy(FailureClass::Timeout)), Some("False")),
        (Some(unhealthy(FailureClass::Refused)), None),
        (None, Some("Unknown")),
        (Some(Vote::FirstSuccess), None),
        (Some(Vote::Healthy), Some("True")),
    ];
    for (vote, written) in turns {
        votes.send_replace(vote);
        sleep(HOUR).await;
        assert_eq!(api.written(), Vec::from_iter(written), "{vote:?}");
    }
    assert_eq!(api.0.lock().unwrap().conditions[0], ready);
}

#[tokio::test(start_paused = true)]
async fn a_program_that_starts_anew_leaves_a_right_condition_alone() {
    let right = json!({ "type": DNS_READY, "status": "True", "reason": DNS_READY_REASON });
    let api = FakeApi::new(vec![right]);
    let votes = start(&api);
    votes.send_replace(Some(Vote::Healthy));
    sleep(HOUR).await;
    assert_eq!(api.written(), [""; 0]);
}

#[tokio::test(start_paused = true)]
async fn a_node_that_was_made_anew_gets_its_condition_again() {
    let api = FakeApi::new(Vec::new());
    let votes = start(&api);
    votes.send_replace(Some(Vote::Healthy));
    sleep(HOUR).await;
    api.0.lock().unwrap().conditions.clear();
    sleep(HOUR).await;
    assert_eq!(api.written(), ["True", "True"]);
}

#[tokio::test(start_paused = true)]
async fn an_api_that_is_away_is_asked_once_a_minute_and_told_the_newest_vote_when_it_is_back() {
    let api = FakeApi::new(Vec::new());
    api.set_away(true);
    let votes = start(&api);
    votes.send_replace(Some(Vote::Healthy));
    sleep(HOUR / 2).await;
    votes.send_replace(Some(unhealthy(FailureClass::Timeout)));
    sleep(HOUR / 2).await;
    let requests = api.requests();
    assert!((55..80).contains(&requests), "{requests}");
    api.set_away(false);
    sleep(LONGEST_RETRY).await;
    assert_eq!(api.written(), ["False"]);
}
