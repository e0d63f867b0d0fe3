//! The whole program on the embedded API, in virtual time.

mod fleet;

use embedded_apiserver::{Fault, Verb};
use jiff::Timestamp;
use karmada_api::condition::DNS_READY;
use karmada_api::remedy::{ACCEPTED, ACTIVE, DRAIN, EXPIRES_AT, OBSERVE_ONLY};
use karmada_api::{Cluster, RemedyStatus, TRAFFIC_CONTROL};
use kube::api::{DeleteParams, Patch, PatchParams, PostParams};
use serde_json::{Value, from_value, json};
use tokio::time::sleep;

use self::fleet::{Fleet, SETTLED, clock, definition};
use super::*;

fn at_once(clusters: &[&str]) -> Value {
    json!({ "clusterAffinity": { "clusterNames": clusters }, "actions": [TRAFFIC_CONTROL] })
}

fn on_dns() -> Value {
    let requirement =
        json!({ "conditionType": DNS_READY, "operator": "Equal", "conditionStatus": "False" });
    let matches = json!([{ "clusterConditionMatch": requirement }]);
    json!({ "decisionMatches": matches, "actions": [TRAFFIC_CONTROL] })
}

fn pair(status: &str, reason: &str) -> (String, String) {
    (status.to_owned(), reason.to_owned())
}

fn left(end: Timestamp) -> Duration {
    Duration::try_from(end.duration_since(clock())).unwrap()
}

/// A remedy that expires lets its clusters go at that moment and says so once.
#[tokio::test(start_paused = true)]
async fn expired_remedy_lets_go() {
    let mut fleet = Fleet::start(true, &[]).await;
    let window = [(EXPIRES_AT, "2026-11-20T10:00:00Z"), (DRAIN, "m1")];
    fleet
        .create("window", at_once(&["m1", "m2"]), &window)
        .await;
    fleet.create("other", at_once(&["m2"]), &[]).await;
    sleep(SETTLED).await;
    assert_eq!(fleet.blocked().await, ["m1", "m2"]);
    assert_eq!(
        fleet.condition("window", ACTIVE).await,
        pair("True", "ActionsRequired")
    );
    assert_eq!(fleet.metric("remedies_expiring"), 0);
    let end: Timestamp = "2026-11-20T10:00:00Z".parse().unwrap();
    let moment = Duration::from_millis(10);
    sleep(left(end).saturating_sub(moment)).await;
    assert_eq!(fleet.blocked().await, ["m1", "m2"]);
    assert_eq!(fleet.metric("remedies_expiring"), 1);
    assert_eq!(fleet.events("window", "RemedyExpired").await, 0);
    sleep(2 * moment).await;
    assert_eq!(fleet.blocked().await, ["m2"]);
    sleep(SETTLED).await;
    assert_eq!(
        fleet.condition("window", ACTIVE).await,
        pair("False", "Expired")
    );
    assert_eq!(fleet.status("window").await.active_clusters, Some(0));
    assert_eq!(fleet.events("window", "RemedyExpired").await, 1);
    assert_eq!(fleet.metric("remedies{state=\"expired\"}"), 1);
    assert_eq!(fleet.metric("overdue_drains{member=\"m1\"}"), 1);
    assert_eq!(fleet.metric("remedies_expiring"), 0);

    // The next leader finds it as the former one has left it.
    let version = fleet.version("window").await;
    fleet.run(&[]);
    sleep(SETTLED).await;
    assert_eq!(fleet.blocked().await, ["m2"]);
    assert_eq!(fleet.events("window", "RemedyExpired").await, 1);
    assert_eq!(fleet.version("window").await, version);
}

/// An expiry that is moved or comes while no leader looks counts as it is.
#[tokio::test(start_paused = true)]
async fn moved_expiry_counts() {
    let mut fleet = Fleet::start(true, &[]).await;
    let soon = [(EXPIRES_AT, "2026-11-20T08:10:00Z")];
    fleet.create("window", at_once(&["m1"]), &soon).await;
    sleep(SETTLED).await;
    let moved = Patch::Merge(
        json!({ "metadata": { "annotations": { EXPIRES_AT: "2026-11-20T09:00:00Z" } } }),
    );
    let patched = fleet
        .remedies()
        .patch("window", &PatchParams::default(), &moved)
        .await;
    patched.unwrap();
    sleep(Duration::from_mins(30)).await;
    assert_eq!(fleet.blocked().await, ["m1"]);
    fleet.running.take().unwrap().abort();
    sleep(Duration::from_hours(1)).await;
    assert_eq!(fleet.blocked().await, ["m1"]);
    fleet.run(&[]);
    sleep(SETTLED).await;
    assert_eq!(fleet.blocked().await, [""; 0]);
    assert_eq!(fleet.events("window", "RemedyExpired").await, 1);
    // A window that is opened again acts again.
    let moved = Patch::Merge(
        json!({ "metadata": { "annotations": { EXPIRES_AT: "2027-01-01T00:00:00Z" } } }),
    );
    let patched = fleet
        .remedies()
        .patch("window", &PatchParams::default(), &moved)
        .await;
    patched.unwrap();
    sleep(SETTLED).await;
    assert_eq!(fleet.blocked().await, ["m1"]);
}

