use std::convert::Infallible;
use std::fs;
use std::path::Path;

use http::Uri;
use jiff::ToSpan;
use kube::{Client, Config};
use tempfile::TempDir;

use super::*;
use crate::client;
use crate::error::Chain;

/// A user whose command notes that it runs in `runs`, and prints this status.
fn user(folder: &TempDir, status: &Value) -> AuthInfo {
    let printed = json!({ "apiVersion": "client.authentication.k8s.io/v1", "kind": "ExecCredential",
        "status": status });
    fs::write(folder.path().join("printed"), printed.to_string()).unwrap();
    script(folder, "cat printed")
}

/// A user whose command runs these lines in `folder`.
fn script(folder: &TempDir, lines: &str) -> AuthInfo {
    let here = folder.path().display();
    let text = format!("cd {here}; echo \"$KUBERNETES_EXEC_INFO\" >> runs; {lines}");
    AuthInfo {
        exec: Some(ExecConfig {
            api_version: Some("client.authentication.k8s.io/v1".to_owned()),
            command: Some("sh".to_owned()),
            args: Some(vec!["-c".to_owned(), text]),
            ..ExecConfig::default()
        }),
        ..AuthInfo::default()
    }
}

fn runs(folder: &Path) -> usize {
    let runs = fs::read_to_string(folder.join("runs")).unwrap_or_default();
    runs.lines().count()
}

/// Returns a client with these credentials, of an API that answers with the token that it is sent, and refuses one token.
async fn client(mut user: AuthInfo) -> Result<Client, ExecError> {
    let plugin = ExecPlugin::take_before(Onlooker::Nobody, &mut user).await?;
    let echo = |request: Request<Body>| {
        let sent = request.headers().get(header::AUTHORIZATION);
        let sent = sent.map_or("nothing", |sent| sent.to_str().unwrap());
        let status = match sent {
            "Bearer refused" => StatusCode::UNAUTHORIZED,
            _ => StatusCode::OK,
        };
        let response = Response::builder().status(status);
        let response = response.body(Body::from(sent.as_bytes().to_vec())).unwrap();
        std::future::ready(Ok::<_, Infallible>(response))
    };
    let mut config = Config::new(Uri::from_static("http://api"));
    config.auth_info = user;
    let access = client::Access { config, plugin };
    Ok(client::with_service(tower::service_fn(echo), access, "test").unwrap())
}

async fn sent(client: &Client) -> String {
    let request = Request::get("/").body(Body::empty()).unwrap();
    let response = client.send(request).await.unwrap();
    let body = response.into_body().collect_bytes().await.unwrap();
    String::from_utf8(body.to_vec()).unwrap()
}

/// The command runs once for a client and all of its requests.
#[tokio::test]
async fn command_runs_once() {
    let folder = tempfile::tempdir().unwrap();
    let end = (Timestamp::now() + 1.hours()).to_string();
    let user = user(
        &folder,
        &json!({ "token": "t1", "expirationTimestamp": end }),
    );
    let client = client(user).await.unwrap();
    for _ in 0..3 {
        assert_eq!(sent(&client).await, "Bearer t1");
    }
    assert_eq!(runs(folder.path()), 1);
}

/// It runs again when its token has ended, or the API refuses it.
#[tokio::test]
async fn ended_token_is_renewed() {
    let folder = tempfile::tempdir().unwrap();
    let ended = (Timestamp::now() - 1.hours()).to_string();
    let config = user(
        &folder,
        &json!({ "token": "t1", "expirationTimestamp": ended }),
    );
    let client_of_ended = client(config).await.unwrap();
    user(&folder, &json!({ "token": "refused" }));
    assert_eq!(sent(&client_of_ended).await, "Bearer refused");
    user(&folder, &json!({ "token": "t3" }));
    assert_eq!(sent(&client_of_ended).await, "Bearer t3");
    assert_eq!(sent(&client_of_ended).await, "Bearer t3");
    assert_eq!(runs(folder.path()), 3);
}

/// Whoever asks may go away before the command ends, which keeps its output for all others.
#[tokio::test]
async fn abandoned_run_counts() {
    let folder = tempfile::tempdir().unwrap();
    let ended = (Timestamp::now() - 1.hours()).to_string();
    user(
        &folder,
        &json!({ "token": "t1", "expirationTimestamp": ended }),
    );
    let lines = "while [ -e closed ]; do sleep 0.01; done; cat printed";
    let mut slow = script(&folder, lines);
    let plugin = ExecPlugin::take_before(Onlooker::Nobody, &mut slow).await;
    let plugin = plugin.unwrap().unwrap();
    fs::write(folder.path().join("closed"), "").unwrap();
    user(&folder, &json!({ "token": "t2" }));
    let abandoned = tokio::time::timeout(Duration::from_millis(50), plugin.credentials()).await;
    assert!(abandoned.is_err());
    fs::remove_file(folder.path().join("closed")).unwrap();
    let token = plugin.credentials().await.unwrap().token.unwrap();
    assert_eq!(token, "Bearer t2");
    assert_eq!(runs(folder.path()), 2);
}

