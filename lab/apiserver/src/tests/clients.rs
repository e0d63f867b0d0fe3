//! `kube` clients, in process and over a socket.

use futures::{StreamExt, TryStreamExt};
use k8s_openapi::api::core::v1::ConfigMap;
use kube::api::{Api, ListParams, ObjectMeta, Patch, PatchParams, PostParams};
use kube::runtime::{WatchStreamExt, watcher};
use kube::{Client, Config};
use serde_json::json;
use tokio::net::TcpListener;
use tokio::sync::oneshot;

use super::server;
use crate::Fault;

fn named(name: &str) -> ConfigMap {
    ConfigMap {
        metadata: ObjectMeta {
            name: Some(name.to_owned()),
            ..ObjectMeta::default()
        },
        ..ConfigMap::default()
    }
}

async fn works(client: Client) {
    let api: Api<ConfigMap> = Api::default_namespaced(client);
    let made = api
        .create(&PostParams::default(), &named("a"))
        .await
        .unwrap();
    let mut changes = api
        .watch(&kube::api::WatchParams::default(), "0")
        .await
        .unwrap()
        .boxed();
    let patch = Patch::Apply(json!({
        "apiVersion": "v1", "kind": "ConfigMap", "data": {"k": "v"},
    }));
    let applied = api
        .patch("a", &PatchParams::apply("tests"), &patch)
        .await
        .unwrap();
    assert_eq!(applied.data.unwrap()["k"], "v");
    assert_eq!(applied.metadata.uid, made.metadata.uid);
    let list = api.list(&ListParams::default()).await.unwrap();
    assert_eq!(list.items.len(), 1);
    api.delete("a", &kube::api::DeleteParams::default())
        .await
        .unwrap();
    assert!(api.get_opt("a").await.unwrap().is_none());
    assert!(changes.try_next().await.unwrap().is_some());
}

#[tokio::test(start_paused = true)]
async fn a_client_in_process_works() {
    works(Client::new(server().service(), "default")).await;
}

/// A watcher survives the faults of its watch.
#[tokio::test(start_paused = true)]
async fn watcher_survives_watch_faults() {
    let server = server();
    let api: Api<ConfigMap> = Api::default_namespaced(Client::new(server.service(), "default"));
    for streams in [false, true] {
        let config = if streams {
            watcher::Config::default().streaming_lists()
        } else {
            watcher::Config::default()
        };
        let mut objects = watcher(api.clone(), config)
            .default_backoff()
            .applied_objects()
            .boxed();
        for fault in [
            Fault::CutWatch { inside_line: true },
            Fault::CutWatch { inside_line: false },
            Fault::ExpireWatch,
        ] {
            server.faults().inject(fault.clone().times(1));
            let name = format!("{streams}-{fault:?}").to_lowercase();
            let name: String = name.chars().filter(char::is_ascii_alphanumeric).collect();
            api.create(&PostParams::default(), &named(&name))
                .await
                .unwrap();
            loop {
                if let Some(Ok(object)) = objects.next().await
                    && object.metadata.name.as_deref() == Some(&name)
                {
                    break;
                }
            }
        }
    }
}

/// A client over a socket works until the shutdown.
#[tokio::test]
async fn socket_serves_until_shutdown() {
    let server = server();
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    let (stop, stopped) = oneshot::channel::<()>();
    let serving = tokio::spawn({
        let server = server.clone();
        async move { server.serve(listener, async { drop(stopped.await) }).await }
    });
    let config = Config::new(format!("http://{address}").parse().unwrap());
    let client = Client::try_from(config).unwrap();
    works(client.clone()).await;
    let outage = server.faults().inject(Fault::Disconnect);
    client.apiserver_version().await.unwrap_err();
    server.faults().remove(outage);
    client.apiserver_version().await.unwrap();
    stop.send(()).unwrap();
    serving.await.unwrap().unwrap();
    client.apiserver_version().await.unwrap_err();
}
