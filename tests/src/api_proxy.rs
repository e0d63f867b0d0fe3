//! A proxy between programs and APIs, which holds back the events of their watches, and knows each write that they have stored.

use std::{
    collections::{BTreeMap, HashSet},
    net::{Ipv4Addr, SocketAddr},
    path::Path,
    time::Duration,
};

use anyhow::{Context, Result};
use axum::{
    Router,
    body::{Body, to_bytes},
    extract::Request,
    response::Response,
};
use futures::StreamExt;
use http::{Method, StatusCode, header, request::Parts};
use http_body_util::BodyExt;
use kube::Client;
use serde_json::{Value, from_slice};
use tokio::{net::TcpListener, sync::watch, time::timeout};

use crate::{kubeconfig, writes::WriteKind};

/// A limit longer than any program needs for its first write.
const LIMIT: Duration = Duration::from_mins(2);

/// Headers that are those of one connection.
const OF_CONNECTION: [header::HeaderName; 5] = [
    header::HOST,
    header::ACCEPT_ENCODING,
    header::CONNECTION,
    header::CONTENT_LENGTH,
    header::TRANSFER_ENCODING,
];

/// The answers that are held back. Lists and reads never are.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Held {
    /// Nothing.
    #[default]
    Nothing,
    /// The events of watches.
    Watches,
    /// That, and the answers to writes that are stored.
    WatchesAndWrites,
}

/// A write that changed an object.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StoredWrite {
    /// Its kind.
    pub kind: WriteKind,
    /// The API's name and the path of the object.
    pub object: String,
    /// The body without its guards: its version, its uid, and the tests that a JSON patch has in their place.
    pub content: Value,
}

/// A proxy in front of one API or several; clones share it.
#[derive(Clone, Debug, Default)]
pub struct ApiProxy {
    held: watch::Sender<Held>,
    stored: watch::Sender<Stored>,
}

#[derive(Debug, Default)]
struct Stored {
    writes: Vec<StoredWrite>,
    /// The version that each object got last: a write that changes nothing leaves it.
    versions: BTreeMap<String, String>,
}

/// A write on its way, to an object that is yet without a name if it is created.
#[derive(Debug)]
struct Sent {
    kind: WriteKind,
    collection: String,
    name: Option<String>,
    content: Value,
}

impl ApiProxy {
    /// Holds back this from now on, and lets go the rest.
    pub fn hold(&self, held: Held) {
        self.held.send_replace(held);
    }

    /// Returns the writes so far that changed an object, but for leases and Events.
    pub fn stored(&self) -> Vec<StoredWrite> {
        self.stored.borrow().writes.clone()
    }

    /// Waits until something is stored.
    pub async fn until_stored(&self) -> Result<()> {
        let mut stored = self.stored.subscribe();
        let waiting = stored.wait_for(|stored| !stored.writes.is_empty());
        timeout(LIMIT, waiting)
            .await
            .with_context(|| format!("nothing is written within {LIMIT:?}"))??;
        Ok(())
    }

    /// Waits until the same is stored in the same object once more, and returns that write.
    pub async fn until_repeated(&self) -> Result<StoredWrite> {
        let mut stored = self.stored.subscribe();
        let stored = stored.wait_for(|stored| repeated(&stored.writes).is_some());
        let stored = stored.await?;
        let write = repeated(&stored.writes).context("nothing is repeated")?;
        Ok(write.clone())
    }

    /// Starts to serve the API of this name with the rights of whom a kubeconfig is for, and returns the address.
    pub(crate) fn serve(&self, api: &str, kubeconfig: &Path) -> Result<SocketAddr> {
        let listener = std::net::TcpListener::bind((Ipv4Addr::LOCALHOST, 0))?;
        listener.set_nonblocking(true)?;
        let address = listener.local_addr()?;
        let listener = TcpListener::from_std(listener)?;
        let (proxy, api, kubeconfig) = (self.clone(), api.to_owned(), kubeconfig.to_owned());
        tokio::spawn(async move {
            // Without one, whoever connects is disconnected.
            let Ok(client) = kubeconfig::client(&kubeconfig).await else {
                return;
            };
            let router = Router::new().fallback(move |request: Request| {
                let (proxy, api, client) = (proxy.clone(), api.clone(), client.clone());
                async move { proxy.forward(api, client, request).await }
            });
            drop(axum::serve(listener, router).await);
        });
        Ok(address)
    }

