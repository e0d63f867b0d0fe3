//! The writes of everybody but our programs: users, agents, Karmada, other controllers.

use anyhow::Result;
use http::Method;
use serde_json::{Value, json};

use super::apis::Apis;
use super::kinds::{Kind, Side};
use super::model;
use super::objects::{self, condition_type, ingress_name, service_name};
use super::step::ConditionState;
use crate::harness::access::Access;
use crate::harness::clusters;
use crate::harness::value::{is_deleting, items};

/// The finalizer of another controller on ingresses.
const HOLD: &str = "example.com/hold";

/// Reports a condition of a cluster, or removes it.
pub(crate) async fn set_condition(
    apis: &Apis,
    cluster: u8,
    reporter: bool,
    verdict: Option<ConditionState>,
) -> Result<()> {
    let name = clusters::name(cluster);
    let Some(found) = apis.object(Kind::Cluster, &name).await? else {
        return Ok(());
    };
    let kind = condition_type(reporter);
    let mut conditions: Vec<Value> = items(&found, "/status/conditions")
        .filter(|c| c["type"] != kind)
        .cloned()
        .collect();
    if let Some(verdict) = verdict {
        conditions.push(objects::condition(reporter, verdict));
    }
    let path = format!("{}/status", Kind::Cluster.path(&name));
    let body = json!({ "status": { "conditions": conditions } });
    apis.access(Side::Karmada).patch(&path, &body).await
}

/// Adds the finalizer of another controller to an ingress, or removes it.
pub(crate) async fn hold(apis: &Apis, name: &str, held: bool) -> Result<()> {
    let kind = Kind::MultiClusterIngress;
    if !held {
        return remove_finalizer(apis, kind, name, HOLD).await;
    }
    let Some(found) = apis.object(kind, name).await? else {
        return Ok(());
    };
    if is_deleting(&found) || model::carries(&found, HOLD) {
        return Ok(());
    }
    let mut finalizers: Vec<&Value> = items(&found, "/metadata/finalizers").collect();
    let ours = json!(HOLD);
    finalizers.push(&ours);
    let body = json!({ "metadata": { "finalizers": finalizers } });
    apis.access(Side::Karmada)
        .patch(&kind.path(name), &body)
        .await
}

/// Removes a finalizer; from a cluster, only once that is being deleted.
pub(crate) async fn remove_finalizer(
    apis: &Apis,
    kind: Kind,
    name: &str,
    finalizer: &str,
) -> Result<()> {
    let Some(found) = apis.object(kind, name).await? else {
        return Ok(());
    };
    if kind == Kind::Cluster && !is_deleting(&found) {
        return Ok(());
    }
    let rest: Vec<&Value> = items(&found, "/metadata/finalizers")
        .filter(|f| **f != finalizer)
        .collect();
    let body = json!({ "metadata": { "finalizers": rest } });
    apis.access(Side::Karmada)
        .patch(&kind.path(name), &body)
        .await
}

/// Binds a Service to clusters, and reports it as applied in some.
pub(crate) async fn bind(apis: &Apis, service: u8, to: u8, applied: u8) -> Result<()> {
    let service = service_name(service);
    let name = model::binding_name(service);
    let applied: Vec<Value> = clusters::names(applied)
        .iter()
        .map(|name| json!({ "clusterName": name, "applied": true }))
        .collect();
    apis.put(Kind::Binding, &name, objects::binding(service, to))
        .await?;
    let path = format!("{}/status", Kind::Binding.path(&name));
    let body = json!({ "status": { "aggregatedStatus": applied } });
    apis.access(Side::Karmada).patch(&path, &body).await
}

/// Gives the template of a Service other ports, or deletes it.
pub(crate) async fn template(apis: &Apis, service: u8, ports: Option<u8>) -> Result<()> {
    let name = service_name(service);
    match ports {
        None => apis.delete(Kind::Service, name).await,
        Some(ports) => {
            let found = apis.object(Kind::Service, name).await?.unwrap_or_default();
            // The API server sets other fields, and some of them are immutable.
            let mut spec = found["spec"].clone();
            spec["ports"] = objects::service_ports(ports);
            apis.put(Kind::Service, name, json!({ "spec": spec })).await
        }
    }
}

/// Collects the endpoints of a Service from a cluster, or deletes those that were collected.
pub(crate) async fn collect(
    apis: &Apis,
    service: u8,
    cluster: u8,
    endpoints: Option<u8>,
) -> Result<()> {
    let name = format!(
        "imported-{}-{}",
        clusters::name(cluster),
        service_name(service)
    );
    let Some(endpoints) = endpoints else {
        return apis.delete(Kind::EndpointSlice, &name).await;
    };
    let object = objects::endpoint_slice(service, cluster, endpoints);
    apis.put(Kind::EndpointSlice, &name, object).await
}

/// Sets or clears the address of an ingress at the gateway.
pub(crate) async fn set_address(apis: &Apis, ingress: u8, served: bool) -> Result<()> {
    let balancer = if served {
        json!({ "ingress": [{ "ip": format!("192.0.2.{ingress}") }] })
    } else {
        json!({})
    };
    let path = format!(
        "{}/status",
        Kind::GatewayIngress.path(&ingress_name(ingress))
    );
    // A merge patch alone would keep fields that `balancer` lacks.
    let body = json!({ "status": { "loadBalancer": null } });
    let access = apis.access(Side::Gateway);
    access.patch(&path, &body).await?;
    let body = json!({ "status": { "loadBalancer": balancer } });
    access.patch(&path, &body).await
}

/// Replaces the spec of an object. Returns `false` if the server refuses it, as a real one does with
/// one that does not fit its schema.
pub(crate) async fn write_spec(apis: &Apis, kind: Kind, name: &str, spec: &Value) -> Result<bool> {
    let access = apis.access(kind.side());
    let body = json!({ "spec": spec });
    let (status, _) = access.send(Method::PATCH, &kind.path(name), &body).await?;
    Ok(status.is_success())
}

/// Deletes one of our objects in the gateway, if there are any.
pub(crate) async fn delete_from_gateway(apis: &Apis, nth: u8) -> Result<()> {
    let objects = apis.objects().await?;
    let ours = objects.keys();
    let ours = ours.filter(|(kind, _)| kind.side() == Side::Gateway);
    let ours: Vec<_> = ours.collect();
    if ours.is_empty() {
        return Ok(());
    }
    let (kind, name) = ours[usize::from(nth) % ours.len()];
    apis.delete(*kind, name).await
}
