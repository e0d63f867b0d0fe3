//! Each fault has its documented effect.

use std::time::Duration;

use http::Request;
use http_body_util::Full;
use serde_json::json;
use tokio::time::{Instant, timeout};

use super::{CONFIG_MAPS, REMEDIES, config_map, remedy, server};
use crate::{ApiServer, Fault, Verb};

const SECOND: Duration = Duration::from_secs(1);

async fn lists(server: &ApiServer, client: &str) -> std::io::Result<u16> {
    let request = Request::builder()
        .uri(CONFIG_MAPS)
        .header("user-agent", client);
    let response = server.send(request.body(Full::default()).unwrap()).await?;
    Ok(response.code.as_u16())
}

/// Every third write meets a conflict.
#[tokio::test(start_paused = true)]
async fn every_third_write_conflicts() {
    let server = server();
    server.post(REMEDIES, &remedy("a")).await.ok();
    server
        .faults()
        .inject(Fault::Conflict.every(3).kind("remedies"));
    let mut codes = Vec::new();
    for size in 0..6 {
        let patch = json!({"spec": {"size": size}});
        let response = server.merge(&format!("{REMEDIES}/a"), &patch).await;
        codes.push(response.code.as_u16());
        server.get(REMEDIES).await.ok();
    }
    assert_eq!(codes, [200, 200, 409, 200, 200, 409]);
}

/// A fault is over after so many times or so much time.
#[tokio::test(start_paused = true)]
async fn fault_ends_by_count() {
    let server = server();
    server.faults().inject(Fault::Unavailable.times(2));
    server.faults().inject(Fault::InternalError.lasting(SECOND));
    let failed = server.get(CONFIG_MAPS).await;
    failed.fails(503, "ServiceUnavailable");
    server
        .get(CONFIG_MAPS)
        .await
        .fails(503, "ServiceUnavailable");
    server.get(CONFIG_MAPS).await.fails(500, "InternalError");
    tokio::time::advance(SECOND).await;
    server.get(CONFIG_MAPS).await.ok();
    assert_eq!(server.faults().active(), []);
}

/// A fault is limited to clients verbs kinds and objects.
#[tokio::test(start_paused = true)]
async fn fault_is_limited() {
    let server = server();
    server.post(CONFIG_MAPS, &config_map("a")).await.ok();
    server.post(CONFIG_MAPS, &config_map("b")).await.ok();
    let id = server.faults().inject(Fault::Unavailable.client("agent"));
    assert_eq!(lists(&server, "agent/1").await.unwrap(), 503);
    assert_eq!(lists(&server, "other/1").await.unwrap(), 200);
    server.faults().remove(id);
    let id = server
        .faults()
        .inject(Fault::Unavailable.verbs([Verb::Create]));
    server
        .post(CONFIG_MAPS, &config_map("c"))
        .await
        .fails(503, "ServiceUnavailable");
    server.get(CONFIG_MAPS).await.ok();
    server.faults().remove(id);
    server
        .faults()
        .inject(Fault::Unavailable.object("a").kind("configmaps"));
    server
        .get(&format!("{CONFIG_MAPS}/a"))
        .await
        .fails(503, "ServiceUnavailable");
    server.get(&format!("{CONFIG_MAPS}/b")).await.ok();
    server.faults().clear();
    server.get(&format!("{CONFIG_MAPS}/a")).await.ok();
    server.post(REMEDIES, &remedy("r")).await.ok();
    let (object, status) = (format!("{REMEDIES}/r"), format!("{REMEDIES}/r/status"));
    for (subresource, refused, served) in [("", &object, &status), ("status", &status, &object)] {
        let fault = Fault::Unavailable.subresource(subresource);
        let id = server.faults().inject(fault.kind("remedies"));
        let response = server.get(refused).await;
        response.fails(503, "ServiceUnavailable");
        server.get(served).await.ok();
        server.faults().remove(id);
    }
}

/// Too many requests say when to come back.
#[tokio::test(start_paused = true)]
async fn throttled_client_gets_retry_after() {
    let server = server();
    let retry_after = Duration::from_millis(1_500);
    server
        .faults()
        .inject(Fault::TooManyRequests { retry_after });
    let failed = server.get(CONFIG_MAPS).await;
    failed.fails(429, "TooManyRequests");
    assert_eq!(failed.headers["retry-after"], "2");
}

#[tokio::test(start_paused = true)]
async fn a_slow_response_is_late() {
    let server = server();
    server.faults().inject(Fault::Slow(3 * SECOND));
    let begin = Instant::now();
    server.get(CONFIG_MAPS).await.ok();
    assert_eq!(begin.elapsed(), 3 * SECOND);
}

