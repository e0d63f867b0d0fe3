//! The Events and metrics while a block is not enforced everywhere.

use super::*;

/// Returns a stage on which every cluster of the ingress is blocked.
async fn everywhere_blocked() -> Stage {
    let (stage, _) = Stage::with(all_blocked()).await;
    let blocked = applied(cluster("m2", &["TrafficControl"]));
    stage.observe(|index| index.observe_cluster(blocked));
    stage
}

/// An ingress lags until its load balancer has acknowledged the change, and that is told once it has lasted.
#[tokio::test(start_paused = true)]
async fn failing_load_balancer_lags() {
    let (stage, _) = Stage::with(converged()).await;
    let enforcement = &stage.gateway.index.enforcement;
    stage.observe(|index| index.observe_cluster(applied(cluster("m1", &[]))));
    stage.balancer_returns(Err("it fails".into()));
    stage.reconcile().await.unwrap_err();
    let lagging = enforcement.lagging();
    assert_eq!(lagging.get(&Reason::LoadBalancerFailing), Some(&1));
    assert_eq!(enforcement.delays()[..2], ["1", "0"]);
    let unblocked = "TrafficUnblocked: Cluster m1 is no longer blocked";
    assert_eq!(stage.events(), [unblocked]);

    stage.show().await;
    tokio::time::advance(GRACE).await;
    stage.balancer_returns(Err("it fails".into()));
    stage.reconcile().await.unwrap_err();
    let failing =
        "!LoadBalancerFailing: the load balancer is not up to date, and is tried again: it fails";
    assert_eq!(stage.events(), [failing]);

    stage.reconcile().await.unwrap();
    assert!(enforcement.lagging().is_empty());
    assert_eq!(enforcement.delays()[..2], ["1", "1"]);
    assert_eq!(stage.events(), [""; 0]);
}

/// An obstacle that keeps a route out lets no request pass, and a refused write may.
#[tokio::test]
async fn only_refused_writes_lag() {
    for (reason, acknowledged) in [
        (Reason::RouteNotAccepted, "1"),
        (Reason::GatewayRefused, "0"),
    ] {
        let (stage, _) = Stage::with(converged()).await;
        stage.observe(|index| index.observe_cluster(applied(cluster("m1", &[]))));
        let object = RelatedObject {
            api_version: None,
            kind: "HTTPRoute",
            key: key("r"),
        };
        let obstacle = Obstacle {
            reason,
            object,
            message: "no".to_owned(),
        };
        stage.balancer_returns(Ok(Ensured {
            load_balancer: None,
            obstacles: [obstacle].into(),
        }));
        stage.reconcile().await.unwrap_err();
        let enforcement = &stage.gateway.index.enforcement;
        assert_eq!(enforcement.delays()[..2], ["1", acknowledged], "{reason:?}");
        let is_lagging = enforcement.lagging().contains_key(&reason);
        assert_eq!(is_lagging, acknowledged == "0", "{reason:?}");
    }
}

/// An ingress that is released lags no longer.
#[tokio::test]
async fn released_ingress_is_forgotten() {
    let (stage, _) = Stage::with(converged()).await;
    stage.balancer_returns(Err("it fails".into()));
    stage.reconcile().await.unwrap_err();
    stage.observe(|index| index.observe_ingress(deleted(converged())));
    stage.reconcile().await.unwrap();
    assert!(stage.gateway.index.enforcement.lagging().is_empty());
}

/// That no cluster is left is told whatever the load balancer answers.
#[tokio::test]
async fn failing_load_balancer_hides_nothing() {
    let stage = everywhere_blocked().await;
    stage.balancer_returns(Err("it fails".into()));
    stage.reconcile().await.unwrap_err();
    let events = stage.events();
    let note = "!TrafficReadmitted: every cluster of Service s is blocked";
    assert!(
        events.len() == 1 && events[0].starts_with(note),
        "{events:?}"
    );
}

/// That no cluster is left, and each refusal of the load balancer, is told although the API refuses the status.
#[tokio::test]
async fn refused_status_hides_nothing() {
    let stage = everywhere_blocked().await;
    let m3 = cluster("m3", &["TrafficControl"]);
    stage.observe(|index| {
        index.observe_cluster(applied(m3));
        index.observe_binding(applied(binding("s", &["m1", "m2", "m3"])))
    });
    let refusal = Fault::Forbidden.subresource("status");
    stage.api.server.faults().inject(refusal);
    stage.balancer_returns(Err("it fails".into()));
    stage.reconcile().await.unwrap_err();
    let events = stage.events();
    let reasons = events.iter().filter_map(|event| event.split_once(':'));
    let reasons: Vec<&str> = reasons.map(|(reason, _)| reason).collect();
    assert_eq!(
        reasons,
        ["!WriteRefused", "!TrafficBlocked", "!TrafficReadmitted"]
    );
}

/// Where the API refuses our finalizer, nothing of the status is written, and a block is told all the same.
#[tokio::test]
async fn refused_finalizer_hides_no_block() {
    let mut ingress = not_yet_blocked();
    ingress.metadata.finalizers = None;
    let (stage, _) = Stage::with(ingress).await;
    stage.api.server.faults().inject(Fault::Forbidden.times(1));
    stage.reconciler.reconcile(&key("i")).await.unwrap_err();
    let events = stage.events();
    let refused = "!WriteRefused: the API refuses every write to metadata.finalizers: ";
    assert!(events[0].starts_with(refused), "{events:?}");
    let blocked = "!TrafficBlocked: A Remedy takes the traffic of cluster m1 away";
    assert_eq!(events[1..], [blocked]);
    stage.reconciler.reconcile(&key("i")).await.unwrap();
    assert_eq!(stage.events(), [""; 0]);
}
