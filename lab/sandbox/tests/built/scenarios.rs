//! The scenarios, played by the built program as users play them.

use rustix::process::Signal;

use crate::program::{Sandbox, request};

/// Plays a scenario to its end, and finds these texts on its timeline, in this order.
async fn plays(scenario: &str, stages: &[&str]) {
    let mut sandbox = Sandbox::start(&["--scenario", scenario]);
    let (code, lines) = sandbox.end().await;
    let text = lines.join("\n");
    // The reason comes first: whoever shortens a long output keeps its beginning.
    let errors = sandbox.errors();
    assert_eq!(code, Some(0), "{scenario}: {errors}{text}");
    let mut rest = lines.iter();
    for stage in stages {
        assert!(
            rest.any(|line| line.contains(stage)),
            "{scenario}: {stage:?} is missing or out of order: {text}"
        );
    }
    assert!(lines.last().unwrap().starts_with("as expected: "), "{text}");
}

/// Traffic leaves a cluster with dead DNS, and returns.
#[tokio::test]
async fn coredns_outage_moves_traffic() {
    let stages = [
        "breaking DNS of member1",
        "names do not resolve in member1",
        "ServiceDomainNameResolutionReady False",
        "remedyActions TrafficControl",
        "ingress shop blocks it",
        "no request goes there any more",
        "mending DNS of member1",
        "remedyActions cleared",
        "the first request reaches it again",
    ];
    plays("coredns-outage", &stages).await;
}

/// A remedy without a condition blocks a cluster until it is deleted.
#[tokio::test]
async fn maintenance_blocks_until_deleted() {
    let stages = [
        "Remedy maintenance-member1 created",
        "no request goes there any more",
        "Remedy maintenance-member1 deleted",
        "the first request reaches it again",
        "failed: 0",
    ];
    plays("maintenance", &stages).await;
}

#[tokio::test]
async fn maintenance_window_ends_itself() {
    let stages = [
        "creating Remedy window, which expires in 15s",
        "no request goes there any more",
        "Remedy window expired",
        "the first request reaches it again",
        "Remedy window deleted",
        "failed: 0",
    ];
    plays("maintenance-window", &stages).await;
}

/// Steps that an API outage held up follow after it.
#[tokio::test]
async fn api_outage_is_caught_up() {
    let stages = [
        "the Karmada API does not respond",
        "votes unhealthy",
        "ServiceDomainNameResolutionReady False",
        "no request goes there any more",
    ];
    plays("api-outage", &stages).await;
}

/// A cluster stays blocked when the agent that reported it is gone.
#[tokio::test]
async fn killed_leader_keeps_block() {
    let stages = [
        "ingress shop blocks it",
        "is gone",
        "leads in place of",
        "no ingress blocks it",
        "runs again",
    ];
    plays("leader-killed", &stages).await;
}

/// Case T4: traffic leaves a cluster without power because the gateway notices, and returns with the power.
#[tokio::test]
async fn power_failure_moves_traffic() {
    let stages = [
        "powering member1 off",
        "member1 does not respond to the gateway",
        "ReachableFromGateway False",
        "remedyActions TrafficControl",
        "ingress shop blocks it",
        "no request goes there any more",
        "restoring member1",
        "member1 responds to the gateway again",
        "the first request reaches it again",
    ];
    plays("power-failure", &stages).await;
}

/// Case T5: a cluster to which only the control plane has no link serves on.
#[tokio::test]
#[ignore = "long"]
async fn cut_link_blocks_nothing() {
    let stages = [
        "cutting the link between member1 and the control plane",
        "member1 does not respond to the control plane",
        "HealthReporterReady False",
        "restoring member1",
        "HealthReporterReady True",
        "failed: 0",
    ];
    plays("link-cut", &stages).await;
}

/// DNS that flaps changes nothing until it stays.
#[tokio::test]
async fn flapping_dns_changes_nothing() {
    plays("flapping-dns", &["ServiceDomainNameResolutionReady False"]).await;
}

/// Traffic leaves while a rollout is paused and the rollout completes once resumed.
#[tokio::test]
async fn paused_rollout_completes_when_resumed() {
    let stages = [
        "pausing the rollout in every cluster",
        "its Work is suspended",
        "breaking DNS of member1",
        "no request goes there any more",
        "resuming the rollout",
        "its Work is dispatched again",
        "runs version 1.5.0",
        "the first request reaches it again",
    ];
    plays("paused-rollout", &stages).await;
}

/// A workload follows its traffic to the backup and comes back when asked.
#[tokio::test]
async fn workload_follows_to_backup() {
    let stages = [
        "breaking DNS of member1",
        "no request goes there any more",
        "member3  runs version",
        "mending DNS of member1",
        "no ingress blocks it",
        "member1  runs version",
        "the first request reaches it again",
    ];
    plays("failover-to-backup", &stages).await;
}

/// Case F5: a broken version stops at the first wave, and a mended one completes; no request fails on the way.
#[tokio::test]
async fn broken_placement_stops_until_mended() {
    let stages = [
        "a version whose pods never become ready",
        "in wave 1",
        "placement store is stuck: Deployment store/web: ProgressDeadlineExceeded",
        "mending it",
        "in wave 1",
        "its store runs version 1.6.0",
        "in wave 2",
        "its store runs version 1.6.0",
        "requests to the store meanwhile, and none failed",
    ];
    plays("placement-rollout", &stages).await;
}

/// Cases F65, F66: a cluster with dead DNS gets nothing new, and the objects that are evicted from it go elsewhere.
#[tokio::test]
async fn evicted_store_goes_elsewhere() {
    let stages = [
        "evicting the store from member2",
        "breaking DNS of member1",
        "evicting the store from member1",
        "mending DNS of member1",
    ];
    plays("placement-eviction", &stages).await;
}

/// A scenario that does not happen as expected ends with code 1.
#[tokio::test]
async fn unexpected_scenario_fails() {
    let mut sandbox = Sandbox::start(&["--scenario", "coredns-outage"]);
    let page = sandbox.line("page: ").await;
    // Without a Remedy the cluster is never blocked.
    let deleted = r#"{"do":"delete-remedy","remedy":"dns"}"#;
    let response = request(&page, "POST /actions", deleted).await;
    assert!(response.starts_with("HTTP/1.1 204"), "{response}");
    let (code, lines) = sandbox.end().await;
    let errors = sandbox.errors();
    assert_eq!(code, Some(1), "{errors}");
    let expected = "expected: Actions away from health within 0.0 s";
    assert!(errors.contains(expected), "{errors}");
    assert!(!lines.join("\n").contains("as expected"), "{lines:?}");
}

/// A scenario that is interrupted ends with code 1.
#[tokio::test]
async fn interrupted_scenario_fails() {
    let mut sandbox = Sandbox::start(&["--scenario", "maintenance"]);
    sandbox.line("kubeconfig: ").await;
    sandbox.signal(Signal::INT);
    let (code, _) = sandbox.end().await;
    assert_eq!(code, Some(1), "{}", sandbox.errors());
    let interrupted = "error: interrupted before the end of the scenario";
    assert!(
        sandbox.errors().contains(interrupted),
        "{}",
        sandbox.errors()
    );
}
