//! A credential in any place of a kubeconfig, each of them broken: no error has a word of it.

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use serde_json::{Value, json};

use super::exec::Onlooker;
use super::*;
use crate::error::Chain;

const MARKER: &str = "not-a-real-token-4711";

/// The kubeconfig of somebody who left out a colon.
const WITHOUT_COLON: &str = "apiVersion: v1
kind: Config
users:
- name: ops
  user:
    token: not-a-real-token-4711
    client-certificate-data \"left out the colon\"
contexts: []
";

/// A kubeconfig in a file, which ends with the test.
struct File {
    folder: tempfile::TempDir,
}

impl File {
    fn of(text: &str) -> Self {
        drop(rustls::crypto::ring::default_provider().install_default());
        let folder = tempfile::tempdir().unwrap();
        std::fs::write(folder.path().join("kubeconfig"), text).unwrap();
        Self { folder }
    }

    /// Returns one that has this cluster and this user.
    fn with(cluster: &Value, user: &Value) -> Self {
        let mut whole = json!({ "server": "https://127.0.0.1:1" });
        whole
            .as_object_mut()
            .unwrap()
            .extend(cluster.as_object().unwrap().clone());
        let text = json!({
            "current-context": "c",
            "contexts": [{ "name": "c", "context": { "cluster": "c", "user": "u" } }],
            "clusters": [{ "name": "c", "cluster": whole }],
            "users": [{ "name": "u", "user": user }],
        });
        Self::of(&text.to_string())
    }

    fn source(&self) -> Source {
        Source {
            kubeconfig: Some(self.folder.path().join("kubeconfig")),
            ..Source::default()
        }
    }

    /// Returns the text that is told of it.
    async fn told(&self) -> String {
        let Err(error) = connect(&self.source(), "test").await else {
            let path = self.folder.path().join("kubeconfig");
            panic!("it can be used: {}", std::fs::read_to_string(path).unwrap());
        };
        let told = Chain(&error).to_string();
        assert!(!told.contains(MARKER) && !told.contains('\n'), "{told}");
        told
    }
}

/// Returns a user whose exec plugin is this script.
fn plugin(script: &str) -> Value {
    json!({ "exec": {
        "apiVersion": "client.authentication.k8s.io/v1", "interactiveMode": "Never",
        "command": "sh", "args": ["-c", script],
        "env": [{ "name": "SECRET", "value": MARKER }],
    } })
}

/// A file that does not parse is named with the line, and not shown.
#[tokio::test]
async fn mistake_is_told_by_its_line() {
    let file = File::of(WITHOUT_COLON);
    let told = file.told().await;
    assert!(
        told.contains("kubeconfig") && told.contains("line 7"),
        "{told}"
    );
    for broken in [
        MARKER.to_owned(),
        format!("users: {MARKER}"),
        format!("users: [{{name: u, user: {{token: [{MARKER}]}}}}]"),
        format!("users: [{{name: u, user: {{exec: {MARKER}}}}}]"),
        format!("users:\n- name: u\n  user:\n    token: \"{MARKER}"),
        format!("{{\"users\": [{{\"token\": \"{MARKER}\" x}}]}}"),
        format!("current-context: {MARKER}\n{MARKER}: @"),
    ] {
        File::of(&broken).told().await;
    }
}

/// Somebody puts a credential where another form of it belongs.
#[tokio::test]
async fn misplaced_credential_is_not_told() {
    for user in [
        json!({ "tokenFile": MARKER }),
        json!({ "client-certificate": MARKER, "client-key": MARKER }),
        json!({ "client-certificate-data": MARKER, "client-key-data": MARKER }),
        json!({ "client-certificate-data": STANDARD.encode(MARKER),
            "client-key-data": STANDARD.encode(MARKER) }),
        json!({ "client-certificate-data": STANDARD.encode(format!("-----BEGIN {MARKER}")),
            "client-key-data": STANDARD.encode(format!("-----BEGIN {MARKER}\n{MARKER}")) }),
        json!({ "auth-provider": { "name": "gcp", "config": {
            "cmd-path": "echo", "cmd-args": MARKER, "token-key": "{.token}" } } }),
        json!({ "auth-provider": { "name": "gcp", "config": {
            "cmd-path": "false", "cmd-args": MARKER } } }),
        json!({ "auth-provider": { "name": "gcp", "config": {
            "access-token": MARKER, "expiry": MARKER } } }),
    ] {
        File::with(&json!({}), &user).told().await;
    }
    let user = json!({ "token": MARKER });
    for cluster in [
        json!({ "certificate-authority": MARKER }),
        json!({ "certificate-authority-data": MARKER }),
        json!({ "proxy-url": format!("ftp://user:{MARKER}@proxy") }),
        json!({ "proxy-url": format!("http://user:{MARKER}") }),
    ] {
        File::with(&cluster, &user).told().await;
    }
}

/// An exec plugin tells people on its standard error why it fails. Its answer to programs has the token.
#[tokio::test]
async fn answers_of_plugins_are_not_told() {
    let status = json!({ "token": MARKER, "expirationTimestamp": MARKER });
    let answer = |status: &Value| {
        json!({ "apiVersion": "client.authentication.k8s.io/v1", "kind": "ExecCredential",
            "status": status })
    };
    for script in [
        format!("echo {MARKER}"),
        format!("echo '{{\"status\": {{\"token\": \"{MARKER}\"'"),
        format!("echo '{}'", answer(&status)),
        format!("echo '{}'", answer(&json!({ "token": [MARKER] }))),
        format!("echo '{}'", answer(&json!(MARKER))),
    ] {
        File::with(&json!({}), &plugin(&script)).told().await;
    }
    let fails = format!("echo {MARKER}; echo Log in first. >&2; exit 3");
    let file = File::with(&json!({}), &plugin(&fails));
    let (mut config, _) = load(&file.source(), false).await.unwrap();
    let error = ExecPlugin::take_before(Onlooker::Nobody, &mut config.auth_info).await;
    let told = Chain(&ClientError::from(error.err().unwrap())).to_string();
    assert!(
        told.contains("Log in first.") && !told.contains(MARKER),
        "{told}"
    );
}

/// A plugin that fails when its token ends, in the midst of requests, is told of as one that fails at the start.
#[tokio::test]
async fn failing_renewal_is_not_told() {
    let folder = tempfile::tempdir().unwrap();
    let ended = folder.path().join("ended");
    let answer = json!({ "apiVersion": "client.authentication.k8s.io/v1", "kind": "ExecCredential",
        "status": { "token": MARKER, "expirationTimestamp": "2020-01-01T00:00:00Z" } });
    let script = format!("echo '{answer}'; [ ! -e {} ]", ended.display());
    let file = File::with(&json!({}), &plugin(&script));
    let client = connect(&file.source(), "test").await.unwrap();
    std::fs::write(ended, "").unwrap();
    let error = client.apiserver_version().await.unwrap_err();
    let told = Chain(&error).to_string();
    assert!(
        told.contains("failed with exit status") && !told.contains(MARKER),
        "{told}"
    );
}
