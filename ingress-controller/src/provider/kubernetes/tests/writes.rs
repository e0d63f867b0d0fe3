use super::*;

#[tokio::test]
async fn an_empty_gateway_is_filled_in_order_and_a_missing_namespace_is_made() {
    let Stage { api, provider } = stage();
    api.answers([
        refusal(404, "NotFound"),
        (201, json!({ "metadata": { "name": "ns" } })),
    ]);
    let ensured = provider.ensure(&open()).await.unwrap();
    assert_eq!(ensured.obstacles, BTreeSet::new());
    let asked = api.asked();
    let calls: Vec<&str> = asked.iter().map(|(call, _)| call.as_str()).collect();
    let create = |path: &str| format!("POST {path}");
    let expected = [
        SERVICES,
        "/api/v1/namespaces",
        SERVICES,
        SLICES,
        SLICES,
        INGRESSES,
    ];
    assert_eq!(calls, expected.map(create));
    let wanted = provider.gateway.objects(&open());
    assert_eq!(
        asked[2].1,
        serde_json::to_value(&wanted.services[0]).unwrap()
    );
    assert_eq!(asked[3].1, serde_json::to_value(&wanted.slices[0]).unwrap());
    assert_eq!(asked[5].1, serde_json::to_value(&wanted.ingress).unwrap());
}

#[tokio::test]
async fn what_was_just_written_is_not_written_again_before_the_watch_tells_of_it() {
    let Stage { api, provider } = stage();
    provider.ensure(&open()).await.unwrap();
    assert_eq!(api.calls().len(), 4);
    provider.ensure(&open()).await.unwrap();
    assert_eq!(api.calls(), [""; 0]);
    provider.delete(&key()).await.unwrap();
    assert_eq!(api.calls().len(), 4);
    provider.delete(&key()).await.unwrap();
    assert_eq!(api.calls(), [""; 0]);
}

#[tokio::test]
async fn a_converged_gateway_gets_no_call_and_its_addresses_are_passed_on() {
    let stage = Stage::converged(&open());
    let mut ingress = (*stage.provider.ingresses.get(&key()).unwrap()).clone();
    let status = json!({ "loadBalancer": { "ingress": [{ "ip": "192.0.2.1" }] } });
    ingress.status = serde_json::from_value(status.clone()).unwrap();
    ingress.metadata.resource_version = Some("8".to_owned());
    stage
        .provider
        .ingresses
        .observe(Event::Apply(Guarded::Good(ingress)));
    let ensured = stage.provider.ensure(&open()).await.unwrap();
    assert_eq!(stage.api.calls(), [""; 0]);
    let load_balancer = serde_json::to_value(ensured.load_balancer).unwrap();
    assert_eq!(load_balancer, status["loadBalancer"]);
}

#[tokio::test]
async fn a_blocked_clusters_endpoints_are_deleted_if_they_still_are_what_they_were() {
    let Stage { api, provider } = Stage::converged(&open());
    provider.ensure(&m1_blocked()).await.unwrap();
    let (_, slices) = stage().names(&open());
    let preconditions = json!({ "preconditions": { "resourceVersion": "7", "uid": "u" } });
    let expected = (format!("DELETE {SLICES}/{}", slices[0]), preconditions);
    assert_eq!(api.asked(), [expected]);
}

#[tokio::test]
async fn a_blocked_clusters_endpoints_go_first_whatever_becomes_of_the_rest() {
    let Stage { api, provider } = Stage::converged(&open());
    let (_, slices) = stage().names(&open());
    let mut desired = m1_blocked();
    desired.backends[0].ports = Cached::Present(vec![ServicePort {
        port: 81,
        ..ServicePort::default()
    }]);
    api.answers([
        (200, json!({ "status": "Success" })),
        refusal(422, "Invalid"),
    ]);
    let ensured = provider.ensure(&desired).await.unwrap();
    assert_eq!(ensured.obstacles.len(), 1);
    let (service, _) = stage().names(&open());
    let expected = [
        format!("DELETE {SLICES}/{}", slices[0]),
        format!("PATCH {SERVICES}/{service}"),
    ];
    assert_eq!(api.calls(), expected);
}

#[tokio::test]
async fn an_update_changes_only_our_parts_and_only_of_what_was_seen() {
    let stage = Stage::converged(&open());
    let (service, _) = stage.names(&open());
    let mut drifted = (*stage
        .provider
        .services
        .get(&Key::new("ns", &service))
        .unwrap())
    .clone();
    drifted.metadata.resource_version = Some("8".to_owned());
    let wanted = drifted.clone();
    drifted.spec.as_mut().unwrap().ports = None;
    let kept = &stage.provider.services;
    kept.observe(Event::Apply(Guarded::Good(drifted)));
    let mut stored = serde_json::to_value(&wanted).unwrap();
    stored["metadata"]["resourceVersion"] = json!("9");
    stage.api.answers([(200, stored)]);
    stage.provider.ensure(&open()).await.unwrap();
    let ports = json!([{ "port": 80, "protocol": "TCP", "targetPort": 80 }]);
    let patch = json!([
        { "op": "replace", "path": "/metadata/resourceVersion", "value": "8" },
        { "op": "add", "path": "/spec/ports", "value": ports },
    ]);
    assert_eq!(
        stage.api.asked(),
        [(format!("PATCH {SERVICES}/{service}"), patch)]
    );
    stage.provider.ensure(&open()).await.unwrap();
    assert_eq!(stage.api.calls(), [""; 0]);
}

#[tokio::test]
async fn a_write_that_comes_too_late_is_an_error_and_nothing_is_removed_then() {
    let Stage { api, provider } = Stage::converged(&open());
    let mut desired = m1_elsewhere();
    desired.routes.tls = Some(vec![
        serde_json::from_value(json!({ "hosts": ["a.b"] })).unwrap(),
    ]);
    api.answers([refusal(409, "Conflict")]);
    let error = provider.ensure(&desired).await.unwrap_err();
    assert!(
        matches!(
            error,
            ProviderError::Stale {
                kind: "Ingress",
                ..
            }
        ),
        "{error}"
    );
    assert_eq!(api.calls(), [format!("PATCH {INGRESSES}/i")]);
}

#[tokio::test]
async fn endpoints_refused_for_another_reason_are_removed_after_the_rest_is_in_place() {
    let Stage { api, provider } = Stage::converged(&open());
    let mut desired = m1_elsewhere();
    desired.routes.tls = Some(vec![
        serde_json::from_value(json!({ "hosts": ["a.b"] })).unwrap(),
    ]);
    let (_, slices) = stage().names(&open());
    let stored = json!({ "metadata": { "name": "i", "namespace": "ns" } });
    api.answers([(200, stored), (200, json!({ "status": "Success" }))]);
    provider.ensure(&desired).await.unwrap();
    let expected = [
        format!("PATCH {INGRESSES}/i"),
        format!("DELETE {SLICES}/{}", slices[0]),
    ];
    assert_eq!(api.calls(), expected);
}
