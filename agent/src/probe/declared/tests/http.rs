use std::fs;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use ::http::{HeaderMap, StatusCode, header};
use axum::response::Redirect;
use axum::routing::get;
use lab_parts::tls::Authority;
use serde_json::json;
use tokio::io::{AsyncReadExt, AsyncWriteExt};

use super::*;

fn url(server: SocketAddr, path: &str) -> Value {
    json!({ "http": { "url": format!("http://{server}{path}") } })
}

/// Answers each request with these bytes, and keeps the connection open.
async fn raw(text: &'static str) -> SocketAddr {
    server(move |mut connection| async move {
        let mut request = [0; 1024];
        assert!(connection.read(&mut request).await.unwrap() > 0);
        connection.write_all(text.as_bytes()).await.unwrap();
        hang(connection).await;
    })
    .await
}

/// Without a list 2xx is good, and with one nothing else.
#[tokio::test]
async fn status_decides() {
    let router = Router::new()
        .route("/ok", get(async || "fine"))
        .route("/empty", get(async || StatusCode::NO_CONTENT))
        .route("/denied", get(async || StatusCode::UNAUTHORIZED))
        .route("/broken", get(async || StatusCode::BAD_GATEWAY));
    let server = website(router).await;
    for path in ["/ok", "/empty"] {
        assert_eq!(observe(url(server, path)).await, Ok(()), "{path}");
    }
    for (path, class) in [
        ("/denied", "client-error"),
        ("/missing", "client-error"),
        ("/broken", "server-error"),
    ] {
        assert_failed(&observe(url(server, path)).await, class, server);
    }
    let [denied, empty] = ["/denied", "/empty"].map(|path| {
        let url = format!("http://{server}{path}");
        json!({ "http": { "url": url, "status": [200, 401] } })
    });
    assert_eq!(observe(denied).await, Ok(()));
    let outcome = observe(empty).await;
    assert_failed(&outcome, "unexpected-status", server);
}

/// A URL may go on with its query behind the host.
#[tokio::test]
async fn query_needs_no_path() {
    let server = website(Router::new().route("/", get(async || "fine"))).await;
    assert_eq!(observe(url(server, "?full=1")).await, Ok(()));
}

/// Who sends the agent elsewhere is not followed, and that is a failure unless it is listed. Case S8.
#[tokio::test]
async fn redirect_is_not_followed() {
    let asked = Arc::<AtomicUsize>::default();
    let count = Arc::clone(&asked);
    let elsewhere = get(move || {
        count.fetch_add(1, Ordering::Relaxed);
        std::future::ready("got you")
    });
    let router = Router::new()
        .route("/", get(async || Redirect::temporary("/elsewhere")))
        .route("/elsewhere", elsewhere);
    let server = website(router).await;
    assert_failed(&observe(url(server, "/")).await, "redirect", server);
    let listed = json!({ "http": { "url": format!("http://{server}/"), "status": [307] } });
    assert_eq!(observe(listed).await, Ok(()));
    assert_eq!(asked.load(Ordering::Relaxed), 0);
}

/// A body that stalls, or that never ends, changes no verdict. Case S8.
#[tokio::test]
async fn body_changes_nothing() {
    for text in [
        "HTTP/1.1 200 OK\r\nContent-Length: 1000000\r\n\r\nhello",
        "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nhello\r\n",
    ] {
        let server = raw(text).await;
        assert_eq!(observe_shortly(url(server, "/")).await, Ok(()), "{text}");
    }
}

/// Who speaks something else, closes, or is silent is told apart.
#[tokio::test]
async fn no_response_is_failure() {
    let other = raw("SSH-2.0-OpenSSH_10.0\r\n").await;
    assert_failed(&observe(url(other, "/")).await, "malformed", other);
    let closing = server(|mut connection| async move {
        let mut request = [0; 1024];
        assert!(connection.read(&mut request).await.unwrap() > 0);
    })
    .await;
    assert_failed(&observe(url(closing, "/")).await, "reset", closing);
    let silent = server(hang).await;
    let outcome = observe_shortly(url(silent, "/")).await;
    assert_failed(&outcome, "timeout", silent);
}

