use super::*;
use crate::reason::Reason;

/// An empty gateway is filled in order and a missing namespace is created.
#[tokio::test]
async fn empty_gateway_is_filled() {
    let stage = Stage::empty();
    let ensured = stage.ensure(&open()).await.unwrap();
    assert_eq!(ensured.obstacles, BTreeSet::new());
    let requests = stage.api.requests();
    let calls: Vec<&str> = requests.iter().map(|(call, _)| call.as_str()).collect();
    let expected = [
        SERVICES,
        "/api/v1/namespaces",
        SERVICES,
        SLICES,
        SLICES,
        INGRESSES,
    ];
    assert_eq!(calls, expected.map(|path| format!("POST {path}")));
    let wanted = ingresses().objects(&open());
    let sent = [2, 3, 5].map(|number: usize| requests[number].1.clone());
    let wanted = [
        serde_json::to_value(&wanted.services[0]).unwrap(),
        serde_json::to_value(&wanted.slices[0]).unwrap(),
        serde_json::to_value(&wanted.routes.unwrap()[0]).unwrap(),
    ];
    assert_eq!(sent, wanted);
}

/// A write is not repeated before the watch shows it.
#[tokio::test]
async fn unseen_write_is_not_repeated() {
    let stage = Stage::new().await;
    stage.ensure(&open()).await.unwrap();
    assert_eq!(stage.api.calls().len(), 4);
    stage.ensure(&open()).await.unwrap();
    assert_eq!(stage.api.calls(), [""; 0]);
    stage.delete().await.unwrap();
    assert_eq!(stage.api.calls().len(), 4);
    stage.delete().await.unwrap();
    assert_eq!(stage.api.calls(), [""; 0]);
}

/// A converged gateway gets no request and its addresses are passed on.
#[tokio::test]
async fn converged_gateway_gets_no_request() {
    let stage = Stage::converged(&open()).await;
    let status = json!({ "loadBalancer": { "ingress": [{ "ip": "192.0.2.1" }] } });
    let ingresses: Api<Ingress> = Api::namespaced(stage.api.user(), "ns");
    let patch = Patch::Merge(json!({ "status": status }));
    let parameters = PatchParams::default();
    let ingress = ingresses.patch_status("i", &parameters, &patch).await;
    show(&stage.provider.routes, ingress.unwrap());
    let ensured = stage.ensure(&open()).await.unwrap();
    assert_eq!(stage.api.calls(), [""; 0]);
    let load_balancer = serde_json::to_value(ensured.load_balancer).unwrap();
    assert_eq!(load_balancer, status["loadBalancer"]);
}

/// The endpoints of a blocked cluster are deleted if they are still the version seen.
#[tokio::test]
async fn blocked_endpoints_are_deleted() {
    let stage = Stage::converged(&open()).await;
    let (_, slices) = Stage::names(&open());
    let seen = stage.provider.slices.get(&Key::new("ns", &slices[0]));
    let seen = seen.unwrap().metadata.clone();
    stage.ensure(&m1_blocked()).await.unwrap();
    let preconditions = json!({
        "preconditions": { "resourceVersion": seen.resource_version.unwrap() },
        "propagationPolicy": "Background",
    });
    let expected = (format!("DELETE {SLICES}/{}", slices[0]), preconditions);
    assert_eq!(stage.api.requests(), [expected]);
}

/// The last endpoints of a Service, those of a blocked cluster, go after the first ones of another.
#[tokio::test]
async fn successors_are_written_first() {
    let alone = desired(&[("m1", Admission::Readmitted)]);
    let stage = Stage::converged(&alone).await;
    let (_, slices) = Stage::names(&alone);
    stage.ensure(&m1_blocked()).await.unwrap();
    let expected = [
        format!("POST {SLICES}"),
        format!("DELETE {SLICES}/{}", slices[0]),
    ];
    assert_eq!(stage.api.calls(), expected);
}

