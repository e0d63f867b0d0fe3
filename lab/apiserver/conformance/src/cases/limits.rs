//! The limits of the embedded server: a Kubernetes API passes these cases, and the embedded server fails
//! each of them. The README of the embedded server lists them.

use anyhow::Result;
use http::Method;
use serde_json::json;

use crate::{
    definitions::{GROUP, definition, serve},
    server::{JSON, Server},
};

pub(super) async fn rights_are_checked(server: Server) -> Result<()> {
    let path = server.config_maps().await?;
    let headers = [("Accept", JSON), ("Impersonate-User", "nobody")];
    let response = server.send(Method::GET, &path, &headers, "").await?;
    response.refused(403, "Forbidden").map(drop)
}

pub(super) async fn the_caller_has_a_name(server: Server) -> Result<()> {
    let path = "/apis/authentication.k8s.io/v1/selfsubjectreviews";
    let review = json!({ "apiVersion": "authentication.k8s.io/v1", "kind": "SelfSubjectReview" });
    let review = server.create(path, &review).await?;
    let name = &review["status"]["userInfo"]["username"];
    check!(name.as_str().is_some_and(|name| !name.is_empty()), name);
    Ok(())
}

/// A webhook can refuse an object.
pub(super) async fn webhook_can_refuse(server: Server) -> Result<()> {
    let maps = server.config_maps().await?;
    let selector = json!({ "matchLabels": { "kubernetes.io/metadata.name": server.name } });
    let webhook = json!({
        "apiVersion": "admissionregistration.k8s.io/v1", "kind": "ValidatingWebhookConfiguration",
        "metadata": { "name": server.name },
        "webhooks": [{
            // Nothing listens there.
            "name": "unreachable.example.com", "clientConfig": { "url": "https://127.0.0.1:1/" },
            "rules": [{ "apiGroups": [""], "apiVersions": ["v1"], "operations": ["CREATE"], "resources": ["configmaps"] }],
            "namespaceSelector": selector, "failurePolicy": "Fail", "sideEffects": "None",
            "admissionReviewVersions": ["v1"], "timeoutSeconds": 5,
        }],
    });
    let path = "/apis/admissionregistration.k8s.io/v1/validatingwebhookconfigurations";
    server.create(path, &webhook).await?;
    let map =
        json!({ "apiVersion": "v1", "kind": "ConfigMap", "metadata": { "generateName": "a" } });
    let response = server
        .send_until(Method::POST, &maps, &map.to_string(), |response| {
            response.code == 500
        })
        .await?;
    check!(
        response.text.contains("failed calling webhook"),
        response.text
    );
    Ok(())
}

pub(super) async fn rules_in_cel_are_evaluated(server: Server) -> Result<()> {
    let rule = json!([{ "rule": "self.spec.low <= self.spec.high", "message": "low is too high" }]);
    let number = json!({ "type": "integer" });
    let spec = json!({
        "type": "object", "required": ["low", "high"], "properties": { "low": number, "high": number },
    });
    let version = json!({
        "name": "v1", "served": true, "storage": true,
        "schema": { "openAPIV3Schema": {
            "type": "object", "required": ["spec"], "properties": { "spec": spec },
            "x-kubernetes-validations": rule,
        } },
    });
    serve(
        &server,
        &definition("Namespaced", "ranges", "Range", &version),
    )
    .await?;
    let path = server
        .collection(&format!("apis/{GROUP}/v1"), "ranges")
        .await?;
    let range = json!({
        "apiVersion": format!("{GROUP}/v1"), "kind": "Range", "metadata": { "name": "a" },
        "spec": { "low": 2, "high": 1 },
    });
    let message = server.post(&path, &range).await?.refused(422, "Invalid")?;
    check!(message.contains("low is too high"), message);
    Ok(())
}

/// A custom resource can be scaled.
pub(super) async fn custom_resource_can_scale(server: Server) -> Result<()> {
    let spec = json!({ "type": "object", "properties": { "replicas": { "type": "integer" } } });
    let version = json!({
        "name": "v1", "served": true, "storage": true,
        "subresources": { "scale": {
            "specReplicasPath": ".spec.replicas", "statusReplicasPath": ".status.replicas",
        } },
        "schema": { "openAPIV3Schema": { "type": "object", "properties": { "spec": spec } } },
    });
    serve(
        &server,
        &definition("Namespaced", "crowds", "Crowd", &version),
    )
    .await?;
    let path = server
        .collection(&format!("apis/{GROUP}/v1"), "crowds")
        .await?;
    let crowd = json!({
        "apiVersion": format!("{GROUP}/v1"), "kind": "Crowd", "metadata": { "name": "a" },
        "spec": { "replicas": 3 },
    });
    server.create(&path, &crowd).await?;
    let scale = server.get(&format!("{path}/a/scale")).await?.expect(200)?;
    check_eq!(
        (&scale["kind"], &scale["spec"]["replicas"]),
        (&json!("Scale"), &json!(3))
    );
    Ok(())
}

/// Every kind of a cluster is served.
pub(super) async fn every_kind_is_served(server: Server) -> Result<()> {
    for path in [
        "/api/v1/pods",
        "/apis/apps/v1/statefulsets",
        "/apis/batch/v1/jobs",
        "/apis/apiregistration.k8s.io/v1/apiservices",
        "/apis/flowcontrol.apiserver.k8s.io/v1/flowschemas",
        "/apis/networking.k8s.io/v1/networkpolicies",
    ] {
        server.get(path).await?.expect(200)?;
    }
    Ok(())
}

pub(super) async fn a_node_port_is_allocated(server: Server) -> Result<()> {
    let path = server.collection("api/v1", "services").await?;
    let service = json!({
        "apiVersion": "v1", "kind": "Service", "metadata": { "name": "a" },
        "spec": { "type": "NodePort", "ports": [{ "port": 80 }] },
    });
    let created = server.create(&path, &service).await?;
    let port = &created["spec"]["ports"][0]["nodePort"];
    check!(port.as_u64().is_some_and(|port| port > 0), created);
    Ok(())
}

pub(super) async fn responses_may_be_protobuf(server: Server) -> Result<()> {
    const PROTOBUF: &str = "application/vnd.kubernetes.protobuf";
    let path = server.config_maps().await?;
    let response = server.get_as(&path, PROTOBUF).await?;
    let type_ = response.headers.get("content-type");
    check_eq!(type_.and_then(|type_| type_.to_str().ok()), Some(PROTOBUF));
    Ok(())
}

/// Schemas are served in OpenAPI 2.
pub(super) async fn openapi_2_is_served(server: Server) -> Result<()> {
    let document = server.get("/openapi/v2").await?.expect(200)?;
    check_eq!(document["swagger"], "2.0");
    Ok(())
}

pub(super) async fn a_request_has_a_priority(server: Server) -> Result<()> {
    let response = server.get("/api/v1/namespaces").await?;
    let schema = response.headers.get("x-kubernetes-pf-flowschema-uid");
    check!(schema.is_some(), response.headers);
    Ok(())
}
