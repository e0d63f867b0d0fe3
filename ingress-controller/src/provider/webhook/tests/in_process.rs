//! The contract on a program in this process, which keeps to the protocol and does nothing else.

use std::sync::Arc;

use axum::extract::{Path, State};
use axum::routing::get;
use axum::{Json, Router};
use http::StatusCode;
use karmada_api::provider::{HeldIngress, HeldIngresses};

use super::stage::{self, Program, Stage};
use super::*;
use crate::provider::contract::provider_contract;

type Store = Arc<Mutex<BTreeMap<Key, ProviderIngress>>>;

struct InProcess(Serving);

impl Program for InProcess {
    async fn start() -> Self {
        let one = get(read).put(replace).delete(remove);
        let routes = Router::new()
            .route("/", get(list))
            .route("/{namespace}/{name}", one)
            .with_state(Store::default());
        Self(Serving::start(routes).await)
    }

    fn source(&self) -> Source {
        self.0.source()
    }
}

async fn list(State(store): State<Store>) -> Json<HeldIngresses> {
    let store = store.lock();
    let ingresses = store.values().map(|held| HeldIngress {
        controller: held.controller.clone(),
        namespace: held.namespace.clone(),
        name: held.name.clone(),
        revision: held.revision.clone(),
        report: IngressReport::default(),
    });
    let ingresses = ingresses.collect();
    Json(HeldIngresses { ingresses })
}

async fn read(
    State(store): State<Store>,
    Path((namespace, name)): Path<(String, String)>,
) -> Result<Json<ProviderIngress>, StatusCode> {
    let store = store.lock();
    let held = store.get(&Key::new(namespace, name));
    held.cloned().map(Json).ok_or(StatusCode::NOT_FOUND)
}

async fn replace(
    State(store): State<Store>,
    body: axum::body::Bytes,
) -> Result<Json<IngressReport>, StatusCode> {
    let ingress: ProviderIngress = serde_json::from_slice(&body).unwrap();
    let mut store = store.lock();
    let held = store.get(&ingress.key());
    if held.is_some_and(|held| held.controller != ingress.controller) {
        return Err(StatusCode::CONFLICT);
    }
    store.insert(ingress.key(), ingress);
    Ok(Json(IngressReport::default()))
}

async fn remove(
    State(store): State<Store>,
    Path((namespace, name)): Path<(String, String)>,
) -> StatusCode {
    store.lock().remove(&Key::new(namespace, name));
    StatusCode::NO_CONTENT
}

provider_contract!(Stage<InProcess>);

#[tokio::test]
async fn foreign_ingress_is_a_clash() {
    stage::foreign_ingress_is_a_clash::<InProcess>().await;
}

/// The program has lost its ingresses: it is listed, and they are sent again.
#[tokio::test]
async fn lost_ingress_is_sent_again() {
    let program = InProcess::start().await;
    let provider = provider(&program.source()).await;
    assert_eq!(provider.list().await.unwrap(), []);
    let desired = contract::desired("i", &["s"], &["m1"]);
    provider.ensure(&desired).await.unwrap();
    assert_eq!(provider.list().await.unwrap(), []);
    stage::clear(&program.source()).await;
    let listed = provider.list().await.unwrap();
    assert_eq!(listed, std::slice::from_ref(&desired.key));
    assert!(provider.keys().is_empty());
    provider.ensure(&desired).await.unwrap();
    assert_eq!(provider.keys(), [desired.key]);
}