    /// Forwards a request. A client that dies meanwhile does not keep it from being noted.
    async fn forward(
        self,
        api: String,
        client: Client,
        request: Request,
    ) -> Result<Response, (StatusCode, String)> {
        let passing = tokio::spawn(async move { self.pass(&api, &client, request).await });
        match passing.await {
            Ok(Ok(response)) => Ok(response),
            Ok(Err(error)) => Err((StatusCode::BAD_GATEWAY, format!("{error:#}"))),
            Err(error) => Err((StatusCode::BAD_GATEWAY, error.to_string())),
        }
    }

    async fn pass(&self, api: &str, client: &Client, request: Request) -> Result<Response> {
        let (mut parts, body) = request.into_parts();
        let body = to_bytes(body, usize::MAX).await?;
        let sent = Sent::read(api, &parts, &body);
        let watches = (parts.uri.query()).is_some_and(|query| query.contains("watch=true"));
        for own in OF_CONNECTION {
            parts.headers.remove(own);
        }
        let request = http::Request::from_parts(parts, kube::client::Body::from(body));
        let (mut parts, answer) = client.send(request).await?.into_parts();
        let body = if watches && parts.status.is_success() {
            self.late(answer)
        } else {
            let answer = answer.collect_bytes().await?;
            if let Some(sent) = sent.filter(|_| parts.status.is_success())
                && self.note(sent, &answer)
            {
                let mut held = self.held.subscribe();
                drop(held.wait_for(|held| *held != Held::WatchesAndWrites).await);
            }
            Body::from(answer)
        };
        for own in OF_CONNECTION {
            parts.headers.remove(own);
        }
        let mut response = Response::new(body);
        *response.status_mut() = parts.status;
        *response.headers_mut() = parts.headers;
        Ok(response)
    }

    /// Returns the body of a watch, of which nothing is passed on while watches are held back.
    fn late(&self, shown: kube::client::Body) -> Body {
        let held = self.held.subscribe();
        Body::from_stream(shown.into_data_stream().then(move |shown| {
            let mut held = held.clone();
            async move {
                drop(held.wait_for(|held| *held == Held::Nothing).await);
                shown
            }
        }))
    }

    /// Notes the answer to a write, and returns `true` if that changed an object.
    fn note(&self, sent: Sent, answer: &[u8]) -> bool {
        let answer: Value = from_slice(answer).unwrap_or_default();
        let text = |field: &str| answer["metadata"][field].as_str().map(ToOwned::to_owned);
        // Without a name or a version it is a review, or the answer to a deletion.
        let Some(name) = sent.name.or_else(|| text("name")) else {
            return false;
        };
        let version = text("resourceVersion").filter(|version| !version.is_empty());
        if version.is_none() && sent.kind.verb != "DELETE" {
            return false;
        }
        let object = format!("{}/{name}", sent.collection);
        self.stored.send_if_modified(|stored| {
            if let Some(version) = version {
                let last = (stored.versions).insert(object.clone(), version.clone());
                if last == Some(version) {
                    return false;
                }
            }
            stored.writes.push(StoredWrite {
                kind: sent.kind,
                object,
                content: sent.content,
            });
            true
        })
    }
}

impl Sent {
    /// Reads a request; `None` if it writes no object, or a lease or an Event.
    fn read(api: &str, parts: &Parts, body: &[u8]) -> Option<Self> {
        let is_dry_run = (parts.uri.query()).is_some_and(|query| query.contains("dryRun="));
        let segments: Vec<&str> = parts.uri.path().trim_matches('/').split('/').collect();
        let (group, rest) = match segments.as_slice() {
            ["api", _, rest @ ..] => ("", rest),
            ["apis", group, _, rest @ ..] => (*group, rest),
            _ => return None,
        };
        let rest = match rest {
            ["namespaces", _, of @ ..] if !matches!(of, [] | ["status" | "finalize"]) => of,
            _ => rest,
        };
        let (resource, named) = rest.split_first()?;
        if is_dry_run || ["events", "leases"].contains(resource) {
            return None;
        }
        let collection = segments.len() - named.len();
        let collection: Vec<&str> = segments.iter().copied().take(collection).collect();
        let segment = |at: usize| named.get(at).map(|segment| (*segment).to_owned());
        Some(Self {
            kind: WriteKind {
                verb: verb(parts)?.to_owned(),
                group: group.to_owned(),
                resource: (*resource).to_owned(),
                subresource: segment(1).unwrap_or_default(),
            },
            collection: format!("{api}: /{}", collection.join("/")),
            name: segment(0),
            content: content(body),
        })
    }
}