/// Starts a server by TLS that wants this token.
async fn secured(authority: &Authority, token: &'static str) -> SocketAddr {
    let acceptor = authority.acceptor(&["localhost"], &["http/1.1"]);
    server(move |connection| {
        let acceptor = acceptor.clone();
        async move {
            // A client that does not trust it ends the handshake.
            let Ok(mut secured) = acceptor.accept(connection).await else {
                return;
            };
            let mut request = vec![0; 4096];
            let length = secured.read(&mut request).await.unwrap();
            let request = String::from_utf8_lossy(&request[..length]).to_lowercase();
            let is_known = request.contains(&format!("authorization: bearer {token}"));
            let status = if is_known {
                "204 No Content"
            } else {
                "401 Unauthorized"
            };
            let response = format!("HTTP/1.1 {status}\r\nContent-Length: 0\r\n\r\n");
            secured.write_all(response.as_bytes()).await.unwrap();
            secured.flush().await.unwrap();
        }
    })
    .await
}

/// A server is trusted by the file of its authorities, which may change, and gets the token in a file.
#[tokio::test]
async fn authority_and_token_are_files() {
    let authority = Authority::generate();
    let address = secured(&authority, "s3cret").await;
    let folder = tempfile::tempdir().unwrap();
    let (ca, token) = (folder.path().join("ca.crt"), folder.path().join("token"));
    let http = json!({ "http": {
        "url": format!("https://localhost:{}/v2/", address.port()), "ca": ca, "token": token,
    } });
    let missing = observe(http.clone()).await;
    assert_unobserved(&missing, "cannot read");

    fs::write(&token, "s3cret\n").unwrap();
    fs::write(&ca, Authority::generate().pem()).unwrap();
    assert_failed(&observe(http.clone()).await, "tls", address);
    fs::write(&ca, authority.pem()).unwrap();
    assert_eq!(observe(http.clone()).await, Ok(()));
    fs::write(&token, "stale").unwrap();
    let outcome = observe(http.clone()).await;
    assert_failed(&outcome, "client-error", address);
    fs::write(&token, "\n").unwrap();
    assert_unobserved(&observe(http.clone()).await, "has no token");
    fs::write(&token, "two\nlines").unwrap();
    let outcome = observe(http).await;
    assert_unobserved(&outcome, "has no token");
    assert!(!format!("{outcome:?}").contains("lines"), "{outcome:?}");
}

/// A file without an end takes no memory without an end.
#[tokio::test]
async fn endless_file_is_not_read() {
    let authority = Authority::generate();
    let address = secured(&authority, "s3cret").await;
    let folder = tempfile::tempdir().unwrap();
    let ca = folder.path().join("ca.crt");
    fs::write(&ca, authority.pem()).unwrap();
    let url = format!("https://localhost:{}/v2/", address.port());
    for (ca, token, problem) in [
        (ca.as_path(), Some("/dev/zero"), "too long for a token"),
        (Path::new("/dev/zero"), None, "is larger than"),
    ] {
        let http = json!({ "http": { "url": url, "ca": ca, "token": token } });
        assert_unobserved(&observe(http).await, problem);
    }
}

/// A server that speaks no TLS is no server of https.
#[tokio::test]
async fn plaintext_is_no_tls() {
    let server = raw("HTTP/1.1 400 Bad Request\r\n\r\n").await;
    let folder = tempfile::tempdir().unwrap();
    let ca = folder.path().join("ca.crt");
    fs::write(&ca, Authority::generate().pem()).unwrap();
    let url = format!("https://localhost:{}/", server.port());
    let outcome = observe(json!({ "http": { "url": url, "ca": ca } })).await;
    assert_failed(&outcome, "tls", server);
}

/// The server learns who asks, and for which host.
#[tokio::test]
async fn request_names_agent_and_host() {
    let agent = async |headers: HeaderMap| {
        let named = headers[header::USER_AGENT] == crate::identity::NAME;
        let host = headers[header::HOST].to_str().unwrap().to_owned();
        if named && host.starts_with("localhost:") {
            StatusCode::OK
        } else {
            StatusCode::IM_A_TEAPOT
        }
    };
    let server = website(Router::new().route("/healthz", get(agent))).await;
    let url = format!("http://localhost:{}/healthz?full=1", server.port());
    let outcome = observe(json!({ "http": { "url": url } })).await;
    assert_eq!(outcome, Ok(()));
}
