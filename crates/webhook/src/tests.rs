//! Calls of a real server, and of none.

use std::net::Ipv4Addr;
use std::sync::Arc;

use bytes::Bytes;
use futures::FutureExt;
use futures::future::join_all;
use http::header::RETRY_AFTER;
use http::{Response, StatusCode};
use karmada_runtime::client::Addresses;
use lab_parts::test_api::TestApi;
use lab_parts::webhook::{Answer, WebhookServer};
use objects::GroupVersionKind;
use parking_lot::Mutex;
use propagation_rules::customization::webhook::{self, Request, Webhook};
use propagation_rules::customization::{Customized, Interpreter, Operation};
use serde_json::{Value, json};

use super::*;

/// An API that knows Services, and a DNS that knows the names of the server.
struct Stage {
    api: TestApi,
    webhooks: Webhooks,
}

impl Stage {
    async fn new() -> Self {
        let api = TestApi::with_kinds([]);
        api.create_namespace("shop").await;
        let addresses = Addresses::by(|_| async { Ok(vec![Ipv4Addr::LOCALHOST.into()]) }.boxed());
        let webhooks = Webhooks::new(api.client(), addresses, "tests");
        Self { api, webhooks }
    }

    /// Asks a webhook whether an object is well.
    async fn ask(&self, webhook: &Arc<Webhook>) -> Result<bool, String> {
        let toy = toy();
        let request = Request::new(Operation::InterpretHealth, &toy);
        let read = webhook::Response::is_healthy;
        let answer = self.webhooks.ask(webhook, &request, read).await;
        answer.map_err(|failure| failure.to_string())
    }

    /// Creates a Service before the webhook, or replaces it.
    async fn serve(&self, spec: Value) {
        let services = "/api/v1/namespaces/shop/services";
        let service = json!({ "metadata": { "name": "hook" }, "spec": spec });
        self.api.send("POST", services, &service).await;
    }
}

fn toy() -> Value {
    json!({ "apiVersion": "a.io/v1", "kind": "Toy", "metadata": { "name": "red", "namespace": "shop" } })
}

/// Returns the webhook of a configuration.
fn webhook(configuration: &Value) -> Arc<Webhook> {
    let mut customized = Customized::default();
    customized.add(configuration);
    let kind = GroupVersionKind::new("a.io/v1", "Toy");
    match customized.interpreter(&kind, Operation::InterpretHealth) {
        Some(Interpreter::Webhook(webhook)) => webhook,
        other => panic!("{other:?}"),
    }
}

fn configuration(server: &WebhookServer, config: Value) -> Value {
    let mut configuration = server.configuration(&["*"], "a.io", "Toy");
    configuration["webhooks"][0]["clientConfig"] = config;
    configuration
}

fn by_url(server: &WebhookServer) -> Arc<Webhook> {
    webhook(&configuration(server, server.client_config()))
}

/// Returns the webhook behind the Service.
fn by_service(server: &WebhookServer, ca_bundle: &str) -> Arc<Webhook> {
    let service =
        json!({ "namespace": "shop", "name": "hook", "path": "ask", "port": server.port });
    webhook(&configuration(
        server,
        json!({ "service": service, "caBundle": ca_bundle }),
    ))
}

async fn well() -> WebhookServer {
    WebhookServer::start(|_| Answer::Fields(json!({ "healthy": true }))).await
}

fn refusal(status: StatusCode) -> Response<Bytes> {
    let mut response = Response::new(Bytes::from("no\nway"));
    *response.status_mut() = status;
    response
}

/// Returns an error as it is told of the webhook.
fn failed(reason: &str) -> Result<bool, String> {
    Err(format!(
        "failed calling webhook \"hooks/hook.example.com\": {reason}"
    ))
}

/// Case I79: a question goes to the URL of the webhook, with its timeout, and its answer comes back.
#[tokio::test]
async fn question_is_answered() {
    let server = WebhookServer::start(|request| {
        let is_healthy = request["object"]["metadata"]["name"] == "red";
        Answer::Fields(json!({ "healthy": is_healthy }))
    })
    .await;
    let stage = Stage::new().await;
    assert_eq!(stage.ask(&by_url(&server)).await, Ok(true));
    let calls = server.calls();
    assert_eq!(calls.len(), 1);
    let url = format!("localhost:{}/interpret?timeout=1s", server.port);
    assert_eq!(calls[0].url, url);
    assert_eq!(calls[0].body["request"]["operation"], "InterpretHealth");
    assert_eq!(calls[0].body["kind"], "ResourceInterpreterContext");
}

/// Case I80: a Service leads to another name, an address or, where the API has none, to its own name. By that name the
/// server is verified.
#[tokio::test]
async fn services_are_followed() {
    let server = well().await;
    for spec in [
        json!(null),
        json!({ "type": "ExternalName", "externalName": "elsewhere.example.com" }),
        json!({ "type": "ExternalName", "externalName": "127.0.0.1" }),
    ] {
        let stage = Stage::new().await;
        if !spec.is_null() {
            stage.serve(spec.clone()).await;
        }
        let asked = stage.ask(&by_service(&server, &server.ca_bundle)).await;
        assert_eq!(asked, Ok(true), "{spec}");
        let url = format!("hook.shop.svc:{}/ask?timeout=1s", server.port);
        assert_eq!(server.calls().pop().unwrap().url, url);
    }
    let stage = Stage::new().await;
    stage.serve(json!({ "clusterIP": "None" })).await;
    let asked = stage.ask(&by_service(&server, &server.ca_bundle)).await;
    assert_eq!(
        asked,
        failed("cannot route to service with ClusterIP \"None\"")
    );
}

