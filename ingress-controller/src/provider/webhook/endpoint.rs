//! The requests to the load balancer's own program ([`karmada_api::provider`]).

use bytes::Bytes;
use http::header::{ACCEPT, CONTENT_TYPE};
use http::{Method, Request, StatusCode};
use http_body_util::{BodyExt, Limited};
use karmada_api::provider::{HeldIngress, IngressReport, ProviderIngress};
use karmada_runtime::client::SentToken;
use kube::Client;
use kube::client::Body;
use kube::core::Status;
use objects::Key;
use objects::qualified_name::is_subdomain;
use serde::Deserialize;
use serde::de::DeserializeOwned;
use serde_json::{Map, Value};
use traffic::ingress::http_route::own_name;

/// The size of the largest answer: a list of a hundred thousand ingresses, or one ingress with as many addresses.
pub(super) const LARGEST_ANSWER: usize = 16 << 20;
/// The part of its words that is shown, in characters.
const SHOWN: usize = 200;
/// The fields in which programs say why they refuse something.
const WORDS: [&str; 3] = ["message", "problem", "error"];

/// The program at its URL.
pub(super) struct Endpoint {
    client: Client,
}

impl Endpoint {
    /// Creates an endpoint at the server of `client`.
    pub(super) fn new(client: Client) -> Self {
        Self { client }
    }

    /// Replaces an ingress, or creates it.
    pub(super) async fn put(&self, document: &ProviderIngress) -> kube::Result<IngressReport> {
        let body = serde_json::to_vec(document).map_err(kube::Error::SerdeError)?;
        let answer = self.send(Method::PUT, &path(&document.key()), body).await?;
        if answer.body.trim_ascii().is_empty() {
            return Ok(IngressReport::default());
        }
        let report = answer.read()?;
        Ok(answer.told(report))
    }

    /// Deletes an ingress.
    pub(super) async fn delete(&self, key: &Key) -> kube::Result<()> {
        self.send(Method::DELETE, &path(key), Vec::new()).await?;
        Ok(())
    }

    /// Returns an ingress.
    pub(super) async fn get(&self, key: &Key) -> kube::Result<ProviderIngress> {
        self.send(Method::GET, &path(key), Vec::new()).await?.read()
    }

    /// Returns the holdings of the program, of other controllers too. An entry that names no ingress is passed over, whoever it is
    /// of.
    pub(super) async fn list(&self) -> kube::Result<Vec<HeldIngress>> {
        let answer = self.send(Method::GET, "/", Vec::new()).await?;
        let Entries { ingresses } = answer.read()?;
        let ingresses = ingresses.iter().filter_map(entry).map(|held| HeldIngress {
            report: answer.told(held.report),
            ..held
        });
        Ok(ingresses.collect())
    }

    async fn send(&self, method: Method, path: &str, body: Vec<u8>) -> kube::Result<Answer> {
        let request = Request::builder()
            .method(method)
            .uri(path)
            .header(CONTENT_TYPE, "application/json")
            .header(ACCEPT, "application/json")
            .body(Body::from(body))
            .map_err(kube::Error::HttpError)?;
        let (head, body) = self.client.send(request).await?.into_parts();
        let body = Limited::new(body, LARGEST_ANSWER).collect().await;
        let answer = Answer {
            body: body.map_err(kube::Error::Service)?.to_bytes(),
            token: head.extensions.get::<SentToken>().cloned(),
        };
        if head.status.is_success() {
            return Ok(answer);
        }
        let reason = head.status.canonical_reason().unwrap_or_default();
        let status = Status::failure(&answer.words(head.status), reason);
        Err(kube::Error::Api(
            status.with_code(head.status.as_u16()).boxed(),
        ))
    }
}

/// A list, as [`HeldIngresses`](karmada_api::provider::HeldIngresses), of which one entry spoils no other.
#[derive(Deserialize)]
struct Entries {
    ingresses: Vec<Value>,
}

/// Reads an entry of a list. Of one that is nonsense otherwise the names count.
fn entry(entry: &Value) -> Option<HeldIngress> {
    let text = |field: &str| entry.get(field)?.as_str().map(ToOwned::to_owned);
    let names = HeldIngress {
        controller: text("controller")?,
        namespace: text("namespace").filter(|name| is_subdomain(name))?,
        name: text("name")?,
        ..HeldIngress::default()
    };
    let key = Key::new(&names.namespace, &names.name);
    if !is_subdomain(own_name(&key)) {
        return None;
    }
    Some(HeldIngress::deserialize(entry).unwrap_or(names))
}

fn path(key: &Key) -> String {
    format!("/{}/{}", key.namespace, key.name)
}

/// The body of an answer, and the token that it may quote.
struct Answer {
    body: Bytes,
    token: Option<SentToken>,
}

impl Answer {
    fn read<T: DeserializeOwned>(&self) -> kube::Result<T> {
        // A list is a document without names to serde, and an empty one a document that leaves everything out.
        serde_json::from_slice::<Map<String, Value>>(&self.body)
            .and_then(|_| serde_json::from_slice(&self.body))
            .map_err(kube::Error::SerdeError)
    }

    /// Returns the program's reason for a failure.
    fn words(&self, status: StatusCode) -> String {
        if status.is_redirection() {
            return "redirects are not followed; name the URL to which it leads".to_owned();
        }
        let text = String::from_utf8_lossy(&self.body);
        let fields: Option<Value> = serde_json::from_str(&text).ok();
        let mut fields = WORDS
            .iter()
            .filter_map(|name| fields.as_ref()?.get(name)?.as_str());
        self.shown(fields.next().unwrap_or(&text))
    }

    /// Returns a report with words that can be shown.
    fn told(&self, report: IngressReport) -> IngressReport {
        let problem = report.problem.map(|problem| self.shown(&problem));
        IngressReport {
            problem: problem.filter(|problem| !problem.is_empty()),
            ..report
        }
    }

    /// Returns the beginning of a text of the program on one line, without our token.
    fn shown(&self, text: &str) -> String {
        let hidden = self.token.as_ref().map(|token| token.hidden_in(text));
        let words: Vec<&str> = hidden
            .as_deref()
            .unwrap_or(text)
            .split_whitespace()
            .collect();
        let printable = words.join(" ");
        let printable = printable.chars().filter(|c| !c.is_control());
        printable.take(SHOWN).collect()
    }
}