/// A remedy that only observes tells its effect once and does nothing.
#[tokio::test(start_paused = true)]
async fn observing_remedy_only_tells() {
    let fleet = Fleet::start(true, &[]).await;
    fleet
        .create("trial", on_dns(), &[(OBSERVE_ONLY, "true")])
        .await;
    fleet.dns("m1", "False").await;
    sleep(SETTLED).await;
    // Another client writes the status of the cluster.
    fleet.dns("m1", "False").await;
    fleet.dns("m2", "False").await;
    sleep(SETTLED).await;
    assert_eq!(fleet.blocked().await, [""; 0]);
    for cluster in ["m1", "m2"] {
        assert_eq!(
            fleet.events(cluster, "RemedyWouldAct").await,
            1,
            "{cluster}"
        );
    }
    let status = fleet.status("trial").await;
    let active = &status.conditions.unwrap()[1];
    assert_eq!(
        (&*active.reason, &*active.message),
        ("ObserveOnly", "would act on m1, m2")
    );
    assert_eq!(fleet.metric("remedies{state=\"observe_only\"}"), 1);
    let enforced =
        Patch::Merge(json!({ "metadata": { "annotations": { OBSERVE_ONLY: "false" } } }));
    let patched = fleet
        .remedies()
        .patch("trial", &PatchParams::default(), &enforced)
        .await;
    patched.unwrap();
    sleep(SETTLED).await;
    assert_eq!(fleet.blocked().await, ["m1", "m2"]);
    // Its meaning is unknown: blocked clusters stay so, and no others are.
    let unreadable =
        Patch::Merge(json!({ "metadata": { "annotations": { OBSERVE_ONLY: "yes" } } }));
    let patched = fleet
        .remedies()
        .patch("trial", &PatchParams::default(), &unreadable)
        .await;
    patched.unwrap();
    fleet.dns("m3", "False").await;
    sleep(SETTLED).await;
    assert_eq!(fleet.blocked().await, ["m1", "m2"]);
    assert_eq!(
        fleet.condition("trial", ACCEPTED).await,
        pair("False", "InvalidObserveOnly")
    );
    fleet.dns("m2", "True").await;
    sleep(SETTLED).await;
    assert_eq!(fleet.blocked().await, ["m1"]);
}

/// A status follows the clusters and is written at most once a second.
#[tokio::test(start_paused = true)]
async fn status_writes_are_paced() {
    let fleet = Fleet::start(true, &["--max-blocked-clusters=1"]).await;
    fleet.create("dns", on_dns(), &[]).await;
    sleep(SETTLED).await;
    assert_eq!(
        fleet.condition("dns", ACCEPTED).await,
        pair("True", "Accepted")
    );
    assert_eq!(
        fleet.condition("dns", ACTIVE).await,
        pair("False", "NoClusterMatches")
    );
    let applied = "writes_total{target=\"remedy_status\",outcome=\"applied\"}";
    let before = fleet.metric(applied);
    for _ in 0..25 {
        for status in ["False", "True"] {
            fleet.dns("m1", status).await;
            sleep(Duration::from_millis(100)).await;
        }
    }
    let written = fleet.metric(applied) - before;
    assert!((1..=6).contains(&written), "{written} writes in 5 s");
    for cluster in ["m1", "m2"] {
        fleet.dns(cluster, "False").await;
    }
    sleep(SETTLED).await;
    let status = fleet.status("dns").await;
    assert_eq!(
        (status.active_clusters, status.refused_clusters),
        (Some(1), Some(1))
    );
    assert_eq!(status.active_cluster_names.unwrap(), ["m1"]);
    assert_eq!(status.refused_cluster_names.unwrap(), ["m2"]);
    assert_eq!(
        fleet.metric("clusters_with_action{action=\"TrafficControl\"}"),
        1
    );
    for (cluster, blocked) in [("m1", 1), ("m2", 0)] {
        let metric = format!("traffic_blocked{{member=\"{cluster}\"}}");
        assert_eq!(fleet.metric(&metric), blocked, "{cluster}");
    }
    assert!(fleet.metric("action_delay_seconds_count") >= 1);
    let settled = fleet.version("dns").await;
    sleep(Duration::from_hours(1)).await;
    assert_eq!(fleet.version("dns").await, settled, "nothing has changed");
}

