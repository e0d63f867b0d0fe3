//! The command line of the built program: good and bad flags, actions and signals.

use std::path::Path;

use rustix::process::Signal;
use serde_json::{Value, json};
use tokio::net::TcpListener;

use crate::program::{Sandbox, request, request_with};

async fn refused(flags: &[&str], expected: &str) {
    let mut sandbox = Sandbox::start(flags);
    let (code, lines) = sandbox.end().await;
    let errors = sandbox.errors();
    assert_eq!(code, Some(2), "{flags:?}: {errors}");
    assert!(lines.is_empty(), "{lines:?}");
    assert!(errors.starts_with("error: "), "{errors}");
    assert!(errors.contains(expected), "{expected}: {errors}");
}

/// Bad flags are refused with the possible values.
#[tokio::test]
async fn bad_flags_are_refused() {
    refused(&["--scenario=flood"], "coredns-outage").await;
    refused(&["--scenario"], "--scenario").await;
    refused(&["--thresholds=tiny"], "short, default").await;
    refused(&["--port=99999"], "--port").await;
    refused(&["--log-level=sandbox=loud"], "--log-level").await;
    refused(&["--log-level=loud"], "off, error, warn, info").await;
    refused(&["--unheard-of"], "--unheard-of").await;
}

#[tokio::test]
async fn taken_port_is_named() {
    let taken = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let port = taken.local_addr().unwrap().port();
    let expected = format!("127.0.0.1:{port}: Address already in use");
    refused(&[&format!("--port={port}")], &expected).await;
}

/// Actions, each of which the one before allows.
const ACTIONS: [&str; 32] = [
    r#"{"do":"dns","cluster":"member2","fault":"lose"}"#,
    r#"{"do":"dns","cluster":"member2","fault":"none"}"#,
    r#"{"do":"service-network","cluster":"member2","fault":"one-node"}"#,
    r#"{"do":"service-network","cluster":"member2","fault":"none"}"#,
    r#"{"do":"outage","cluster":"member2","fault":"link-cut"}"#,
    r#"{"do":"outage","cluster":"member2","fault":"none"}"#,
    r#"{"do":"outage","cluster":"member2","fault":"power-off"}"#,
    r#"{"do":"outage","cluster":"member2","fault":"none"}"#,
    r#"{"do":"kill-agent","cluster":"member3","node":"member3-node1"}"#,
    r#"{"do":"start-agent","cluster":"member3","node":"member3-node1"}"#,
    r#"{"do":"create-sample","remedy":"maintenance-member1"}"#,
    r#"{"do":"delete-remedy","remedy":"maintenance-member1"}"#,
    r#"{"do":"create-remedy","name":"trial","acts":"while-dns-fails","observe_only":true}"#,
    r#"{"do":"delete-remedy","remedy":"trial"}"#,
    r#"{"do":"declare","cluster":"member2"}"#,
    r#"{"do":"withdraw","cluster":"member2"}"#,
    r#"{"do":"drain","cluster":"member2"}"#,
    r#"{"do":"end-drain","cluster":"member2"}"#,
    r#"{"do":"pause","cluster":"member2"}"#,
    r#"{"do":"new-version"}"#,
    r#"{"do":"pause"}"#,
    r#"{"do":"resume","cluster":"member2"}"#,
    r#"{"do":"resume"}"#,
    r#"{"do":"roll-out"}"#,
    r#"{"do":"break"}"#,
    r#"{"do":"cordon","cluster":"member1"}"#,
    r#"{"do":"uncordon","cluster":"member1"}"#,
    r#"{"do":"leave","cluster":"member1"}"#,
    r#"{"do":"leave","cluster":"member3"}"#,
    r#"{"do":"api-fault","fault":"conflicts"}"#,
    r#"{"do":"cut-api","seconds":1}"#,
    r#"{"do":"api-fault","fault":"none"}"#,
];

