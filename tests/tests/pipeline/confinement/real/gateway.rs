//! The ingress-controller in the gateway cluster.

use pipeline_tests::{
    control_plane::{ApiKind, ControlPlane},
    crds,
    fleet::isolated,
    manifests, test_name,
};
use serde_json::{Value, json};

use super::super::{Attempt, allowed, attempt, named, play, send, until_refused};

const THEIR_ROUTE: &str = "/apis/gateway.networking.k8s.io/v1/namespaces/shop/httproutes/theirs";

fn of_ingress_controller_in_gateway() -> Vec<Attempt> {
    let own = "the ingress-controller writes what it made only";
    let services = "/api/v1/namespaces/shop/services";
    let secrets = "/api/v1/namespaces/shop/secrets";
    let taken = json!({ "metadata": { "labels": {
        "app.kubernetes.io/managed-by": "karmada-rs.io_ingress-controller" } } });
    let service = |manager: &str| {
        json!({ "metadata": { "name": "own", "labels": { "app.kubernetes.io/managed-by": manager } },
            "spec": { "ports": [{ "port": 80 }] } })
    };
    vec![
        attempt("POST", services, service("somebody"), own),
        attempt("PATCH", &format!("{services}/theirs"), taken, own),
        attempt("DELETE", &format!("{services}/theirs"), Value::Null, own),
        attempt(
            "DELETE",
            "/apis/networking.k8s.io/v1/namespaces/shop/ingresses/theirs",
            Value::Null,
            own,
        ),
        attempt("POST", secrets, named("own", &json!({})), own),
        attempt("DELETE", THEIR_ROUTE, Value::Null, own),
        attempt(
            "GET",
            "/api/v1/namespaces/shop/configmaps",
            Value::Null,
            "cannot list resource",
        ),
        allowed(
            "POST",
            services,
            service("karmada-rs.io_ingress-controller"),
        ),
        allowed("DELETE", &format!("{services}/own"), Value::Null),
    ]
}

/// In the gateway cluster, the token of the ingress-controller reaches nothing that others made.
#[test]
fn stolen_token_spares_the_gateway() {
    isolated(test_name!(), async || {
        let gateway = ControlPlane::start("gateway", ApiKind::Real).await?;
        for namespace in ["karmada-rs", "shop"] {
            gateway.namespace(namespace).await?;
        }
        let kind = ("gateway.networking.k8s.io", "HTTPRoute", "httproutes");
        let kind = crds::definition(kind.0, kind.1, kind.2, &json!({}))?;
        crds::apply(&gateway.client(), &[kind]).await?;
        let backend = json!({ "service": { "name": "theirs", "port": { "number": 80 } } });
        for (path, spec) in [
            (
                "/api/v1/namespaces/shop/services",
                json!({ "ports": [{ "port": 80 }] }),
            ),
            (
                "/apis/networking.k8s.io/v1/namespaces/shop/ingresses",
                json!({ "defaultBackend": backend }),
            ),
            (
                "/apis/gateway.networking.k8s.io/v1/namespaces/shop/httproutes",
                json!({}),
            ),
        ] {
            send(
                &gateway.client(),
                "POST",
                path,
                &named("theirs", &json!({ "spec": spec })),
            )
            .await?;
        }
        for rights in [
            "gateway/ingress-controller.yaml",
            "gateway-api/rights.yaml",
            "tls-secrets/gateway.yaml",
        ] {
            manifests::apply(&gateway.client(), rights).await?;
        }
        gateway
            .guard(["admission/gateway/ingress-controller.yaml"])
            .await?;
        let account = "system:serviceaccount:karmada-rs:ingress-controller";
        let client = gateway.client_for(account).await?;
        let foreign = "/api/v1/namespaces/shop/services/theirs?dryRun=All";
        until_refused(
            &client,
            "DELETE",
            foreign,
            &Value::Null,
            "writes what it made only",
        )
        .await;
        play(&gateway, account, of_ingress_controller_in_gateway()).await?;
        Ok(())
    });
}