/// One status at a time is written while clusters wait for their actions.
#[tokio::test(start_paused = true)]
async fn actions_precede_statuses() {
    let fleet = Fleet::start(true, &[]).await;
    for nth in 4..=40 {
        let cluster = json!({ "metadata": { "name": format!("m{nth}") }, "spec": {} });
        let cluster = from_value(cluster).unwrap();
        let (clusters, parameters) = (fleet.clusters(), PostParams::default());
        clusters.create(&parameters, &cluster).await.unwrap();
    }
    sleep(SETTLED).await;
    let slow = Fault::Slow(Duration::from_secs(1)).verbs([Verb::Patch]);
    fleet.server.faults().inject(slow);
    let all = json!({ "actions": [TRAFFIC_CONTROL] });
    for nth in 0..20 {
        fleet.create(&format!("r{nth}"), all.clone(), &[]).await;
    }
    // Eight clusters at a time are written in five seconds.
    sleep(Duration::from_millis(4500)).await;
    assert_eq!(
        fleet.metric("writes_total{target=\"remedy_actions\",outcome=\"applied\"}"),
        32
    );
    let statuses = "writes_total{target=\"remedy_status\",outcome=\"applied\"}";
    let written = fleet.metric(statuses);
    assert!(
        (1..=4).contains(&written),
        "{written} statuses in four seconds"
    );
    sleep(SETTLED).await;
    for nth in 0..20 {
        let status = fleet.status(&format!("r{nth}")).await;
        assert_eq!(status.active_clusters, Some(40), "r{nth}");
    }
}

/// A status follows the clusters that the remedy refers to.
#[tokio::test(start_paused = true)]
async fn status_follows_references() {
    let fleet = Fleet::start(true, &[]).await;
    fleet.create("named", at_once(&["m1", "m4"]), &[]).await;
    let mut misspelt = on_dns();
    misspelt["decisionMatches"][0]["clusterConditionMatch"]["conditionType"] = json!("Full");
    fleet.create("misspelt", misspelt, &[]).await;
    sleep(SETTLED).await;
    assert_eq!(
        fleet.condition("named", ACCEPTED).await,
        pair("True", "ClusterNotFound")
    );
    assert_eq!(
        fleet.condition("misspelt", ACCEPTED).await,
        pair("True", "ConditionNotFound")
    );
    assert_eq!(fleet.events("named", "ClusterNotFound").await, 1);
    let joins = from_value(json!({ "metadata": { "name": "m4" }, "spec": {},
        "status": { "conditions": [{ "type": "Full", "status": "True" }] } }));
    let joins: Cluster = joins.unwrap();
    fleet
        .clusters()
        .create(&PostParams::default(), &joins)
        .await
        .unwrap();
    let reported = Patch::Merge(json!({ "status": joins.status }));
    let patched = fleet
        .clusters()
        .patch_status("m4", &PatchParams::default(), &reported)
        .await;
    patched.unwrap();
    sleep(SETTLED).await;
    for name in ["named", "misspelt"] {
        assert_eq!(
            fleet.condition(name, ACCEPTED).await,
            pair("True", "Accepted")
        );
    }
    fleet
        .clusters()
        .delete("m4", &DeleteParams::default())
        .await
        .unwrap();
    sleep(SETTLED).await;
    assert_eq!(
        fleet.condition("named", ACCEPTED).await,
        pair("True", "ClusterNotFound")
    );
    assert_eq!(
        fleet.condition("misspelt", ACCEPTED).await,
        pair("True", "ConditionNotFound")
    );
}

/// A remedy that never acts has an event for each time it is made.
#[tokio::test(start_paused = true)]
async fn idle_remedy_has_events() {
    let fleet = Fleet::start(true, &[]).await;
    let never = json!({ "decisionMatches": [], "actions": [TRAFFIC_CONTROL] });
    for made in 1..=2 {
        fleet.create("never", never.clone(), &[]).await;
        sleep(SETTLED).await;
        assert_eq!(
            fleet.condition("never", ACCEPTED).await,
            pair("False", "NeverMatches")
        );
        assert_eq!(fleet.metric("remedies{state=\"not_accepted\"}"), 1);
        assert_eq!(fleet.events("never", "NeverMatches").await, made);
        fleet
            .remedies()
            .delete("never", &DeleteParams::default())
            .await
            .unwrap();
        sleep(SETTLED).await;
    }
}