/// A write is stored although its response is lost.
#[tokio::test(start_paused = true)]
async fn lost_response_is_stored() {
    let server = server();
    server.faults().inject(Fault::LoseResponse.times(1));
    let request = Request::post(REMEDIES)
        .body(Full::from(remedy("a").to_string()))
        .unwrap();
    server.send(request).await.unwrap_err();
    server.get(&format!("{REMEDIES}/a")).await.ok();
}

/// An outage cuts everything until it ends.
#[tokio::test(start_paused = true)]
async fn outage_cuts_everything() {
    let server = server();
    let mut watch = server.watch(CONFIG_MAPS).await;
    let cut = async { watch.next().await.unwrap_err() };
    let outage = async {
        tokio::task::yield_now().await;
        server
            .faults()
            .inject(Fault::Disconnect.lasting(20 * SECOND));
    };
    futures::join!(cut, outage);
    assert_eq!(watch.next().await.unwrap(), None);
    lists(&server, "x").await.unwrap_err();
    tokio::time::advance(19 * SECOND).await;
    lists(&server, "x").await.unwrap_err();
    tokio::time::advance(SECOND).await;
    assert_eq!(lists(&server, "x").await.unwrap(), 200);
}

/// A silent server sends nothing until the fault ends.
#[tokio::test(start_paused = true)]
async fn silent_server_sends_nothing() {
    let server = server();
    let mut watch = server.watch(CONFIG_MAPS).await;
    let id = server.faults().inject(Fault::Silence.lasting(20 * SECOND));
    let begin = Instant::now();
    timeout(19 * SECOND, lists(&server, "x")).await.unwrap_err();
    watch.next().await.unwrap_err();
    assert_eq!(begin.elapsed(), 20 * SECOND);
    server.faults().remove(id);
    assert_eq!(lists(&server, "x").await.unwrap(), 200);
    // A fault that is used up still holds the requests that met it, and no others.
    let id = server.faults().inject(Fault::Silence.times(1));
    timeout(20 * SECOND, lists(&server, "x")).await.unwrap_err();
    assert_eq!(lists(&server, "x").await.unwrap(), 200);
    server.faults().remove(id);
    // A fault without a duration ends when it is removed.
    let id = server.faults().inject(Fault::Silence);
    let release = async {
        tokio::time::sleep(SECOND).await;
        server.faults().remove(id);
    };
    let (response, ()) = futures::join!(lists(&server, "x"), release);
    response.unwrap_err();
}

/// A watch is cut between lines or inside one.
#[tokio::test(start_paused = true)]
async fn watch_is_cut_anywhere() {
    let server = server();
    for inside_line in [false, true] {
        let name = format!("cut-{inside_line}");
        let version = server.get(CONFIG_MAPS).await.ok();
        let version = version["metadata"]["resourceVersion"]
            .as_str()
            .unwrap()
            .to_owned();
        let mut watch = server
            .watch(&format!("{CONFIG_MAPS}?resourceVersion={version}"))
            .await;
        server
            .faults()
            .inject(Fault::CutWatch { inside_line }.every(2).times(1));
        server.post(CONFIG_MAPS, &config_map(&name)).await.ok();
        server
            .post(CONFIG_MAPS, &config_map(&format!("{name}-2")))
            .await
            .ok();
        assert_eq!(watch.seen().await, format!("ADDED {name}"));
        watch.next().await.unwrap_err();
        assert_eq!(!watch.buffer.is_empty(), inside_line);
    }
}

/// A watch is cut inside a line however often that happens.
#[tokio::test(start_paused = true)]
async fn every_cut_is_inside_line() {
    let server = server();
    server
        .faults()
        .inject(Fault::CutWatch { inside_line: true });
    for name in ["a", "b"] {
        let mut watch = server.watch(CONFIG_MAPS).await;
        server.post(CONFIG_MAPS, &config_map(name)).await.ok();
        watch.next().await.unwrap_err();
        assert!(watch.buffer.starts_with(b"{\"type\":"));
    }
}

#[tokio::test(start_paused = true)]
async fn a_watch_ends_as_expired() {
    let server = server();
    let mut watch = server.watch(CONFIG_MAPS).await;
    server.faults().inject(Fault::ExpireWatch);
    server.post(CONFIG_MAPS, &config_map("a")).await.ok();
    let (type_, status) = watch.next().await.unwrap().unwrap();
    assert_eq!((type_.as_str(), &status["code"]), ("ERROR", &json!(410)));
    assert_eq!(watch.next().await.unwrap(), None);
}

/// Bookmarks are withheld but for the one that ends the initial events.
#[tokio::test(start_paused = true)]
async fn bookmarks_are_withheld() {
    let server = server();
    let id = server.faults().inject(Fault::WithholdBookmarks);
    let query = "sendInitialEvents=true&resourceVersionMatch=NotOlderThan&allowWatchBookmarks=true";
    let mut watch = server.watch(&format!("{CONFIG_MAPS}?{query}")).await;
    assert_eq!(watch.seen().await, "BOOKMARK ");
    timeout(300 * SECOND, watch.next()).await.unwrap_err();
    server.faults().remove(id);
    timeout(61 * SECOND, watch.seen()).await.unwrap();
}

