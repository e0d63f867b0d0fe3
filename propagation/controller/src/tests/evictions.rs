//! Copies that leave clusters before others come.

use super::works::{dispatched, work, works};
use super::*;

/// Returns the eviction of `web` from a cluster.
fn leaving(cluster: &str) -> Value {
    let task =
        json!({ "fromCluster": cluster, "purgeMode": "Directly", "reason": "TaintUntolerated" });
    json!({ "spec": { "gracefulEvictionTasks": [task] } })
}

/// A copy that leaves directly is gone before another is made.
#[tokio::test(start_paused = true)]
async fn direct_purge_comes_first() {
    let mut stage = dispatched().await;
    stage.join("m3").await;
    stage.send("PATCH", &bound(), &leaving("m2")).await;
    let wrote = stage.schedule(&["m1", "m3"]).await;
    assert_eq!(wrote, [format!("DELETE {}", work("m2"))]);
    // An edit waits, too, and a restart changes nothing.
    let scaled = json!({ "spec": { "paused": true } });
    let wrote = stage.change("PATCH", &web(DEPLOYMENT), &scaled).await;
    assert!(
        wrote.iter().all(|write| !write.contains("/works")),
        "{wrote:?}"
    );
    stage.kill().await;
    stage.start(&[]).await;
    assert_eq!(stage.written(), [""; 0]);

    let wrote = stage.let_go("m2").await;
    assert_eq!(
        wrote,
        [
            format!("PATCH {}", work("m1")),
            format!("POST {}", works("m3"))
        ]
    );
    let made = stage.work("m3").await;
    assert_eq!(made.spec.workload.manifests[0]["spec"]["paused"], true);
}
