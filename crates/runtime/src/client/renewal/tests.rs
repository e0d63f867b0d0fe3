use std::convert::Infallible;
use std::net::{Ipv4Addr, SocketAddr};
use std::path::Path;

use axum::Router;
use axum::http::HeaderMap;
use axum::http::header::AUTHORIZATION;
use axum::routing::get;
use jiff::ToSpan;
use serde_json::json;
use tokio::net::TcpListener;

use super::*;
use crate::metrics::Registry;

/// Starts a server that responds with the name given and the credentials it was sent.
async fn server(name: &'static str) -> SocketAddr {
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).await.unwrap();
    let address = listener.local_addr().unwrap();
    let echo = move |headers: HeaderMap| async move {
        let sent = headers
            .get(AUTHORIZATION)
            .map(|sent| sent.to_str().unwrap());
        Ok::<_, Infallible>(format!("{name} {}", sent.unwrap_or("nothing")))
    };
    let routes = Router::new().route("/", get(echo));
    tokio::spawn(async move { axum::serve(listener, routes).await });
    address
}

fn write(path: &Path, server: SocketAddr, user: &serde_json::Value) {
    let kubeconfig = json!({
        "apiVersion": "v1", "kind": "Config", "current-context": "c",
        "clusters": [{ "name": "c", "cluster": { "server": format!("http://{server}") } }],
        "users": [{ "name": "c", "user": user }],
        "contexts": [{ "name": "c", "context": { "cluster": "c", "user": "c" } }],
    });
    fs::write(path, kubeconfig.to_string()).unwrap();
}

async fn start(kubeconfig: &Path) -> (Renewal, Registry) {
    let source = Source {
        kubeconfig: Some(kubeconfig.to_owned()),
        ..Source::default()
    };
    let mut registry = Registry::default();
    let metrics = CredentialMetrics::register(&mut registry);
    let renewal = Renewal::start(
        &source,
        "test",
        Addresses::by_system(),
        "hub",
        metrics,
        || "2026-11-20T08:00:00Z".parse().unwrap(),
    )
    .await;
    (renewal.unwrap(), registry)
}

async fn response(client: &Client) -> String {
    let request = Request::get("/").body(Vec::new()).unwrap();
    client.request_text(request).await.unwrap()
}

/// A changed kubeconfig is used by every clone of the client.
#[tokio::test]
async fn changed_kubeconfig_reaches_every_clone() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("kubeconfig");
    let (one, other) = (server("one").await, server("other").await);
    write(&path, one, &json!({ "token": "first" }));
    let (mut renewal, _) = start(&path).await;
    let client = renewal.client();
    assert_eq!(response(&client).await, "one Bearer first");
    write(&path, one, &json!({ "token": "second" }));
    renewal.look().await;
    assert_eq!(response(&client).await, "one Bearer second");
    write(&path, other, &json!({ "token": "second" }));
    renewal.look().await;
    assert_eq!(response(&client).await, "other Bearer second");
}

/// A kubeconfig that cannot be used leaves the last one in use.
#[tokio::test]
async fn unusable_kubeconfig_is_ignored() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("kubeconfig");
    let one = server("one").await;
    write(&path, one, &json!({ "token": "first" }));
    let (mut renewal, _) = start(&path).await;
    let client = renewal.client();
    let whole = fs::read_to_string(&path).unwrap();
    let parts = [&whole[..whole.len() / 2], ""];
    for part in parts {
        fs::write(&path, part).unwrap();
        renewal.look().await;
        assert_eq!(response(&client).await, "one Bearer first");
    }
    fs::remove_file(&path).unwrap();
    renewal.look().await;
    assert_eq!(response(&client).await, "one Bearer first");
    write(&path, one, &json!({ "token": "second" }));
    renewal.look().await;
    assert_eq!(response(&client).await, "one Bearer second");
}

/// A changed certificate is a change of the kubeconfig that names it.
#[tokio::test]
async fn changed_certificate_is_noticed() {
    let folder = tempfile::tempdir().unwrap();
    let (path, certificate) = (folder.path().join("kubeconfig"), folder.path().join("crt"));
    fs::write(&certificate, "first").unwrap();
    let user = json!({ "client-certificate": "crt", "client-key": "key" });
    write(&path, SocketAddr::from(([127, 0, 0, 1], 1)), &user);
    let source = Source {
        kubeconfig: Some(path),
        ..Source::default()
    };
    let first = fingerprint(&source);
    assert_eq!(fingerprint(&source), first);
    fs::write(&certificate, "second").unwrap();
    assert_ne!(fingerprint(&source), first);
}

/// A changed token file is used at the next look.
/// The old token may be refused from now on.
#[tokio::test]
async fn changed_token_file_is_noticed() {
    let folder = tempfile::tempdir().unwrap();
    let (path, token) = (
        folder.path().join("kubeconfig"),
        folder.path().join("token"),
    );
    fs::write(&token, "first").unwrap();
    write(&path, server("one").await, &json!({ "tokenFile": "token" }));
    let (mut renewal, _) = start(&path).await;
    let client = renewal.client();
    assert_eq!(response(&client).await, "one Bearer first");
    fs::write(&token, "second").unwrap();
    renewal.look().await;
    assert_eq!(response(&client).await, "one Bearer second");
}

/// The end of a credential is a metric and near it a warning.
#[tokio::test]
async fn expiry_is_metric_and_warning() {
    use base64::Engine;
    let now: Timestamp = "2026-11-20T08:00:00Z".parse().unwrap();
    let ends = [now + 48.hours(), now + 23.hours()].map(Timestamp::as_second);
    let [far_user, near_user] = ends.map(|second| {
        let claims = json!({ "exp": second }).to_string();
        let claims = base64::engine::general_purpose::URL_SAFE_NO_PAD.encode(claims);
        json!({ "token": format!("e30.{claims}.c2ln") })
    });
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("kubeconfig");
    let nowhere = SocketAddr::from(([127, 0, 0, 1], 1));
    write(&path, nowhere, &far_user);
    let log = folder.path().join("log");
    let file = Arc::new(fs::File::create(&log).unwrap());
    let subscriber = tracing_subscriber::fmt()
        .with_ansi(false)
        .with_writer(file)
        .finish();
    let _logging = tracing::subscriber::set_default(subscriber);
    let warnings = || {
        let log = fs::read_to_string(&log).unwrap();
        let soon = "Credentials end soon, renew them";
        let lines = log.lines().filter(|line| line.contains(soon));
        lines.map(str::to_owned).collect::<Vec<_>>()
    };
    let (mut renewal, registry) = start(&path).await;
    let shown = || registry.encode().unwrap();
    let [far, near] = ends.map(|second| {
        format!(
            "credentials_expiry_timestamp_seconds{{api=\"hub\",credential=\"token\"}} {second}\n"
        )
    });
    assert!(shown().contains(&far), "{}", shown());
    assert_eq!(warnings(), [""; 0]);
    write(&path, nowhere, &near_user);
    // One look in ten seconds must not be one line in ten seconds.
    for _ in 0..2 {
        renewal.look().await;
        assert!(shown().contains(&near), "{}", shown());
        let [warning] = &warnings()[..] else {
            panic!("{:?}", warnings());
        };
        for part in [
            "WARN",
            r#"credential="token""#,
            "until=2026-11-21T07:00:00Z",
        ] {
            assert!(warning.contains(part), "{warning}");
        }
    }
    write(&path, nowhere, &json!({ "token": "opaque" }));
    renewal.look().await;
    assert!(!shown().contains("token\""), "{}", shown());
    assert_eq!(warnings().len(), 1);
}