#[tokio::test(start_paused = true)]
async fn events_are_late_and_coalesced() {
    let server = server();
    let mut watch = server.watch(CONFIG_MAPS).await;
    let delay = Fault::DelayEvents {
        by: 5 * SECOND,
        coalesce: true,
    };
    server.faults().inject(delay);
    for (name, value) in [("a", "1"), ("b", "1"), ("a", "2")] {
        let mut object = config_map(name);
        object["data"] = json!({"value": value});
        let path = format!("{CONFIG_MAPS}/{name}");
        if server.put(&path, &object).await.code == 404 {
            server.post(CONFIG_MAPS, &object).await.ok();
        }
    }
    server.post(CONFIG_MAPS, &config_map("gone")).await.ok();
    server.delete(&format!("{CONFIG_MAPS}/gone")).await.ok();
    let begin = Instant::now();
    assert_eq!(watch.seen().await, "ADDED b");
    assert_eq!(begin.elapsed(), 5 * SECOND);
    let (type_, object) = watch.next().await.unwrap().unwrap();
    assert_eq!(
        (type_.as_str(), &object["data"]["value"]),
        ("ADDED", &json!("2"))
    );
    assert_eq!(watch.seen().await, "DELETED gone");
    assert!(watch.is_quiet().await);
}

#[tokio::test(start_paused = true)]
async fn stale_list_shows_past() {
    let server = server();
    for name in ["a", "b", "c"] {
        server.post(CONFIG_MAPS, &config_map(name)).await.ok();
    }
    let id = server.faults().inject(Fault::StaleList { versions: 2 });
    let list = server.get(CONFIG_MAPS).await.ok();
    assert_eq!(list["items"].as_array().unwrap().len(), 1);
    let version = list["metadata"]["resourceVersion"].as_str().unwrap();
    let mut watch = server
        .watch(&format!("{CONFIG_MAPS}?resourceVersion={version}"))
        .await;
    assert_eq!(watch.seen().await, "ADDED b");
    server.faults().remove(id);
    let list = server.get(CONFIG_MAPS).await.ok();
    assert_eq!(list["items"].as_array().unwrap().len(), 3);
}

#[tokio::test(start_paused = true)]
async fn a_lease_can_be_stolen() {
    let server = server();
    let leases = "/apis/coordination.k8s.io/v1/namespaces/default/leases";
    server.steal_lease("default", "none", "thief").unwrap_err();
    let lease = json!({
        "apiVersion": "coordination.k8s.io/v1", "kind": "Lease", "metadata": {"name": "a"},
        "spec": {"holderIdentity": "owner", "leaseTransitions": 3, "leaseDurationSeconds": 15},
    });
    server.post(leases, &lease).await.ok();
    tokio::time::advance(SECOND).await;
    server.steal_lease("default", "a", "thief").unwrap();
    let stolen = server.get(&format!("{leases}/a")).await.ok();
    assert_eq!(stolen["spec"]["holderIdentity"], "thief");
    assert_eq!(stolen["spec"]["leaseTransitions"], 4);
    assert_eq!(stolen["spec"]["renewTime"], "2026-01-01T00:00:01.000000Z");
}

/// Credentials and rights can be refused.
#[tokio::test(start_paused = true)]
async fn credentials_can_be_refused() {
    let server = server();
    server.post(REMEDIES, &remedy("a")).await.ok();
    let faults = server.faults();
    faults.inject(Fault::Unauthorized.times(1));
    faults.inject(Fault::Forbidden.kind("remedies"));
    server.get(CONFIG_MAPS).await.fails(401, "Unauthorized");
    server.get(CONFIG_MAPS).await.ok();
    let change = json!({"spec": {"size": 2}});
    let path = format!("{REMEDIES}/a");
    server.merge(&path, &change).await.fails(403, "Forbidden");
    server.get(REMEDIES).await.fails(403, "Forbidden");
    faults.clear();
    server.get(REMEDIES).await.ok();
    assert_eq!(
        faults.hits(),
        [("Forbidden", 2), ("Unauthorized", 1)].into()
    );
}

/// A watch can fail for another reason than its version.
#[tokio::test(start_paused = true)]
async fn watch_can_fail() {
    let server = server();
    let mut watch = server.watch(CONFIG_MAPS).await;
    server.faults().inject(Fault::FailWatch.times(1));
    server.post(CONFIG_MAPS, &config_map("a")).await.ok();
    let (type_, status) = watch.next().await.unwrap().unwrap();
    assert_eq!((type_.as_str(), &status["code"]), ("ERROR", &json!(500)));
    assert_eq!(watch.next().await.unwrap(), None);
    assert_eq!(server.faults().hits(), [("FailWatch", 1)].into());
}
