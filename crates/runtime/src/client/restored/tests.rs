use std::convert::Infallible;

use embedded_apiserver::ApiServer;
use futures::StreamExt;
use k8s_openapi::api::core::v1::ConfigMap;
use kube::api::PostParams;
use kube::runtime::watcher::Event;
use kube::{Api, Client, Config};
use serde_json::from_value;

use super::*;
use crate::watch::{Decoded, events};

/// An API whose server is exchanged when it is restored; its watches are cut then, as its connections are.
#[derive(Clone)]
struct Restorable {
    server: Arc<Mutex<ApiServer>>,
    cut: tokio::sync::watch::Sender<()>,
}

impl Service<Request<Body>> for Restorable {
    type Response = Response<axum::body::Body>;
    type Error = Infallible;
    type Future = Pin<Box<dyn Future<Output = Result<Self::Response, Infallible>> + Send>>;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<Result<(), Infallible>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, request: Request<Body>) -> Self::Future {
        let server = self.server.lock().service();
        let mut cut = self.cut.subscribe();
        Box::pin(async move {
            let response = server.oneshot(request).await.unwrap();
            Ok(response.map(|body| {
                let cut = async move { drop(cut.changed().await) };
                let frames = axum::body::Body::new(body).into_data_stream();
                axum::body::Body::from_stream(frames.take_until(Box::pin(cut)))
            }))
        })
    }
}

fn named(name: &str) -> ConfigMap {
    from_value(json!({ "metadata": { "name": name, "namespace": "default" } })).unwrap()
}

async fn create(server: &ApiServer, name: &str) {
    let client = Client::new(server.service(), "default");
    let maps: Api<ConfigMap> = Api::default_namespaced(client);
    maps.create(&PostParams::default(), &named(name))
        .await
        .unwrap();
}

/// Objects from after the copy of the data are gone, changes from after the restore are seen.
#[tokio::test(start_paused = true)]
async fn restored_api_is_listed_again() {
    let server = ApiServer::new();
    create(&server, "old").await;
    let copy = server.fork();
    for number in 0..30 {
        create(&server, &format!("lost-{number}")).await;
    }
    let api = Restorable {
        server: Arc::new(Mutex::new(server)),
        cut: tokio::sync::watch::Sender::new(()),
    };
    let config = Config::new(http::Uri::from_static("http://api"));
    let client = crate::client::with_service(api.clone(), config, "test").unwrap();
    let maps: Api<Decoded<ConfigMap>> = Api::namespaced(client, "default");
    let mut watched = std::pin::pin!(events(maps, kube::runtime::watcher::Config::default()));
    let mut until = async |wanted: &str| {
        let mut seen = Vec::new();
        let until = async {
            while let Some(event) = watched.next().await {
                match event {
                    Event::InitApply(map) | Event::Apply(map) => {
                        seen.extend(map.metadata().name.clone());
                    }
                    Event::InitDone => seen.push("done".to_owned()),
                    Event::Init | Event::Delete(_) => {}
                }
                if seen.last().is_some_and(|last| last == wanted) {
                    break;
                }
            }
        };
        let result = tokio::time::timeout(Duration::from_mins(2), until).await;
        assert!(result.is_ok(), "{wanted}: {seen:?}");
        seen
    };
    assert_eq!(until("done").await.len(), 32);
    tokio::time::sleep(LISTED_NOW * 2).await;

    let before = REWINDS.get();
    let restored = copy.fork();
    *api.server.lock() = restored.clone();
    api.cut.send_replace(());
    assert_eq!(until("done").await, ["old", "done"]);
    assert!(REWINDS.get() > before);
    let (seen, ()) = futures::join!(until("new"), create(&restored, "new"));
    assert_eq!(seen, ["new"]);
}

/// Only a watch from a version is checked, by a list that needs no other rights, and not right after a list.
#[tokio::test(start_paused = true)]
async fn reopened_watch_is_checked() {
    let memory = Memory::default();
    let note = |uri: &str| {
        let request = Request::get(uri).body(()).unwrap();
        memory
            .note(&request)
            .map(|reopened| (reopened.version, reopened.list))
    };
    let watch =
        "/api/v1/pods?watch=true&labelSelector=a&fieldSelector=metadata.name%3Dx&resourceVersion=7";
    let list = "/api/v1/pods?limit=1&fieldSelector=metadata.name%3Dx".to_owned();
    assert_eq!(note(watch), Some((7, list)));
    for other in [
        "/api/v1/pods?watch=true&resourceVersion=0",
        "/api/v1/pods?watch=true",
        "/api/v1/pods?watch=true&resourceVersion=x",
        "/api/v1/pods/a",
        "/api/v1/pods?limit=100",
    ] {
        assert_eq!(note(other), None, "{other}");
    }
    assert_eq!(note(watch), None);
    tokio::time::sleep(LISTED_NOW * 2).await;
    assert!(note(watch).is_some());
}
