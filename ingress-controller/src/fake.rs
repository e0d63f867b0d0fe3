//! An API for tests: gives the answers it is told to, in order, and keeps what it was asked.

use std::collections::VecDeque;
use std::convert::Infallible;
use std::sync::Arc;

use http::{Request, Response};
use http_body_util::BodyExt;
use kube::Client;
use kube::client::Body;
use parking_lot::Mutex;
use serde_json::{Value, json};

#[derive(Clone, Default)]
pub(crate) struct FakeApi {
    state: Arc<Mutex<State>>,
}

#[derive(Default)]
struct State {
    answers: VecDeque<(u16, Value)>,
    asked: Vec<(String, Value)>,
}

impl FakeApi {
    pub(crate) fn client(&self) -> Client {
        let state = Arc::clone(&self.state);
        let service = tower::service_fn(move |request: Request<Body>| {
            let state = Arc::clone(&state);
            async move { Ok::<_, Infallible>(answer(&state, request).await) }
        });
        Client::new(service, "default")
    }

    /// The answers to the next requests: status code and body. A write without one is stored as it
    /// was sent; anything else fails.
    pub(crate) fn answers(&self, answers: impl IntoIterator<Item = (u16, Value)>) {
        self.state.lock().answers.extend(answers);
    }

    /// What was asked since the last call: `METHOD path` and body.
    pub(crate) fn asked(&self) -> Vec<(String, Value)> {
        let mut state = self.state.lock();
        assert!(state.answers.is_empty(), "fewer requests than expected");
        std::mem::take(&mut state.asked)
    }

    /// The same, without bodies.
    pub(crate) fn calls(&self) -> Vec<String> {
        self.asked().into_iter().map(|(call, _)| call).collect()
    }
}

/// An answer that refuses.
pub(crate) fn refusal(code: u16, reason: &str) -> (u16, Value) {
    let body = json!({
        "apiVersion": "v1",
        "kind": "Status",
        "status": "Failure",
        "reason": reason,
        "message": format!("{reason} it is"),
        "code": code,
    });
    (code, body)
}

async fn answer(state: &Mutex<State>, request: Request<Body>) -> Response<Body> {
    let (head, body) = request.into_parts();
    let bytes = body.collect().await.expect("a whole body").to_bytes();
    let body: Value = serde_json::from_slice(&bytes).unwrap_or_default();
    let call = format!("{} {}", head.method, head.uri.path());
    let mut state = state.lock();
    let next = state.answers.pop_front();
    let echoed = body["metadata"]["name"].is_string();
    let (code, answer) = next.unwrap_or_else(|| match head.method.as_str() {
        "POST" if echoed => (201, body.clone()),
        "DELETE" => (200, json!({ "kind": "Status", "status": "Success" })),
        _ => refusal(500, "Unexpected"),
    });
    state.asked.push((call, body));
    Response::builder()
        .status(code)
        .body(Body::from(answer.to_string().into_bytes()))
        .expect("a response")
}