/// Without a status in the definition everything else works and with it the status follows.
#[tokio::test(start_paused = true)]
async fn missing_status_hinders_nothing() {
    let fleet = Fleet::start(false, &[]).await;
    let soon = [(EXPIRES_AT, "2026-11-20T08:10:00Z")];
    fleet.create("window", at_once(&["m1"]), &soon).await;
    sleep(SETTLED).await;
    assert_eq!(fleet.blocked().await, ["m1"]);
    let version = fleet.version("window").await;
    sleep(Duration::from_mins(15)).await;
    assert_eq!(fleet.blocked().await, [""; 0]);
    assert_eq!(fleet.events("window", "RemedyExpired").await, 1);
    assert_eq!(fleet.version("window").await, version);
    fleet.server.install(&definition(true)).unwrap();
    sleep(2 * Duration::from_mins(1)).await;
    assert_eq!(
        fleet.condition("window", ACTIVE).await,
        pair("False", "Expired")
    );
}

/// A definition that drops the status is not written to without end.
#[tokio::test(start_paused = true)]
async fn dropped_status_is_given_up() {
    let fleet = Fleet::start(false, &[]).await;
    // The subresource alone: the server prunes every field.
    let mut pruning = definition(true);
    let version = &mut pruning["spec"]["versions"][0];
    let fields = &mut version["schema"]["openAPIV3Schema"]["properties"];
    fields["status"] = json!({ "type": "object" });
    fleet.server.install(&pruning).unwrap();
    fleet.create("dns", on_dns(), &[]).await;
    sleep(Duration::from_mins(10)).await;
    let writes = fleet.metric("writes_total{target=\"remedy_status\",outcome=\"applied\"}");
    assert!((1..=12).contains(&writes), "{writes} writes in ten minutes");
}

/// A cluster whose decision was a write is woken once the watch shows that, or a later one.
/// Another client undoes the block before the watch shows it, which then looks as if nothing had been (karmada#7776).
#[tokio::test(start_paused = true)]
async fn unsettled_cluster_is_woken() {
    let fleet = Fleet::start(true, &[]).await;
    let late = Fault::DelayEvents {
        by: Duration::from_secs(2),
        coalesce: true,
    };
    fleet.server.faults().inject(late.kind("clusters"));
    fleet.create("all", at_once(&["m1"]), &[]).await;
    sleep(Duration::from_secs(1)).await;
    assert_eq!(fleet.blocked().await, ["m1"]);
    let undone = Patch::Merge(json!({ "status": { "remedyActions": null } }));
    let (clusters, parameters) = (fleet.clusters(), PatchParams::default());
    let undone = clusters.patch_status("m1", &parameters, &undone).await;
    assert_eq!(undone.unwrap().remedy_actions(), [""; 0]);
    sleep(SETTLED).await;
    assert_eq!(fleet.blocked().await, ["m1"]);
}

/// A policy refuses the actions of a cluster: an Event of it says so once, and they are set once they may be.
#[tokio::test(start_paused = true)]
async fn refused_actions_are_told() {
    let fleet = Fleet::start(true, &[]).await;
    let denied = Fault::Forbidden.verbs([Verb::Patch]).kind("clusters");
    fleet.server.faults().inject(denied);
    fleet.create("all", at_once(&["m1"]), &[]).await;
    sleep(Duration::from_mins(5)).await;
    assert_eq!(fleet.events("m1", "RemedyActionsRefused").await, 1);
    assert_eq!(fleet.events("m1", "RemedyActionSet").await, 0);
    fleet.server.faults().clear();
    sleep(Duration::from_mins(1)).await;
    assert_eq!(fleet.blocked().await, ["m1"]);
}

/// A status that was refused is told, and written once the right is there.
#[tokio::test(start_paused = true)]
async fn refused_status_is_retried() {
    let fleet = Fleet::start(true, &[]).await;
    let denied = Fault::Forbidden.verbs([Verb::Patch]).kind("remedies");
    fleet.server.faults().inject(denied);
    fleet.create("dns", on_dns(), &[]).await;
    sleep(SETTLED).await;
    assert_eq!(fleet.status("dns").await, RemedyStatus::default());
    assert_eq!(fleet.events("dns", "StatusRefused").await, 1);
    fleet.server.faults().clear();
    sleep(2 * Duration::from_mins(1)).await;
    assert_eq!(
        fleet.condition("dns", ACCEPTED).await,
        pair("True", "Accepted")
    );
}