/// A command that asks nobody and does not end is killed, and so is one that only closes its output.
#[test]
fn endless_command_is_killed() {
    let folder = tempfile::tempdir().unwrap();
    for lines in [
        "exec sleep 600",
        "sleep 3; true",
        "exec sleep 600 > /dev/null 2>&1",
    ] {
        let mut config = script(&folder, lines).exec.unwrap();
        config.interactive_mode = Some(ExecInteractiveMode::Never);
        let error = run(&config, Onlooker::Nobody, Duration::from_millis(200)).err();
        assert_eq!(
            error.unwrap().to_string(),
            "sh, which is to give credentials, did not end within 200ms, and was killed",
            "{lines}"
        );
    }
}

/// More than a pipe holds is read while the command prints it.
#[tokio::test]
async fn long_output_is_read() {
    let folder = tempfile::tempdir().unwrap();
    user(&folder, &json!({ "token": "t1" }));
    let lines =
        "head -c 200000 /dev/zero >&2; head -c 200000 /dev/zero | tr '\\0' ' '; cat printed";
    let client = client(script(&folder, lines)).await.unwrap();
    assert_eq!(sent(&client).await, "Bearer t1");
}

/// A certificate becomes that of the user.
#[tokio::test]
async fn certificate_is_of_user() {
    let folder = tempfile::tempdir().unwrap();
    let end = "2026-11-20T08:00:00Z";
    let status = json!({ "clientCertificateData": "PEM", "clientKeyData": "KEY",
        "expirationTimestamp": end });
    let mut user = user(&folder, &status);
    let plugin = ExecPlugin::take(&mut user).await.unwrap().unwrap();
    assert_eq!(plugin.certificate_end, Some(end.parse().unwrap()));
    let certificate = user.client_certificate_data.unwrap();
    assert_eq!(STANDARD.decode(certificate).unwrap(), b"PEM");
    assert!(user.client_key_data.is_some());
    assert!(user.exec.is_none());
}

/// Whoever has a token or a certificate needs no command (as in client-go).
#[tokio::test]
async fn other_credentials_come_first() {
    let folder = tempfile::tempdir().unwrap();
    let mut user = script(&folder, "exit 1");
    user.token = Some("inline".to_owned().into());
    assert_eq!(sent(&client(user).await.unwrap()).await, "Bearer inline");
    assert_eq!(runs(folder.path()), 0);
}

/// Only a terminal is somebody to ask.
#[test]
fn terminal_makes_it_interactive() {
    use ExecInteractiveMode::{Always, IfAvailable, Never};
    for (mode, with, without) in [
        (None, Some(true), Some(false)),
        (Some(Never), Some(false), Some(false)),
        (Some(IfAvailable), Some(true), Some(false)),
        (Some(Always), Some(true), None),
    ] {
        let found = [true, false].map(|terminal| is_interactive(mode.as_ref(), terminal));
        assert_eq!(found, [with, without], "{mode:?}");
    }
}

/// The words of a command for people are shown as text, and its output for us, never.
#[tokio::test]
async fn failure_is_shown_as_text() {
    let folder = tempfile::tempdir().unwrap();
    for (lines, shown) in [
        (
            "echo MARKER; printf 'log in\\033[1m\\nfirst\\n' >&2; exit 3",
            "failed with exit status: 3: log in[1m first",
        ),
        (
            "echo 'MARKER: ['",
            "printed something that is neither JSON nor YAML",
        ),
        ("echo 'token: MARKER'", "printed no status"),
        ("echo 'status: {clientKeyData: MARKER}'", "but not both"),
        (
            "echo 'status: {other: MARKER}'",
            "printed neither a token nor a certificate",
        ),
        (
            "echo 'status: {token: a, expirationTimestamp: MARKER}'",
            "printed an expirationTimestamp that is none",
        ),
        (
            "echo 'status: {token: MARKER two}'",
            "printed a token that no request can have",
        ),
    ] {
        let error = client(script(&folder, lines)).await.err().unwrap();
        let error = Chain(&error).to_string();
        assert!(
            error.contains(shown) && !error.contains("MARKER"),
            "{error}"
        );
        assert!(
            error.starts_with("sh, which is to give credentials, "),
            "{error}"
        );
    }
}

/// A command that is not installed is named, with the hint at how to get it.
#[tokio::test]
async fn missing_command_has_hint() {
    let exec = ExecConfig {
        command: Some("/no/such/login".to_owned()),
        install_hint: Some("ask the\nplatform team".to_owned()),
        ..ExecConfig::default()
    };
    let mut user = AuthInfo {
        exec: Some(exec),
        ..AuthInfo::default()
    };
    let error = ExecPlugin::take(&mut user).await.err().unwrap();
    let error = Chain(&error).to_string();
    let expected = "cannot run /no/such/login, which is to give credentials: ask the platform team: No such file";
    assert!(error.starts_with(expected), "{error}");
}
