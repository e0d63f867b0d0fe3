//! The scenarios, played by the built program as users play them.

use rustix::process::Signal;

use crate::program::{Sandbox, request};

/// Plays a scenario to its end, and finds these texts on its timeline, in this order.
async fn plays(scenario: &str, stages: &[&str]) {
    let mut sandbox = Sandbox::start(&["--scenario", scenario]);
    let (code, lines) = sandbox.end().await;
    let text = lines.join("\n");
    assert_eq!(code, Some(0), "{scenario}: {text}\n{}", sandbox.errors());
    let mut rest = lines.iter();
    for stage in stages {
        assert!(
            rest.any(|line| line.contains(stage)),
            "{scenario}: {stage:?} is missing or out of order: {text}"
        );
    }
    assert!(lines.last().unwrap().starts_with("as expected: "), "{text}");
}

#[tokio::test]
async fn traffic_leaves_a_cluster_whose_dns_is_dead_and_returns() {
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

#[tokio::test]
async fn a_remedy_without_a_condition_blocks_a_cluster_until_it_is_deleted() {
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
async fn a_maintenance_window_ends_by_itself() {
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

#[tokio::test]
async fn what_an_api_outage_held_up_follows_after_it() {
    let stages = [
        "the Karmada API does not respond",
        "votes unhealthy",
        "ServiceDomainNameResolutionReady False",
        "no request goes there any more",
    ];
    plays("api-outage", &stages).await;
}

#[tokio::test]
async fn a_cluster_stays_blocked_when_the_agent_that_reported_it_is_gone() {
    let stages = [
        "ingress shop blocks it",
        "is gone",
        "leads in place of",
        "no ingress blocks it",
        "runs again",
    ];
    plays("leader-killed", &stages).await;
}

#[tokio::test]
async fn dns_that_flaps_changes_nothing_until_it_stays() {
    plays("flapping-dns", &["ServiceDomainNameResolutionReady False"]).await;
}

#[tokio::test]
async fn traffic_leaves_while_a_rollout_is_paused_and_the_rollout_completes_once_resumed() {
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

#[tokio::test]
async fn a_workload_follows_its_traffic_to_the_backup_and_comes_back_when_asked() {
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

#[tokio::test]
async fn a_scenario_that_does_not_happen_as_expected_ends_with_code_1() {
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

#[tokio::test]
async fn a_scenario_that_is_interrupted_ends_with_code_1() {
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
