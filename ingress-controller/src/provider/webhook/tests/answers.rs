//! Programs that answer nonsense, too much, something else or nothing: each is one clear line, and holds up no other ingress.

use std::future::pending;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use axum::Router;
use axum::extract::Request;
use axum::response::{IntoResponse, Redirect, Response};
use http::{Method, StatusCode};
use karmada_runtime::readiness::Readiness;
use serde_json::{Value, json};

use super::*;
use crate::reason::Reason;

/// Serves a program that holds nothing, and answers changes as `answer` does.
async fn misbehaving(answer: impl Fn() -> Response + Clone + Send + Sync + 'static) -> Serving {
    let program = Router::new().fallback(move |request: Request| {
        let answer = match *request.method() {
            Method::GET if request.uri().path() == "/" => r#"{"ingresses":[]}"#.into_response(),
            Method::GET => StatusCode::NOT_FOUND.into_response(),
            _ => answer(),
        };
        std::future::ready(answer)
    });
    Serving::start(program).await
}

/// Returns an answer with this status and body.
fn answer(status: u16, body: &str) -> impl Fn() -> Response + Clone + Send + Sync + 'static {
    let (status, body) = (StatusCode::from_u16(status).unwrap(), body.to_owned());
    move || (status, body.clone()).into_response()
}

async fn ensure(serving: &Serving) -> (Webhook, Result<Ensured, BoxError>) {
    let provider = provider(&serving.source()).await;
    provider.list().await.unwrap();
    let desired = contract::desired("i", &["s"], &["m1"]);
    let ensured = provider.ensure(&desired).await;
    (provider, ensured)
}

