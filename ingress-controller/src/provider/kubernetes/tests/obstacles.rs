use embedded_apiserver::Fault;
use kube::api::DeleteParams;

use super::*;
use crate::reason::Reason;

/// An object without our label is a clash and the rest goes on.
#[tokio::test]
async fn unlabelled_object_is_a_clash() {
    let stage = Stage::new().await;
    let (service, _) = Stage::names(&open());
    let theirs = json!({ "metadata": { "name": service, "namespace": "ns" },
        "spec": { "ports": [{ "port": 1 }] } });
    let theirs: Service = serde_json::from_value(theirs).unwrap();
    stage.api.create(&theirs).await;
    let ensured = stage.ensure(&open()).await.unwrap();
    let clash = GatewayObstacle::Clash(Clash {
        kind: "Service",
        key: Key::new("ns", &service),
    });
    let clash = Obstacle::from(clash);
    assert_eq!(clash.reason, Reason::GatewayClash);
    assert_eq!(ensured.obstacles, [clash].into());
    let expected = [
        format!("POST {SERVICES}"),
        format!("GET {SERVICES}/{service}"),
        format!("POST {SLICES}"),
        format!("POST {SLICES}"),
        format!("POST {INGRESSES}"),
    ];
    assert_eq!(stage.api.calls(), expected);
}

/// An object of ours that the watch has not shown is taken up with the next attempt.
#[tokio::test]
async fn unseen_object_is_taken_up() {
    let stage = Stage::new().await;
    let wanted = ingresses().objects(&open());
    stage.api.create(&wanted.services[0]).await;
    let error = stage.ensure(&open()).await.unwrap_err();
    Stage::assert_stale(&error, "Service");
    assert_eq!(stage.api.calls().len(), 5);
    stage.ensure(&open()).await.unwrap();
    assert_eq!(stage.api.calls(), [""; 0]);
}

/// An ingress that the gateway rejects is an obstacle with the reason.
#[tokio::test]
async fn rejected_ingress_is_an_obstacle() {
    let stage = Stage::converged(&open()).await;
    let mut desired = open();
    desired.routes.default_backend = None;
    desired.routes.rules = Some(vec![
        serde_json::from_value(json!({ "host": "a..b" })).unwrap(),
    ]);
    let update = format!("PATCH {INGRESSES}/i");
    stage.api.refuse(&update, 422, "Invalid", "Invalid it is");
    let ensured = stage.ensure(&desired).await.unwrap();
    let message = "the gateway cluster refuses Ingress ns/i: Invalid it is";
    assert_eq!(refusals(&ensured), [message]);
    assert_eq!(stage.api.calls(), [update]);
}

/// Returns the refusals of the gateway cluster, which are the only obstacles.
fn refusals(ensured: &Ensured) -> Vec<String> {
    let obstacles = ensured.obstacles.iter();
    let refusals = obstacles.map(|obstacle| {
        assert_eq!(obstacle.reason, Reason::GatewayRefused);
        obstacle.to_string()
    });
    refusals.collect()
}

/// A webhook of the gateway that must answer and does not is named, as nobody else would name it; the rest goes on.
#[tokio::test]
async fn silent_webhook_is_an_obstacle() {
    let stage = Stage::new().await;
    let (service, _) = Stage::names(&open());
    let called = "Internal error occurred: failed calling webhook \"validate.example.com\"";
    let message = format!("{called}: dial tcp 10.0.0.9:443: connect: connection refused");
    let create = format!("POST {SERVICES}");
    stage.api.refuse(&create, 500, "InternalError", &message);
    let ensured = stage.ensure(&open()).await.unwrap();
    let expected = format!("the gateway cluster refuses Service ns/{service}: {called}");
    assert_eq!(refusals(&ensured), [expected]);
    assert_eq!(stage.api.calls().len(), 4);
}

/// A namespace that may not be made is told of.
#[tokio::test]
async fn refused_namespace_is_an_obstacle() {
    let stage = Stage::empty();
    let create = "POST /api/v1/namespaces";
    stage
        .api
        .refuse(create, 403, "Forbidden", "only teams make namespaces");
    let ensured = stage.ensure(&open()).await.unwrap();
    let expected = "the gateway cluster refuses Namespace ns: only teams make namespaces";
    assert_eq!(refusals(&ensured), [expected]);
}