/// An update changes only our fields and only of the version seen.
#[tokio::test]
async fn update_changes_only_ours() {
    let stage = Stage::converged(&open()).await;
    let (service, _) = Stage::names(&open());
    let drift = json!({ "spec": { "ports": [{ "port": 79 }] } });
    let drifted: Service = stage.change(&service, drift).await;
    let version = drifted.metadata.resource_version.clone().unwrap();
    show(&stage.provider.services, drifted);
    stage.ensure(&open()).await.unwrap();
    let ports = json!([{ "port": 80, "protocol": "TCP", "targetPort": 80 }]);
    let patch = json!([
        { "op": "replace", "path": "/metadata/resourceVersion", "value": version },
        { "op": "add", "path": "/spec/ports", "value": ports },
    ]);
    assert_eq!(
        stage.api.requests(),
        [(format!("PATCH {SERVICES}/{service}"), patch)]
    );
    stage.ensure(&open()).await.unwrap();
    assert_eq!(stage.api.calls(), [""; 0]);
}

/// Returns a desired state that changes the Ingress and no longer has the endpoints of m1.
fn m1_elsewhere_with_tls() -> Desired {
    let mut desired = m1_elsewhere();
    desired.routes.tls = Some(vec![
        serde_json::from_value(json!({ "hosts": ["a.b"] })).unwrap(),
    ]);
    desired
}

/// A write that comes too late is an error and nothing is removed then.
#[tokio::test]
async fn late_write_removes_nothing() {
    let stage = Stage::converged(&open()).await;
    let unseen = json!({ "metadata": { "labels": { "a": "b" } } });
    stage.change::<Ingress>("i", unseen).await;
    let error = stage.ensure(&m1_elsewhere_with_tls()).await.unwrap_err();
    Stage::assert_stale(&error, "Ingress");
    assert_eq!(stage.api.calls(), [format!("PATCH {INGRESSES}/i")]);
}

/// Who undoes every write meets pauses and never keeps a blocked endpoint in.
#[tokio::test(start_paused = true)]
async fn contended_endpoints_still_go() {
    let stage = Stage::converged(&open()).await;
    let (service, slices) = Stage::names(&open());
    let mut contested = 0;
    for _ in 0..20 {
        let ports = json!({ "spec": { "ports": [{ "port": 81 }] } });
        show(
            &stage.provider.services,
            stage.change(&service, ports).await,
        );
        let ensured = stage.ensure(&open()).await.unwrap();
        contested += ensured.obstacles.len();
        let reasons = ensured.obstacles.iter().map(|obstacle| obstacle.reason);
        assert!(reasons.eq(ensured.obstacles.iter().map(|_| Reason::GatewayContested)));
    }
    // One read tells who it is.
    assert_eq!((stage.api.calls().len(), contested), (3 + 1, 17));

    let existing = stage
        .provider
        .slices
        .get(&Key::new("ns", &slices[0]))
        .unwrap();
    let mut again = EndpointSlice::clone(&existing);
    again.metadata.resource_version = None;
    again.metadata.uid = None;
    for _ in 0..20 {
        stage.ensure(&m1_blocked()).await.unwrap();
        show(&stage.provider.slices, stage.api.create(&again).await);
    }
    let deletion = format!("DELETE {SLICES}/{}", slices[0]);
    let calls = stage.api.calls();
    assert_eq!(calls.iter().filter(|call| **call == deletion).count(), 20);
}

/// The endpoints of a cluster that flaps return each time at once: nobody else undoes them.
#[tokio::test(start_paused = true)]
async fn flapping_endpoints_return() {
    let stage = Stage::converged(&open()).await;
    for _ in 0..20 {
        stage.ensure(&m1_blocked()).await.unwrap();
        let ensured = stage.ensure(&open()).await.unwrap();
        assert_eq!(ensured.obstacles, BTreeSet::new());
    }
}
