//! Scope, order and timing of watches; `api_conformance` has the rest.

use std::time::Duration;

use serde_json::json;
use tokio::time::Instant;

use super::{CONFIG_MAPS, TASKS, config_map, server, task};

/// A watch of one namespace or object sees no other.
#[tokio::test(start_paused = true)]
async fn watch_sees_its_scope_only() {
    let server = server();
    let namespace = json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "ns"}});
    server.post("/api/v1/namespaces", &namespace).await.ok();
    let elsewhere = TASKS.replace("default", "ns");
    let mut all = server.watch("/apis/remedy.example.com/v1/tasks").await;
    let mut of_namespace = server.watch(&elsewhere).await;
    let mut of_object = server
        .watch(&format!("{TASKS}?fieldSelector=metadata.name%3Db"))
        .await;
    for (path, name) in [(TASKS, "a"), (&elsewhere, "a"), (TASKS, "b")] {
        server.post(path, &task(name)).await.ok();
    }
    for expected in ["ADDED a", "ADDED a", "ADDED b"] {
        assert_eq!(all.seen().await, expected);
    }
    assert_eq!(of_namespace.seen().await, "ADDED a");
    assert!(of_namespace.is_quiet().await);
    assert_eq!(of_object.seen().await, "ADDED b");
}

#[tokio::test(start_paused = true)]
async fn initial_events_end_with_bookmark() {
    let server = server();
    server.post(CONFIG_MAPS, &config_map("a")).await.ok();
    let query = "sendInitialEvents=true&resourceVersionMatch=NotOlderThan&allowWatchBookmarks=true";
    let mut watch = server.watch(&format!("{CONFIG_MAPS}?{query}")).await;
    assert_eq!(watch.seen().await, "ADDED a");
    let (type_, bookmark) = watch.next().await.unwrap().unwrap();
    assert_eq!(type_, "BOOKMARK");
    assert_eq!(
        bookmark["metadata"]["annotations"]["k8s.io/initial-events-end"],
        "true"
    );
    let list = server.get(CONFIG_MAPS).await.ok();
    assert_eq!(
        bookmark["metadata"]["resourceVersion"],
        list["metadata"]["resourceVersion"]
    );
    let incomplete = format!("{CONFIG_MAPS}?watch=1&sendInitialEvents=true");
    server.get(&incomplete).await.fails(422, "Invalid");
}

/// A quiet watch gets bookmarks of the whole server.
#[tokio::test(start_paused = true)]
async fn quiet_watch_gets_bookmarks() {
    let server = server();
    let mut watch = server
        .watch(&format!("{CONFIG_MAPS}?allowWatchBookmarks=true"))
        .await;
    let made = server.post(TASKS, &task("elsewhere")).await.ok();
    let begin = Instant::now();
    let (type_, bookmark) = watch.next().await.unwrap().unwrap();
    assert_eq!(
        (type_.as_str(), begin.elapsed()),
        ("BOOKMARK", Duration::from_mins(1))
    );
    assert_eq!(
        bookmark["metadata"]["resourceVersion"],
        made["metadata"]["resourceVersion"]
    );
}

#[tokio::test(start_paused = true)]
async fn forgotten_version_is_expired() {
    let server = server();
    server.post(CONFIG_MAPS, &config_map("a")).await.ok();
    let mut slow = server.watch(CONFIG_MAPS).await;
    assert_eq!(slow.seen().await, "ADDED a");
    for n in 0..1_100 {
        let patch = json!({"data": {"n": n.to_string()}});
        server.merge(&format!("{CONFIG_MAPS}/a"), &patch).await.ok();
    }
    let mut old = server
        .watch(&format!("{CONFIG_MAPS}?resourceVersion=1"))
        .await;
    for watch in [&mut old, &mut slow] {
        let (type_, status) = watch.next().await.unwrap().unwrap();
        assert_eq!((type_.as_str(), &status["code"]), ("ERROR", &json!(410)));
        assert_eq!(status["reason"], "Expired");
        assert_eq!(watch.next().await.unwrap(), None);
    }
}

/// A watch ends with the definition of its kind.
#[tokio::test(start_paused = true)]
async fn watch_ends_with_its_definition() {
    let server = server();
    let mut watch = server.watch(TASKS).await;
    server.post(TASKS, &task("a")).await.ok();
    let definitions = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions";
    server
        .delete(&format!("{definitions}/tasks.remedy.example.com"))
        .await
        .ok();
    assert_eq!(watch.seen().await, "ADDED a");
    assert_eq!(watch.seen().await, "DELETED a");
    assert_eq!(watch.next().await.unwrap(), None);
}

/// Many watches see the same in the same order.
#[tokio::test(start_paused = true)]
async fn watches_agree_on_order() {
    let server = server();
    let mut watches = Vec::new();
    for _ in 0..100 {
        watches.push(server.watch(CONFIG_MAPS).await);
    }
    let writes = async {
        for n in 0..20 {
            server
                .post(CONFIG_MAPS, &config_map(&format!("c{n}")))
                .await
                .ok();
            tokio::task::yield_now().await;
        }
    };
    let reads = futures::future::join_all(watches.iter_mut().map(async |watch| {
        let mut seen = Vec::new();
        for _ in 0..20 {
            seen.push(watch.seen().await);
        }
        seen
    }));
    let ((), seen) = futures::join!(writes, reads);
    let expected: Vec<String> = (0..20).map(|n| format!("ADDED c{n}")).collect();
    assert!(seen.iter().all(|seen| *seen == expected));
}
