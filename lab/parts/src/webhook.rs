//! An HTTPS server in place of an interpreter webhook of users'. It answers as a test says.

#![expect(
    clippy::missing_panics_doc,
    clippy::unwrap_used,
    reason = "a test that calls it fails by panicking"
)]

use std::convert::Infallible;
use std::fmt;
use std::future::pending;
use std::sync::Arc;

use base64::Engine;
use base64::prelude::BASE64_STANDARD;
use bytes::Bytes;
use http::{Request, Response};
use http_body_util::{BodyExt, Full};
use hyper::body::Incoming;
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper_util::rt::TokioIo;
use parking_lot::Mutex;
use serde_json::{Value, json};
use tokio::net::TcpListener;
use tokio::task::JoinSet;

use crate::tls::Authority;

/// The names that the server's certificate has: one at which it is reached, and those of Services.
const NAMES: [&str; 2] = ["localhost", "hook.shop.svc"];

/// The answer of a webhook.
#[derive(Clone, Debug)]
pub enum Answer {
    /// These fields of the response, beside its `uid` and `successful`, which they may replace.
    Fields(Value),
    /// A response of HTTP.
    Http(Response<Bytes>),
    /// Nothing, ever.
    Never,
}

/// A call of the webhook.
#[derive(Clone, Debug)]
pub struct Call {
    /// The host and the path, with the query.
    pub url: String,
    /// The body.
    pub body: Value,
}

/// A server that ends when it is dropped.
pub struct WebhookServer {
    /// Its port on 127.0.0.1.
    pub port: u16,
    /// The authority that verifies it, as a configuration has it.
    pub ca_bundle: String,
    calls: Calls,
    _serving: JoinSet<()>,
}

type Calls = Arc<Mutex<Vec<Call>>>;

impl WebhookServer {
    /// Starts a server that gives the answers of `answer`, to which it passes the field `request`.
    pub async fn start(answer: impl Fn(&Value) -> Answer + Send + Sync + 'static) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let port = listener.local_addr().unwrap().port();
        let authority = Authority::generate();
        let acceptor = authority.acceptor(&NAMES, &[]);
        let calls = Calls::default();
        let (noted, answer) = (Arc::clone(&calls), Arc::new(answer));
        let mut serving = JoinSet::new();
        serving.spawn(async move {
            let mut connections = JoinSet::new();
            while let Ok((stream, _)) = listener.accept().await {
                let (acceptor, answer) = (acceptor.clone(), Arc::clone(&answer));
                let calls = Arc::clone(&noted);
                connections.spawn(async move {
                    let service = service_fn(|request| reply(request, &*answer, &calls));
                    if let Ok(stream) = acceptor.accept(stream).await {
                        let connection = http1::Builder::new();
                        let io = TokioIo::new(stream);
                        // A client that goes away is no fault of a test.
                        drop(connection.serve_connection(io, service).await);
                    }
                });
            }
        });
        Self {
            port,
            ca_bundle: BASE64_STANDARD.encode(authority.pem()),
            calls,
            _serving: serving,
        }
    }

    /// Returns the calls so far.
    pub fn calls(&self) -> Vec<Call> {
        self.calls.lock().clone()
    }

    /// Returns the `clientConfig` of a webhook that is this server.
    pub fn client_config(&self) -> Value {
        let url = format!("https://localhost:{}/interpret", self.port);
        json!({ "url": url, "caBundle": self.ca_bundle })
    }

    /// Returns a configuration of this webhook, which is asked these operations of a kind.
    pub fn configuration(&self, operations: &[&str], group: &str, kind: &str) -> Value {
        json!({
            "apiVersion": "config.karmada.io/v1alpha1",
            "kind": "ResourceInterpreterWebhookConfiguration",
            "metadata": { "name": "hooks" },
            "webhooks": [{
                "name": "hook.example.com",
                "clientConfig": self.client_config(),
                "rules": [{ "operations": operations, "apiGroups": [group], "apiVersions": ["*"], "kinds": [kind] }],
                "timeoutSeconds": 1,
                "interpreterContextVersions": ["v1alpha1"],
            }],
        })
    }
}

impl fmt::Debug for WebhookServer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("WebhookServer")
            .field("port", &self.port)
            .finish_non_exhaustive()
    }
}

/// Returns the answer with a patch of these operations.
pub fn patch(operations: &Value) -> Answer {
    let patch = BASE64_STANDARD.encode(operations.to_string());
    Answer::Fields(json!({ "patch": patch, "patchType": "JSONPatch" }))
}

async fn reply(
    request: Request<Incoming>,
    answer: &(impl Fn(&Value) -> Answer + Send + Sync),
    calls: &Calls,
) -> Result<Response<Full<Bytes>>, Infallible> {
    let (parts, body) = request.into_parts();
    let host = parts.headers.get(http::header::HOST);
    let url = format!("{}{}", host.unwrap().to_str().unwrap(), parts.uri);
    let body = body.collect().await.unwrap().to_bytes();
    let body: Value = serde_json::from_slice(&body).unwrap();
    let question = body["request"].clone();
    calls.lock().push(Call { url, body });
    match answer(&question) {
        Answer::Fields(fields) => {
            let mut response = json!({ "uid": question["uid"], "successful": true });
            for (name, value) in fields.as_object().unwrap() {
                response[name] = value.clone();
            }
            // As servers made with Karmada's package, which name neither kind nor version.
            let context = json!({ "response": response });
            Ok(Response::new(Full::from(context.to_string())))
        }
        Answer::Http(response) => Ok(response.map(Full::new)),
        Answer::Never => pending().await,
    }
}
