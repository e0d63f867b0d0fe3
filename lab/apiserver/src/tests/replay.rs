//! The same requests get the same answers, byte for byte.

use std::time::Duration;

use http::Method;
use serde_json::json;

use super::{CONFIG_MAPS, REMEDIES, config_map, remedy, server};
use crate::{ApiServer, Fault};

/// Everything the server says in one run.
async fn run(server: ApiServer) -> Vec<u8> {
    server.faults().inject(Fault::Conflict.every(4));
    let mut said = Vec::new();
    let mut watch = server.watch(REMEDIES).await;
    for n in 0..20 {
        let mut generated = config_map("");
        generated["metadata"] = json!({"generateName": "c-"});
        said.extend(server.post(CONFIG_MAPS, &generated).await.body);
        said.extend(
            server
                .post(REMEDIES, &remedy(&format!("r{}", n % 7)))
                .await
                .body,
        );
        let patch = json!({"spec": {"size": n}});
        said.extend(
            server
                .merge(&format!("{REMEDIES}/r{}", n % 5), &patch)
                .await
                .body,
        );
        said.extend(server.delete(&format!("{REMEDIES}/r{}", n % 6)).await.body);
        tokio::time::advance(Duration::from_secs(1)).await;
        said.extend(watch.seen().await.into_bytes());
    }
    said.extend(server.request(Method::GET, CONFIG_MAPS, "", "").await.body);
    said.extend(server.get("/apis").await.body);
    said.extend(server.get("/openapi/v3").await.body);
    said
}

#[tokio::test(start_paused = true)]
async fn the_same_requests_twice_give_equal_answers() {
    let first = run(server()).await;
    assert!(first.len() > 10_000);
    assert_eq!(first, run(server()).await);
    assert_eq!(first, run(server().fork()).await);
}

#[tokio::test(start_paused = true)]
async fn a_fork_goes_its_own_way() {
    let server = server();
    server.post(REMEDIES, &remedy("both")).await.ok();
    let fork = server.fork();
    let mut watch = server.watch(REMEDIES).await;
    fork.post(REMEDIES, &remedy("one")).await.ok();
    fork.get(&format!("{REMEDIES}/both")).await.ok();
    server
        .get(&format!("{REMEDIES}/one"))
        .await
        .fails(404, "NotFound");
    assert_eq!(watch.seen().await, "ADDED both");
    assert!(watch.is_quiet().await);
}