/// Actions that are refused, each with words of the reason.
const REFUSED: [(&str, &str); 20] = [
    ("no json", "not an action"),
    (r#"{"do":"dance"}"#, "dance"),
    (
        r#"{"do":"dns","cluster":"member9","fault":"none"}"#,
        "the clusters are member1, member2, member3",
    ),
    (r#"{"do":"dns","cluster":"member1","fault":"odd"}"#, "odd"),
    (
        r#"{"do":"outage","cluster":"member1","fault":"flood"}"#,
        "flood",
    ),
    (r#"{"do":"cut-api","seconds":0}"#, "1 to 600"),
    (
        r#"{"do":"kill-agent","cluster":"member1","node":"n"}"#,
        "member1-node1",
    ),
    (
        r#"{"do":"start-agent","cluster":"member1","node":"member1-node1"}"#,
        "is running already",
    ),
    (
        r#"{"do":"pause","cluster":"member9"}"#,
        "the clusters are member1, member2, member3",
    ),
    (r#"{"do":"create-sample","remedy":"dns"}"#, "already exists"),
    (
        r#"{"do":"create-sample","remedy":"tea"}"#,
        "dns, unreachable, maintenance-member1",
    ),
    (
        r#"{"do":"create-remedy","name":"dns","acts":"at-once"}"#,
        "already exists",
    ),
    (
        r#"{"do":"create-remedy","name":"r","acts":"at-once","clusters":["member9"]}"#,
        "there is no cluster member9",
    ),
    (
        r#"{"do":"create-remedy","name":"r","acts":"at-once","expires_at":"2020-01-01T00:00:00Z"}"#,
        "is past",
    ),
    (
        r#"{"do":"create-remedy","name":"r","acts":"at-once","cluster":"member1"}"#,
        "unknown field `cluster`",
    ),
    (r#"{"do":"delete-remedy","remedy":"tea"}"#, "not found"),
    (
        r#"{"do":"drain","cluster":"member9"}"#,
        "the clusters are member1, member2, member3",
    ),
    (
        r#"{"do":"join","cluster":"member9"}"#,
        "the clusters are member1, member2, member3",
    ),
    (r#"{"do":"join","cluster":"member2"}"#, "already exists"),
    (
        r#"{"do":"cordon","cluster":"member9"}"#,
        "the clusters are member1, member2, member3",
    ),
];

/// It prints the page performs its actions and ends on a signal.
#[tokio::test]
async fn page_acts_until_signal() {
    let mut sandbox = Sandbox::start(&[]);
    let page = sandbox.line("page: ").await;
    let kubeconfig = sandbox.line("kubeconfig: ").await;
    assert!(Path::new(&kubeconfig).exists());
    assert!(request(&page, "GET /", "").await.contains("<html"));

    for good in ACTIONS {
        let response = request(&page, "POST /actions", good).await;
        assert!(response.starts_with("HTTP/1.1 204"), "{good}: {response}");
    }
    for (bad, expected) in REFUSED {
        let response = request(&page, "POST /actions", bad).await;
        assert!(response.starts_with("HTTP/1.1 400"), "{bad}: {response}");
        let body = response.split("\r\n\r\n").nth(1).unwrap();
        assert!(body.contains(expected), "{bad}: {body}");
        assert_eq!(body.lines().count(), 1, "{body}");
    }

    sandbox.signal(Signal::INT);
    let (code, _) = sandbox.end().await;
    assert_eq!(code, Some(0), "{}", sandbox.errors());
    assert!(!Path::new(&kubeconfig).exists());
}

/// A plan tells the effect of a remedy, or why it cannot be created.
#[tokio::test]
async fn plan_shows_effect_or_reason() {
    let mut sandbox = Sandbox::start(&[]);
    let page = sandbox.line("page: ").await;
    let plan = async |description: Value| -> Value {
        let response = request(&page, "POST /plans", &description.to_string()).await;
        assert!(response.starts_with("HTTP/1.1 200"), "{response}");
        serde_json::from_str(response.split("\r\n\r\n").nth(1).unwrap()).unwrap()
    };
    let everywhere = plan(json!({ "name": "r", "acts": "at-once" })).await;
    let changes = everywhere["accepted"]["clusters"].as_array().unwrap();
    let clusters: Vec<_> = changes.iter().map(|change| &change["cluster"]).collect();
    assert_eq!(clusters, ["member1", "member2", "member3"], "{everywhere}");
    assert_eq!(changes[0]["kind"], "set");
    for (description, expected) in [
        (
            json!({ "name": "r", "acts": "at-once", "expires_at": "soon" }),
            "\"soon\" is no end",
        ),
        (
            json!({ "name": "r", "acts": "at-once", "clusters": ["m9"] }),
            "there is no cluster m9",
        ),
        (
            json!({ "name": "dns", "acts": "at-once" }),
            "already exists",
        ),
        (json!({ "name": "No", "acts": "at-once" }), "lowercase"),
        (json!({ "name": "", "acts": "at-once" }), "name"),
    ] {
        let refused = plan(description).await;
        let why = refused["refused"].as_str().unwrap();
        assert!(why.contains(expected) && !why.contains('\n'), "{why}");
    }
    let response = request(&page, "POST /plans", r#"{"name":"r"}"#).await;
    assert!(response.starts_with("HTTP/1.1 400"), "{response}");
    assert!(
        response.contains("not a Remedy: missing field `acts`"),
        "{response}"
    );
    sandbox.signal(Signal::INT);
    assert_eq!(sandbox.end().await.0, Some(0), "{}", sandbox.errors());
}

/// A terminal that closes ends it and leaves nothing behind.
#[tokio::test]
async fn closed_terminal_leaves_nothing() {
    for signal in [Signal::HUP, Signal::TERM] {
        let mut sandbox = Sandbox::start(&[]);
        let kubeconfig = sandbox.line("kubeconfig: ").await;
        let folder = Path::new(&kubeconfig).parent().unwrap();
        assert!(folder.exists());
        sandbox.signal(signal);
        let (code, _) = sandbox.end().await;
        assert_eq!(code, Some(0), "{signal:?}: {}", sandbox.errors());
        assert!(!folder.exists(), "{signal:?}");
    }
}

/// No other site's page can write to the APIs.
#[tokio::test]
async fn other_sites_cannot_write() {
    let mut sandbox = Sandbox::start(&[]);
    let kubeconfig = sandbox.line("kubeconfig: ").await;
    let kubeconfig = std::fs::read_to_string(kubeconfig).unwrap();
    let kubeconfig: Value = serde_json::from_str(&kubeconfig).unwrap();
    let clusters = kubeconfig["clusters"].as_array().unwrap();
    assert_eq!(clusters.len(), 6, "{kubeconfig}");
    for cluster in clusters {
        let server = cluster["cluster"]["server"].as_str().unwrap();
        let address = server.strip_prefix("http://").unwrap();
        let post = async |name: &str, headers: &[(&str, &str)]| {
            let map = json!({ "metadata": { "name": name } }).to_string();
            let json = [("Content-Type", "application/json")];
            let headers = [&json, headers].concat();
            let path = "POST /api/v1/namespaces/default/configmaps";
            request_with(server, path, &headers, &map).await
        };
        let own = format!("http://{address}");
        for (name, headers) in [
            ("of-kubectl", &[("Host", address)][..]),
            ("of-itself", &[("Host", address), ("Origin", &own)]),
        ] {
            let response = post(name, headers).await;
            assert!(response.starts_with("HTTP/1.1 201"), "{name}: {response}");
        }
        for (name, headers) in [
            (
                "of-a-page",
                &[("Host", address), ("Origin", "http://evil.example")][..],
            ),
            ("of-a-file", &[("Host", address), ("Origin", "null")]),
            ("of-rebound-dns", &[("Host", "evil.example")]),
        ] {
            let response = post(name, headers).await;
            assert!(response.starts_with("HTTP/1.1 403"), "{name}: {response}");
            let path = format!("GET /api/v1/namespaces/default/configmaps/{name}");
            let response = request(server, &path, "").await;
            assert!(response.starts_with("HTTP/1.1 404"), "{name}: {response}");
        }
    }
    sandbox.signal(Signal::INT);
    assert_eq!(sandbox.end().await.0, Some(0), "{}", sandbox.errors());
}
