//! Kinds that webhooks of users interpret, in members.

use lab_parts::webhook::{Answer, WebhookServer, patch};

use super::scripts::{is_unknown, joined, set, until_right};
use super::*;

/// Starts a webhook that interprets `ConfigMap`s.
async fn interpreter() -> WebhookServer {
    WebhookServer::start(|request| {
        let greeting = &request["object"]["data"]["greeting"];
        match request["operation"].as_str() {
            Some("Retain") => match &request["observedObject"]["data"]["counted"] {
                Value::Null => Answer::Fields(json!({})),
                counted => {
                    let path = "/data/counted";
                    patch(&json!([{ "op": "add", "path": path, "value": counted }]))
                }
            },
            Some("InterpretStatus") => Answer::Fields(json!({ "rawStatus": { "said": greeting } })),
            Some("InterpretHealth") => Answer::Fields(json!({ "healthy": greeting == "hello" })),
            other => panic!("{other:?}"),
        }
    })
    .await
}

/// Case I79: a webhook chooses the reported part of an object's status, its health, and the fields that it keeps.
#[tokio::test]
async fn webhook_interprets_objects() {
    let (server, (member, stage)) = (interpreter().await, joined().await);
    let hooks = server.configuration(&["*"], "", "ConfigMap");
    stage.api.create(&hooks).await;
    stage.dispatch("m1", "a", json!({})).await;
    let _program = stage.start(&[]);
    let reported = stage.reported("a", |one| one.status.is_some()).await;
    assert_eq!(reported.status, Some(json!({ "said": "hello" })));
    assert_eq!(reported.health.as_deref(), Some("Healthy"));

    // A field that the webhook keeps stays; another is put right.
    set(&member, "a", json!({ "counted": "7" })).await;
    set(&member, "a", json!({ "greeting": "bye", "other": "x" })).await;
    until_right(&member).await;
}

/// Case I81: where a webhook fails, the health is unknown, the member is not written, and the Work says why.
#[tokio::test]
async fn failed_webhook_writes_nothing() {
    let server = WebhookServer::start(|_| Answer::Fields(json!({}))).await;
    let (_member, stage) = joined().await;
    stage.dispatch("m1", "a", json!({})).await;
    let _program = stage.start(&[]);
    stage.condition("m1", "a", APPLIED, TRUE).await;
    let hooks = server.configuration(&["InterpretHealth"], "", "ConfigMap");
    stage.api.create(&hooks).await;
    stage.reported("a", is_unknown).await;
    let why =
        "failed calling webhook \"hooks/hook.example.com\": webhook returned nil response.healthy";
    assert_eq!(
        stage.told(Reason::InterpretHealthFailed).await,
        format!("Interpret health of object(ConfigMap/shop/a) failed, err: {why}.")
    );
    let broken = json!({ "webhooks": [{ "name": "hook.example.com", "clientConfig": {},
        "rules": [{ "operations": ["Retain"], "apiGroups": [""], "apiVersions": ["v1"], "kinds": ["ConfigMap"] }],
        "interpreterContextVersions": ["v1alpha1"] }] });
    let path = "/apis/config.karmada.io/v1alpha1/resourceinterpreterwebhookconfigurations/hooks";
    stage.api.send("PATCH", path, &broken).await;
    let failed = stage.condition("m1", "a", APPLIED, FALSE).await;
    assert!(
        failed
            .message
            .ends_with("exactly one of url or service is required"),
        "{}",
        failed.message
    );
}