/// Returns the verb of a write, as the API server's metric names it.
fn verb(parts: &Parts) -> Option<&'static str> {
    let form = parts.headers.get(header::CONTENT_TYPE);
    let form = form.and_then(|form| form.to_str().ok()).unwrap_or_default();
    match parts.method {
        Method::POST => Some("POST"),
        Method::PUT => Some("PUT"),
        Method::PATCH if form.starts_with("application/apply-patch") => Some("APPLY"),
        Method::PATCH => Some("PATCH"),
        Method::DELETE => Some("DELETE"),
        _ => None,
    }
}

/// Returns the body of a write without its guards.
fn content(body: &[u8]) -> Value {
    let mut content: Value = from_slice(body).unwrap_or_default();
    if let Some(operations) = content.as_array_mut() {
        operations.retain(|one| one["op"] != "test" && one["path"] != "/metadata/resourceVersion");
    }
    let metadata = content.get_mut("metadata").and_then(Value::as_object_mut);
    if let Some(metadata) = metadata {
        metadata.remove("resourceVersion");
        metadata.remove("uid");
    }
    content
}

/// Returns the first write that stores the same as an earlier one in the same object.
fn repeated(writes: &[StoredWrite]) -> Option<&StoredWrite> {
    let mut seen = HashSet::new();
    let mut writes = writes.iter();
    writes.find(|write| {
        let kind = write.kind.to_string();
        !seen.insert((kind, &write.object, write.content.to_string()))
    })
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn sent(method: Method, path: &str, body: &Value) -> Option<Sent> {
        let request = http::Request::builder().method(method).uri(path);
        let (parts, ()) = request.body(()).unwrap().into_parts();
        Sent::read("hub", &parts, body.to_string().as_bytes())
    }

    fn note(proxy: &ApiProxy, sent: Option<Sent>, version: &str) -> bool {
        let metadata = json!({ "name": "a", "resourceVersion": version });
        let answer = json!({ "metadata": metadata }).to_string();
        proxy.note(sent.unwrap(), answer.as_bytes())
    }

    /// A write is known by its kind and object; a request that writes no object of interest is none.
    #[test]
    fn writes_are_told_apart() {
        let maps = "/api/v1/namespaces/shop/configmaps";
        for (method, path, kind, collection) in [
            (Method::POST, maps, "POST configmaps", maps),
            (
                Method::PATCH,
                "/apis/cluster.karmada.io/v1alpha1/clusters/member1/status?fieldManager=a",
                "PATCH clusters.cluster.karmada.io/status",
                "/apis/cluster.karmada.io/v1alpha1/clusters",
            ),
            (
                Method::PUT,
                "/api/v1/namespaces/shop/finalize",
                "PUT namespaces/finalize",
                "/api/v1/namespaces",
            ),
        ] {
            let sent = sent(method, path, &json!({})).unwrap();
            assert_eq!(sent.kind.to_string(), kind);
            assert_eq!(sent.collection, format!("hub: {collection}"));
        }
        for (method, path) in [
            (Method::GET, maps),
            (Method::POST, "/api/v1/namespaces/shop/events"),
            (Method::POST, "/api/v1/namespaces?dryRun=All"),
            (Method::POST, "/version"),
        ] {
            assert!(sent(method, path, &json!({})).is_none(), "{path}");
        }
    }

    /// The same content of another version is written twice; a write that changes nothing is none.
    #[test]
    fn repetition_needs_change() {
        let proxy = ApiProxy::default();
        let patch = |version: &str| {
            let body = json!({ "metadata": { "resourceVersion": version }, "data": { "a": "b" } });
            sent(Method::PATCH, "/api/v1/namespaces/shop/configmaps/a", &body)
        };
        assert!(note(&proxy, patch("1"), "2"));
        assert!(!note(&proxy, patch("2"), "2"));
        assert_eq!(repeated(&proxy.stored()), None);
        assert!(note(&proxy, patch("3"), "4"));
        assert_eq!(proxy.stored().len(), 2);
        assert!(repeated(&proxy.stored()).is_some());
        let json = |version: &str| {
            content(
                json!([
                    { "op": "replace", "path": "/metadata/resourceVersion", "value": version },
                    { "op": "add", "path": "/data/a", "value": "b" },
                ])
                .to_string()
                .as_bytes(),
            )
        };
        assert_eq!(json("1"), json("2"));
    }
}