/// When the gateway is unavailable one failed write is enough.
#[tokio::test]
async fn unavailable_gateway_gets_one_write() {
    let stage = Stage::new().await;
    stage
        .api
        .server
        .faults()
        .inject(Fault::Unavailable.times(1));
    let error = stage.ensure(&open()).await.unwrap_err();
    let error = error.downcast_ref();
    assert!(
        matches!(
            error,
            Some(GatewayError::Write {
                kind: "Service",
                ..
            })
        ),
        "{error:?}"
    );
    assert_eq!(stage.api.calls(), [format!("POST {SERVICES}")]);
}

/// The endpoints of excluded clusters go even if the gateway keeps the ingress.
#[tokio::test]
async fn excluded_endpoints_go_regardless() {
    let stage = Stage::converged(&open()).await;
    let (_, slices) = Stage::names(&open());
    let deletion = format!("DELETE {INGRESSES}/i");
    stage
        .api
        .refuse(&deletion, 403, "Forbidden", "Forbidden it is");
    let excluded = BTreeSet::from(["m1".to_owned()]);
    let result = stage.provider.delete(&key(), &excluded).await;
    result.unwrap_err();
    let expected = [format!("DELETE {SLICES}/{}", slices[0]), deletion];
    assert_eq!(stage.api.calls(), expected);
}

/// One deletion that fails keeps no other excluded cluster in.
#[tokio::test]
async fn failed_deletion_stops_no_other() {
    let stage = Stage::converged(&open()).await;
    let (_, mut slices) = Stage::names(&open());
    slices.sort();
    let first = format!("DELETE {SLICES}/{}", slices[0]);
    stage
        .api
        .refuse(&first, 500, "InternalError", "InternalError it is");
    let blocked = Admission::Blocked;
    let both = desired(&[("m1", blocked), ("m2", Admission::ClusterDeleting)]);
    stage.ensure(&both).await.unwrap_err();
    assert_eq!(
        stage.api.calls(),
        [first, format!("DELETE {SLICES}/{}", slices[1])]
    );
}

/// Only a gateway that may not answer at all is an outage.
#[tokio::test]
async fn only_silence_is_an_outage() {
    let stage = Stage::new().await;
    let faults = stage.api.server.faults();
    faults.inject(Fault::Unavailable.times(1));
    let error = stage.ensure(&open()).await.unwrap_err();
    assert!(stage.provider.is_outage(&error), "{error}");
    faults.inject(Fault::Unavailable.times(1));
    stage.provider.probe().await.unwrap_err();
    stage.provider.probe().await.unwrap();
    let wanted = ingresses().objects(&open());
    stage.api.create(&wanted.services[0]).await;
    let error = stage.ensure(&open()).await.unwrap_err();
    assert!(!stage.provider.is_outage(&error), "{error}");
}

/// Everything of an ingress is removed, and a missing object is no error.
#[tokio::test]
async fn gone_objects_are_no_error() {
    let stage = Stage::converged(&open()).await;
    assert_eq!(stage.provider.keys(), [key()]);
    let ingresses: Api<Ingress> = Api::namespaced(stage.api.user(), "ns");
    let parameters = DeleteParams::default();
    ingresses.delete("i", &parameters).await.unwrap();
    let ensured = stage.delete().await.unwrap();
    assert_eq!(
        ensured.load_balancer,
        Some(IngressLoadBalancerStatus::default())
    );
    let (service, mut slices) = Stage::names(&open());
    slices.sort();
    let expected = [
        format!("DELETE {INGRESSES}/i"),
        format!("DELETE {SLICES}/{}", slices[0]),
        format!("DELETE {SLICES}/{}", slices[1]),
        format!("DELETE {SERVICES}/{service}"),
    ];
    assert_eq!(stage.api.calls(), expected);
}

/// An ingress is not released while the gateway keeps something of it.
#[tokio::test]
async fn kept_object_delays_release() {
    let stage = Stage::converged(&open()).await;
    let deletion = format!("DELETE {INGRESSES}/i");
    stage
        .api
        .refuse(&deletion, 403, "Forbidden", "Forbidden it is");
    let error = stage.delete().await.unwrap_err();
    assert_eq!(
        error.to_string(),
        "the gateway cluster refuses Ingress ns/i: Forbidden it is"
    );
    assert_eq!(stage.api.calls(), [deletion]);
}