/// Case I80: a server that the authorities of the configuration do not verify is asked nothing.
#[tokio::test]
async fn impostor_is_asked_nothing() {
    let (server, other) = (well().await, well().await);
    let stage = Stage::new().await;
    let error = stage.ask(&by_service(&server, &other.ca_bundle)).await;
    assert!(error.unwrap_err().contains("certificate"));
    assert!(server.calls().is_empty());
    let none = stage.ask(&by_service(&server, "bm9uZQ==")).await;
    assert_eq!(none, failed("caBundle holds no certificates in PEM"));
}

/// Case I81: an answer that is none is an error with its reason, and the next call is made at once.
#[tokio::test]
async fn wrong_answers_are_errors() {
    let huge = Response::new(Bytes::from(vec![b' '; (4 << 20) + 1]));
    for (answer, reason) in [
        (
            Answer::Http(refusal(StatusCode::INTERNAL_SERVER_ERROR)),
            "the server answered 500 Internal Server Error: no way",
        ),
        (Answer::Http(huge), "the answer is larger than 4 MiB"),
        (
            Answer::Fields(
                json!({ "successful": false, "status": { "code": 403, "message": "no" } }),
            ),
            "webhook call failed, get status code: 403, msg: no",
        ),
        (
            Answer::Fields(json!({})),
            "webhook returned nil response.healthy",
        ),
    ] {
        let server = WebhookServer::start(move |_| answer.clone()).await;
        let (stage, webhook) = (Stage::new().await, by_url(&server));
        assert_eq!(stage.ask(&webhook).await, failed(reason));
        assert_eq!(stage.ask(&webhook).await, failed(reason));
        assert_eq!(server.calls().len(), 2);
    }
    let liar = WebhookServer::start(|_| Answer::Fields(json!({ "uid": "1" }))).await;
    let error = Stage::new().await.ask(&by_url(&liar)).await.unwrap_err();
    assert!(error.ends_with("got \"1\""), "{error}");
}

/// Case I81: a server that is busy is asked again when it says, if that is in time.
#[tokio::test]
async fn busy_server_is_asked_again() {
    let busy = |seconds: &'static str| {
        let mut response = refusal(StatusCode::TOO_MANY_REQUESTS);
        let seconds = http::HeaderValue::from_static(seconds);
        response.headers_mut().insert(RETRY_AFTER, seconds);
        Answer::Http(response)
    };
    let answers = Mutex::new(vec![
        busy("18446744073709551615"),
        busy("60"),
        Answer::Fields(json!({ "healthy": true })),
        busy("1"),
    ]);
    let server = WebhookServer::start(move |_| answers.lock().pop().unwrap()).await;
    let mut patient = server.configuration(&["*"], "a.io", "Toy");
    patient["webhooks"][0]["timeoutSeconds"] = json!(30);
    let (stage, webhook) = (Stage::new().await, webhook(&patient));
    assert_eq!(stage.ask(&webhook).await, Ok(true));
    let reason = "the server answered 429 Too Many Requests: no way";
    for _of_both in 0..2 {
        assert_eq!(stage.ask(&webhook).await, failed(reason));
    }
}

/// Cases I81, I83: a webhook that does not answer in time gets no further call for a while: all who wait for it fail, and
/// nobody who asks another one.
#[tokio::test]
async fn silent_webhook_delays_its_own_only() {
    let (silent, other) = (WebhookServer::start(|_| Answer::Never).await, well().await);
    let (stage, webhook) = (Stage::new().await, by_url(&silent));
    let questions = join_all((0..20).map(|_| stage.ask(&webhook)));
    let beside = async {
        let mut configuration = other.configuration(&["*"], "a.io", "Toy");
        configuration["metadata"]["name"] = json!("others");
        stage.ask(&self::webhook(&configuration)).await
    };
    let mut questions = std::pin::pin!(questions);
    tokio::select! {
        biased;
        _ = &mut questions => panic!("the other one was late"),
        answer = beside => assert_eq!(answer, Ok(true)),
    }
    let late = failed("failed to call webhook: no answer within 1 s");
    assert!(questions.await.iter().all(|answer| *answer == late));
    assert_eq!(silent.calls().len(), 8);
    assert_eq!(stage.ask(&webhook).await, late);
    assert_eq!(silent.calls().len(), 8);
}

/// Case I83: a webhook that is away is not called for a while, unless it is configured anew.
#[tokio::test]
async fn new_configuration_is_tried_at_once() {
    let server = well().await;
    let stage = Stage::new().await;
    let url = format!("https://localhost:{}", lab_parts::port::CLOSED.port());
    let config = json!({ "url": url, "caBundle": server.ca_bundle });
    let away = webhook(&configuration(&server, config));
    let error = stage.ask(&away).await;
    assert!(
        error
            .clone()
            .unwrap_err()
            .contains("failed to call webhook: ")
    );
    assert_eq!(stage.ask(&away).await, error);
    assert_eq!(stage.ask(&by_url(&server)).await, Ok(true));
    // One that is gone is forgotten.
    stage.webhooks.keep(&Customized::default());
    assert!(stage.webhooks.lines.lock().is_empty());
}