/// A fault of others than the ingress's owner is an error, of which only silence and overload stop all others.
#[tokio::test]
async fn trouble_is_an_error() {
    let page = "<html>\n<body>Welcome";
    let huge = "x".repeat(endpoint::LARGEST_ANSWER + 1);
    for (program, expected, is_outage) in [
        (
            misbehaving(answer(200, page)).await,
            "the provider's answer to PUT ns/i cannot be used: line 1, column 1: expected value",
            false,
        ),
        (
            misbehaving(answer(200, "[]")).await,
            "the provider's answer to PUT ns/i cannot be used: ",
            false,
        ),
        (
            misbehaving(answer(200, &huge)).await,
            "the provider's answer to PUT ns/i cannot be used: it is larger than 16 MiB",
            false,
        ),
        (
            misbehaving(|| Redirect::temporary("http://127.0.0.1:1/").into_response()).await,
            "the provider answered PUT ns/i with 307 Temporary Redirect: redirects are not followed",
            false,
        ),
        (
            misbehaving(answer(401, "")).await,
            "the provider answered PUT ns/i with 401 Unauthorized",
            false,
        ),
        (
            misbehaving(answer(404, "no such\npage")).await,
            "the provider answered PUT ns/i with 404 Not Found: no such page",
            false,
        ),
        (
            misbehaving(answer(500, r#"{"error":"a bug"}"#)).await,
            "the provider answered PUT ns/i with 500 Internal Server Error: a bug",
            true,
        ),
        (
            misbehaving(answer(429, "")).await,
            "the provider answered PUT ns/i with 429 Too Many Requests",
            true,
        ),
    ] {
        let (provider, ensured) = ensure(&program).await;
        let error = ensured.unwrap_err();
        let shown = Chain(&*error).to_string();
        assert!(shown.starts_with(expected), "{shown}");
        assert!(!shown.contains('\n') && shown.len() < 400, "{shown}");
        assert_eq!(provider.is_outage(&error), is_outage, "{shown}");
    }
}

/// An objection of the program to an ingress is an obstacle, with its words, which have an end.
#[tokio::test]
async fn refusals_are_obstacles() {
    let long = format!("{{\"message\":\"{}\"}}", "no ".repeat(1000));
    for (status, body, reason, expected) in [
        (
            400,
            "no\u{7} way",
            Reason::GatewayRefused,
            "400 Bad Request: no way",
        ),
        (403, "", Reason::GatewayRefused, "403 Forbidden"),
        (
            422,
            &*long,
            Reason::GatewayRefused,
            "422 Unprocessable Entity: no no ",
        ),
        (
            409,
            "theirs",
            Reason::GatewayClash,
            "--provider-url: theirs",
        ),
    ] {
        let program = misbehaving(answer(status, body)).await;
        let (_, ensured) = ensure(&program).await;
        let obstacles: Vec<_> = ensured.unwrap().obstacles.into_iter().collect();
        let [obstacle] = &*obstacles else {
            panic!("{obstacles:?}");
        };
        assert_eq!(obstacle.reason, reason);
        assert!(obstacle.message.contains(expected), "{obstacle}");
        assert!(obstacle.message.len() < 400, "{obstacle}");
    }
}

/// A program that reports a problem, at once or later, has one said of the ingress, and its addresses reach the status.
#[tokio::test]
async fn reported_problems_are_obstacles() {
    let report =
        json!({ "problem": "no\nquota", "loadBalancer": { "ingress": [{ "ip": "192.0.2.1" }] } });
    let program = misbehaving(answer(200, &report.to_string())).await;
    let (provider, ensured) = ensure(&program).await;
    let ensured = ensured.unwrap();
    let addresses = ensured.load_balancer.clone().unwrap().ingress.unwrap();
    assert_eq!(addresses[0].ip.as_deref(), Some("192.0.2.1"));
    let messages: Vec<_> = ensured.obstacles.iter().map(ToString::to_string).collect();
    assert_eq!(
        messages,
        ["the provider does not serve ns/i as desired: no quota"]
    );
    let desired = contract::desired("i", &["s"], &["m1"]);
    let again = provider.ensure(&desired).await.unwrap();
    assert_eq!(again, ensured);
}

/// A program that never answers for one ingress is given up after ten seconds, and meanwhile another one is served.
#[tokio::test]
async fn silence_holds_up_no_other() {
    let reply = async |request: Request| match request.uri().path() {
        "/" => r#"{"ingresses":[]}"#.into_response(),
        "/ns/i" => pending().await,
        _ => StatusCode::OK.into_response(),
    };
    let serving = Serving::start(Router::new().fallback(reply)).await;
    let provider = Arc::new(provider(&serving.source()).await);
    provider.list().await.unwrap();
    let silent = {
        let provider = Arc::clone(&provider);
        tokio::spawn(async move {
            let desired = contract::desired("i", &["s"], &["m1"]);
            provider.ensure(&desired).await
        })
    };
    let other = contract::desired("j", &["s"], &["m1"]);
    provider.ensure(&other).await.unwrap();
    assert!(!silent.is_finished());
    tokio::time::pause();
    let error = silent.await.unwrap().unwrap_err();
    let expected = "the provider does not answer PUT ns/i: no answer within 10s";
    assert_eq!(Chain(&*error).to_string(), expected);
    assert!(provider.is_outage(&error));
    // It may have been stored.
    assert!(provider.holds(&contract::key("i")));
}

/// A list that is nonsense is an error of its own, and until there is one, every ingress says so and waits.
#[tokio::test]
async fn unlisted_program_is_an_outage() {
    for list in [
        answer(200, "{}"),
        answer(200, "welcome"),
        answer(302, ""),
        answer(500, ""),
    ] {
        let program = Router::new().fallback(move || std::future::ready(list()));
        let serving = Serving::start(program).await;
        let provider = provider(&serving.source()).await;
        provider.list().await.unwrap_err();
        let desired = contract::desired("i", &["s"], &["m1"]);
        let error = provider.ensure(&desired).await.unwrap_err();
        assert_eq!(
            error.to_string(),
            "the provider has not said yet what it holds"
        );
        assert!(provider.is_outage(&error));
        provider.probe().await.unwrap_err();
    }
}

fn held(name: &str) -> Value {
    json!({ "controller": CONTROLLER, "namespace": "ns", "name": name, "revision": "1" })
}

/// One document that cannot be read is sent anew, and the others are known.
#[tokio::test]
async fn broken_document_is_replaced() {
    let list = json!({ "ingresses": [held("i"), held("j")] });
    let program = Router::new().fallback(move |request: Request| {
        let answer = match (request.method(), request.uri().path()) {
            (&Method::GET, "/") => list.to_string().into_response(),
            (&Method::GET, "/ns/i") => "nonsense".into_response(),
            (&Method::GET, _) => {
                let other = contract::desired("j", &["s"], &["m1"]);
                let ours = CONTROLLER.parse().unwrap();
                let document = document(&ours, &other, None).unwrap();
                json!(document).to_string().into_response()
            }
            _ => StatusCode::OK.into_response(),
        };
        std::future::ready(answer)
    });
    let serving = Serving::start(program).await;
    let provider = provider(&serving.source()).await;
    let (i, j) = (contract::key("i"), contract::key("j"));
    assert_eq!(provider.list().await.unwrap(), [i.clone(), j.clone()]);
    assert!(provider.holds(&i) && provider.endpoints(&i).is_empty());
    assert!(!provider.endpoints(&j).is_empty());
    let desired = contract::desired("i", &["s"], &["m1"]);
    provider.ensure(&desired).await.unwrap();
    assert!(!provider.endpoints(&i).is_empty());
}

/// Entries that name no ingress, or have nonsense beside the name, hide no other. An `HTTPRoute` is listed, too.
#[tokio::test]
async fn broken_entries_spoil_no_list() {
    let mut odd = held("i");
    odd["revision"] = json!(7);
    let list = json!({ "ingresses": [null, "i", {}, { "controller": "c", "name": 7 }, held("../j"),
        held("a b"), odd, held("j"), held("httproute:"), held("httproute:i")] });
    let program = Router::new().fallback(move |request: Request| {
        let answer = match request.uri().path() {
            "/" => list.to_string().into_response(),
            _ => StatusCode::NOT_FOUND.into_response(),
        };
        std::future::ready(answer)
    });
    let serving = Serving::start(program).await;
    let provider = provider(&serving.source()).await;
    let all = ["httproute:i", "i", "j"].map(contract::key);
    assert_eq!(provider.list().await.unwrap(), all);
    assert_eq!(provider.keys(), all);
}

/// A program that cannot be listed at the start keeps nobody from saying so. Once it can, its ingresses are known and woken.
#[tokio::test]
async fn late_list_wakes_what_is_held() {
    let is_well = Arc::new(AtomicBool::new(false));
    let answers = Arc::clone(&is_well);
    let held = json!({ "ingresses": [held("i")] });
    let program = Router::new().fallback(move |request: Request| {
        let answer = match request.uri().path() {
            "/" if answers.load(Ordering::Relaxed) => held.to_string().into_response(),
            _ => StatusCode::INTERNAL_SERVER_ERROR.into_response(),
        };
        std::future::ready(answer)
    });
    let serving = Serving::start(program).await;
    let provider = Arc::new(provider(&serving.source()).await);
    let (readiness, queue) = (Readiness::default(), Queue::default());
    let (gate, woken, listing) = (
        readiness.gate("provider"),
        queue.clone(),
        Arc::clone(&provider),
    );
    let listing = tokio::spawn(async move { listing.keep_listed(gate, woken).await });
    readiness.opened().await;
    assert!(queue.is_empty() && provider.keys().is_empty());
    is_well.store(true, Ordering::Relaxed);
    // It answers now, and has not listed its ingresses yet.
    provider.probe().await.unwrap_err();
    while queue.is_empty() {
        tokio::task::yield_now().await;
    }
    assert_eq!(provider.keys(), [contract::key("i")]);
    provider.probe().await.unwrap();
    listing.abort();
}
