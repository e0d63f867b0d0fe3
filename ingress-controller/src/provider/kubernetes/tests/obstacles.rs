use super::*;

#[tokio::test]
async fn an_object_without_our_label_is_a_clash_and_the_rest_goes_on() {
    let Stage { api, provider } = stage();
    let (service, _) = stage().names(&open());
    let theirs = json!({ "metadata": { "name": service, "namespace": "ns" } });
    api.answers([refusal(409, "AlreadyExists"), (200, theirs)]);
    let ensured = provider.ensure(&open()).await.unwrap();
    let clash = Obstacle::Clash(Clash {
        kind: "Service",
        key: Key::new("ns", &service),
    });
    assert_eq!(ensured.obstacles, [clash].into());
    let expected = [
        format!("POST {SERVICES}"),
        format!("GET {SERVICES}/{service}"),
        format!("POST {SLICES}"),
        format!("POST {SLICES}"),
        format!("POST {INGRESSES}"),
    ];
    assert_eq!(api.calls(), expected);
}

#[tokio::test]
async fn an_object_of_ours_that_the_watch_has_not_told_of_is_taken_up_with_the_next_try() {
    let Stage { api, provider } = stage();
    let wanted = provider.gateway.objects(&open());
    let stored = serde_json::to_value(&wanted.services[0]).unwrap();
    api.answers([refusal(409, "AlreadyExists"), (200, stored)]);
    let error = provider.ensure(&open()).await.unwrap_err();
    assert!(
        matches!(
            error,
            ProviderError::Stale {
                kind: "Service",
                ..
            }
        ),
        "{error}"
    );
    assert_eq!(api.calls().len(), 5);
    provider.ensure(&open()).await.unwrap();
    assert_eq!(api.calls(), [""; 0]);
}

#[tokio::test]
async fn an_ingress_that_the_gateway_refuses_is_told_of_with_its_reason() {
    let Stage { api, provider } = Stage::converged(&open());
    let mut desired = open();
    desired.routes.default_backend = None;
    desired.routes.rules = Some(vec![
        serde_json::from_value(json!({ "host": "a..b" })).unwrap(),
    ]);
    api.answers([refusal(422, "Invalid")]);
    let ensured = provider.ensure(&desired).await.unwrap();
    let told: Vec<String> = ensured.obstacles.iter().map(Obstacle::to_string).collect();
    assert_eq!(
        told,
        ["the gateway cluster refuses Ingress ns/i: Invalid it is"]
    );
    assert_eq!(api.calls(), [format!("PATCH {INGRESSES}/i")]);
}

#[tokio::test]
async fn when_the_gateway_is_not_to_be_reached_one_failed_write_is_enough() {
    let Stage { api, provider } = stage();
    api.answers([refusal(503, "ServiceUnavailable")]);
    let error = provider.ensure(&open()).await.unwrap_err();
    assert!(
        matches!(
            error,
            ProviderError::Write {
                kind: "Service",
                ..
            }
        ),
        "{error}"
    );
    assert_eq!(api.calls(), [format!("POST {SERVICES}")]);
}

#[tokio::test]
async fn everything_of_an_ingress_is_removed_and_what_is_gone_already_is_no_error() {
    let Stage { api, provider } = Stage::converged(&open());
    assert_eq!(provider.keys(), [key()]);
    api.answers([refusal(404, "NotFound")]);
    let ensured = provider.delete(&key()).await.unwrap();
    assert_eq!(
        ensured.load_balancer,
        Some(IngressLoadBalancerStatus::default())
    );
    let (service, mut slices) = stage().names(&open());
    slices.sort();
    let expected = [
        format!("DELETE {INGRESSES}/i"),
        format!("DELETE {SLICES}/{}", slices[0]),
        format!("DELETE {SLICES}/{}", slices[1]),
        format!("DELETE {SERVICES}/{service}"),
    ];
    assert_eq!(api.calls(), expected);
}

#[tokio::test]
async fn an_ingress_is_not_let_go_while_the_gateway_keeps_something_of_it() {
    let Stage { api, provider } = Stage::converged(&open());
    api.answers([refusal(403, "Forbidden")]);
    let error = provider.delete(&key()).await.unwrap_err();
    assert_eq!(
        error.to_string(),
        "the gateway cluster refuses Ingress ns/i: Forbidden it is"
    );
    assert_eq!(api.calls(), [format!("DELETE {INGRESSES}/i")]);
}
