//! A program behind a proxy that counts the changes of a provider, and fails where a test says so.

use std::sync::Arc;

use axum::body::to_bytes;
use axum::extract::{Request, State};
use axum::response::{IntoResponse, Response};
use axum::{Json, Router};
use http::{Method, StatusCode};
use kube::client::Body;
use serde_json::json;

use super::*;

/// A program that keeps ingresses.
pub(super) trait Program: Sized {
    /// Starts it with nothing to serve.
    async fn start() -> Self;

    /// Returns where it is.
    fn source(&self) -> Source;
}

pub(super) struct Stage<P> {
    /// Runs as long as this.
    _program: P,
    proxy: Arc<Proxy>,
    serving: Serving,
}

struct Proxy {
    /// Leads to the program.
    client: Client,
    changes: Mutex<usize>,
    fails_once: Mutex<bool>,
    /// The ingress with routes that must not change.
    refused: Mutex<Option<Key>>,
}

impl Proxy {
    fn endpoint(&self) -> Endpoint {
        Endpoint::new(self.client.clone())
    }

    async fn forward(&self, request: Request) -> Response {
        let (head, body) = request.into_parts();
        let body = to_bytes(body, usize::MAX).await.unwrap();
        if std::mem::take(&mut *self.fails_once.lock()) {
            return StatusCode::SERVICE_UNAVAILABLE.into_response();
        }
        if head.method != Method::GET {
            *self.changes.lock() += 1;
        }
        if head.method == Method::PUT && self.refuses(&body).await {
            let words = Json(json!({ "message": "Refused it is" }));
            return (StatusCode::UNPROCESSABLE_ENTITY, words).into_response();
        }
        let path = head.uri.path();
        let request = http::Request::builder()
            .method(head.method)
            .uri(path)
            .body(Body::from(body.to_vec()));
        let response = self.client.send(request.unwrap()).await.unwrap();
        response.map(axum::body::Body::new).into_response()
    }

    async fn refuses(&self, body: &[u8]) -> bool {
        let Some(key) = self.refused.lock().clone() else {
            return false;
        };
        let wanted: ProviderIngress = serde_json::from_slice(body).unwrap();
        wanted.key() == key && wanted.routes != self.endpoint().get(&key).await.unwrap().routes
    }
}

impl<P: Program> contract::Stage for Stage<P> {
    type Provider = Webhook;

    async fn new() -> Self {
        let program = P::start().await;
        let proxy = Arc::new(Proxy {
            client: client(&program.source()).await,
            changes: Mutex::default(),
            fails_once: Mutex::default(),
            refused: Mutex::default(),
        });
        let forward =
            async |State(proxy): State<Arc<Proxy>>, request: Request| proxy.forward(request).await;
        let routes = Router::new()
            .fallback(forward)
            .with_state(Arc::clone(&proxy));
        let serving = Serving::start(routes).await;
        Self {
            _program: program,
            proxy,
            serving,
        }
    }

    async fn provider(&self) -> Webhook {
        let provider = provider(&self.serving.source()).await;
        provider.list().await.unwrap();
        provider
    }

    async fn catch_up(&self, provider: &Webhook) {
        provider.list().await.unwrap();
    }

    async fn served(&self, host: &str) -> BTreeSet<String> {
        let endpoint = self.proxy.endpoint();
        let mut served = BTreeSet::new();
        let mut listed = endpoint.list().await.unwrap();
        listed.retain(|held| held.controller == CONTROLLER);
        for held in listed {
            let document = endpoint
                .get(&Key::new(held.namespace, held.name))
                .await
                .unwrap();
            let of_host = document.routes.iter().filter(|route| route.host == host);
            let named: Vec<_> = of_host.map(|route| &route.backend).collect();
            let backends = document.backends.iter();
            let backends = backends.filter(|backend| named.contains(&&backend.reference));
            let ready = backends
                .flat_map(|backend| &backend.endpoints)
                .filter(|one| one.ready);
            served.extend(ready.map(|one| one.address.clone()));
        }
        served
    }

    fn changes(&self) -> usize {
        std::mem::take(&mut *self.proxy.changes.lock())
    }

    fn fail_once(&self) {
        *self.proxy.fails_once.lock() = true;
    }

    fn refuse_routes(&self, ingress: &Key) {
        *self.proxy.refused.lock() = Some(ingress.clone());
    }

    async fn add_foreign(&self) {
        self.proxy.endpoint().put(&foreign()).await.unwrap();
    }

    async fn is_foreign_intact(&self) -> bool {
        let held = self.proxy.endpoint().get(&foreign().key()).await;
        held.unwrap() == foreign()
    }
}

/// Returns the ingresses of another controller at the same program.
fn foreign() -> ProviderIngress {
    ProviderIngress {
        api_version: karmada_api::provider::API_VERSION.to_owned(),
        controller: "example.com/theirs".to_owned(),
        namespace: "ns".to_owned(),
        name: "theirs".to_owned(),
        revision: "1".to_owned(),
        ..ProviderIngress::default()
    }
}

/// An ingress of another controller is no ingress of ours, and stays as it is.
pub(super) async fn foreign_ingress_is_a_clash<P: Program>() {
    use contract::Stage as _;

    let stage = Stage::<P>::new().await;
    stage.add_foreign().await;
    let provider = stage.provider().await;
    assert!(provider.keys().is_empty());
    let desired = contract::desired("theirs", &["s"], &["m1"]);
    let ensured = provider.ensure(&desired).await.unwrap();
    let reasons: Vec<_> = ensured.obstacles.iter().map(|one| one.reason).collect();
    assert_eq!(reasons, [crate::reason::Reason::GatewayClash]);
    assert!(stage.is_foreign_intact().await);
}

/// Deletes the ingresses of the tests' controllers from a program.
pub(super) async fn clear(source: &Source) {
    let endpoint = Endpoint::new(client(source).await);
    for held in endpoint.list().await.unwrap() {
        if [CONTROLLER, &foreign().controller].contains(&&*held.controller) {
            let key = Key::new(held.namespace, held.name);
            endpoint.delete(&key).await.unwrap();
        }
    }
}
