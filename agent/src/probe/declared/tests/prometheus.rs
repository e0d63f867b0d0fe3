use std::collections::BTreeMap;
use std::fs;
use std::sync::{Arc, Mutex};

use ::http::StatusCode;
use axum::extract::RawQuery;
use axum::routing::get;
use lab_parts::port::CLOSED;
use serde_json::json;

use super::*;

type Asked = Arc<Mutex<Vec<BTreeMap<String, String>>>>;

/// Starts a Prometheus that answers so, and returns the queries that it gets.
async fn answering(status: StatusCode, body: String) -> (SocketAddr, Asked) {
    let asked = Asked::default();
    let noted = Arc::clone(&asked);
    let answer = get(move |RawQuery(query): RawQuery| {
        let query = query.unwrap_or_default();
        let parameters = form_urlencoded::parse(query.as_bytes()).into_owned();
        noted.lock().unwrap().push(parameters.collect());
        std::future::ready((status, body.clone()))
    });
    let server = website(Router::new().route("/prom/api/v1/query", answer)).await;
    (server, asked)
}

fn query(server: SocketAddr) -> Value {
    json!({ "prometheus": {
        "url": format!("http://{server}/prom/"), "query": "errors / requests", "holds": "value < 0.05",
    } })
}

/// Returns the answer with one element of this value.
fn element(value: &str) -> String {
    let result = json!([{ "metric": { "job": "shop" }, "value": [1_700_000_000, value] }]);
    json!({ "status": "success", "data": { "resultType": "vector", "result": result } }).to_string()
}

/// A value that holds is a success, and one that does not a failure; the query bounds the age of its samples.
#[tokio::test]
async fn value_decides() {
    let (good, asked) = answering(StatusCode::OK, element("0.01")).await;
    assert_eq!(observe(query(good)).await, Ok(()));
    let asked = asked.lock().unwrap().clone();
    assert_eq!(asked[0]["query"], "errors / requests");
    assert_eq!(asked[0]["lookback_delta"], "10000ms");
    let (bad, _) = answering(StatusCode::OK, element("0.5")).await;
    assert_failed(&observe(query(bad)).await, "not-holding", bad);
}

/// Whatever is no value is no vote, whichever status it comes with, and the reason has its text.
#[tokio::test]
async fn no_value_is_no_vote() {
    let empty = json!({
        "status": "success",
        "data": { "resultType": "vector", "result": [] },
        "warnings": ["PromQL warning: no such thing"],
    });
    let error = json!({ "status": "error", "errorType": "timeout", "error": "query timed out" });
    for (status, body, part) in [
        (StatusCode::OK, element("NaN"), "NaN"),
        (
            StatusCode::OK,
            empty.to_string(),
            "the answer is empty; PromQL warning",
        ),
        (
            StatusCode::SERVICE_UNAVAILABLE,
            error.to_string(),
            "timeout: query timed out",
        ),
        (
            StatusCode::UNPROCESSABLE_ENTITY,
            error.to_string(),
            "status 422",
        ),
        (
            StatusCode::SERVICE_UNAVAILABLE,
            "replaying".to_owned(),
            "none of Prometheus",
        ),
        (
            StatusCode::OK,
            "x".repeat(1_000_000),
            "Prometheus does not answer",
        ),
    ] {
        let (server, _) = answering(status, body).await;
        assert_unobserved(&observe(query(server)).await, part);
    }
    let outcome = observe(query(CLOSED)).await;
    assert_unobserved(&outcome, "Prometheus does not answer: refused");
    let silent = server(hang).await;
    let outcome = observe_shortly(query(silent)).await;
    assert_unobserved(&outcome, "Prometheus does not answer: timeout");
}

/// A server that quotes the token is not quoted.
#[tokio::test]
async fn token_is_not_quoted() {
    let folder = tempfile::tempdir().unwrap();
    let token = folder.path().join("token");
    fs::write(&token, "s3cret\n").unwrap();
    let error = json!({ "status": "error", "errorType": "denied", "error": "no user has s3cret" });
    let (server, _) = answering(StatusCode::UNAUTHORIZED, error.to_string()).await;
    let mut query = query(server);
    query["prometheus"]["token"] = json!(token);
    // A file may not say so without TLS, which changes nothing of the quotes.
    let probe: Probe = serde_json::from_value(query).unwrap();
    let outcome = run_once(&probe, &node(), PERIOD, AMPLE).await;
    assert_unobserved(&outcome, "denied: no user has (token)");
}
