//! The same requests get the same responses, byte for byte.

use std::time::Duration;

use http::Method;
use serde_json::json;

use super::{CONFIG_MAPS, REMEDIES, config_map, remedy, server};
use crate::{ApiServer, Fault};

/// Returns the bodies of all responses and the watch lines of one run.
async fn run(server: ApiServer) -> Vec<u8> {
    server.faults().inject(Fault::Conflict.every(4));
    let mut bodies = Vec::new();
    let mut watch = server.watch(REMEDIES).await;
    for n in 0..20 {
        let mut generated = config_map("");
        generated["metadata"] = json!({"generateName": "c-"});
        bodies.extend(server.post(CONFIG_MAPS, &generated).await.body);
        bodies.extend(
            server
                .post(REMEDIES, &remedy(&format!("r{}", n % 7)))
                .await
                .body,
        );
        let patch = json!({"spec": {"size": n}});
        bodies.extend(
            server
                .merge(&format!("{REMEDIES}/r{}", n % 5), &patch)
                .await
                .body,
        );
        bodies.extend(server.delete(&format!("{REMEDIES}/r{}", n % 6)).await.body);
        tokio::time::advance(Duration::from_secs(1)).await;
        bodies.extend(watch.seen().await.into_bytes());
    }
    bodies.extend(server.request(Method::GET, CONFIG_MAPS, "", "").await.body);
    bodies.extend(server.get("/apis").await.body);
    bodies.extend(server.get("/openapi/v3").await.body);
    bodies
}

/// The same requests get equal responses.
#[tokio::test(start_paused = true)]
async fn same_requests_same_responses() {
    let first = run(server()).await;
    assert!(first.len() > 10_000);
    assert_eq!(first, run(server()).await);
    assert_eq!(first, run(server().fork()).await);
}
