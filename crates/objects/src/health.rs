//! The health of an object, by its kind.

use std::fmt;

use serde_json::Value;

use crate::condition::{AnyCondition, TRUE, find};
use crate::{Metadata, group_kind};

/// The health of an object.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Health {
    /// It does its work.
    Healthy,
    /// It does not, or not yet.
    Unhealthy,
}

impl fmt::Display for Health {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Healthy => "Healthy",
            Self::Unhealthy => "Unhealthy",
        })
    }
}

/// Returns the health of an object. One of a kind without a rule is healthy.
pub fn health(object: &Value) -> Health {
    let healthy = match group_kind(object) {
        ("apps", "StatefulSet") => {
            let wanted = replicas(object);
            // A rollout that stops at a partition is complete, as `kubectl rollout status` has it.
            let kept = object.pointer("/spec/updateStrategy/rollingUpdate/partition");
            let kept = kept.and_then(Value::as_i64).unwrap_or_default();
            let is_updated = is_updated_by_hand(object)
                || status_number(object, "updatedReplicas") >= wanted - kept;
            is_observed(object)
                && is_updated
                && status_number(object, "availableReplicas") >= wanted
        }
        ("apps", "Deployment") => {
            let (wanted, updated) = (replicas(object), status_number(object, "updatedReplicas"));
            let available = status_number(object, "availableReplicas");
            let is_available = if is_paused(object) {
                available >= wanted
            } else {
                updated >= wanted && available >= updated
            };
            is_observed(object) && is_available
        }
        ("apps", "ReplicaSet") => {
            is_observed(object) && status_number(object, "availableReplicas") >= replicas(object)
        }
        ("apps", "DaemonSet") => {
            let wanted = status_number(object, "desiredNumberScheduled");
            let is_updated = is_updated_by_hand(object)
                || status_number(object, "updatedNumberScheduled") >= wanted;
            is_observed(object) && is_updated && status_number(object, "numberAvailable") >= wanted
        }
        ("", "Service") => {
            let kind = object.pointer("/spec/type").and_then(Value::as_str);
            kind != Some("LoadBalancer") || has_address(object)
        }
        ("networking.k8s.io" | "extensions", "Ingress") => has_address(object),
        ("", "PersistentVolumeClaim") => phase(object) == Some("Bound"),
        ("", "Pod") => match phase(object) {
            Some("Succeeded") => true,
            Some("Running") => is_ready(object),
            _ => false,
        },
        ("policy", "PodDisruptionBudget") => {
            status_number(object, "currentHealthy") >= status_number(object, "desiredHealthy")
        }
        _ => true,
    };
    if healthy {
        Health::Healthy
    } else {
        Health::Unhealthy
    }
}

/// Returns a number of the status; 0 if it is absent, as Kubernetes leaves zeros out.
pub fn status_number(object: &Value, name: &str) -> i64 {
    let number = object.get("status").and_then(|status| status.get(name));
    number.and_then(Value::as_i64).unwrap_or_default()
}

/// Returns the number of replicas that a workload is to have; absent means one.
pub fn replicas(workload: &Value) -> i64 {
    let replicas = workload.pointer("/spec/replicas").and_then(Value::as_i64);
    replicas.unwrap_or(1)
}

/// Returns `true` for a Deployment that somebody has paused: it is as it is to be.
pub fn is_paused(deployment: &Value) -> bool {
    deployment.pointer("/spec/paused") == Some(&Value::Bool(true))
}

/// Returns `true` if a new version runs only where somebody has deleted a Pod of an older one.
fn is_updated_by_hand(workload: &Value) -> bool {
    let strategy = workload.pointer("/spec/updateStrategy/type");
    strategy.and_then(Value::as_str) == Some("OnDelete")
}

fn phase(object: &Value) -> Option<&str> {
    object.pointer("/status/phase").and_then(Value::as_str)
}

/// Returns `true` if its controller has seen the newest spec.
pub fn is_observed(object: &Value) -> bool {
    object.generation().unwrap_or_default() == status_number(object, "observedGeneration")
}

/// Returns `true` if a load balancer answers for it.
pub fn has_address(object: &Value) -> bool {
    let list = object.pointer("/status/loadBalancer/ingress");
    let mut list = list.and_then(Value::as_array).into_iter().flatten();
    list.any(|address| {
        ["hostname", "ip"].iter().any(|name| {
            let text = address.get(name).and_then(Value::as_str);
            text.is_some_and(|text| !text.is_empty())
        })
    })
}

fn is_ready(pod: &Value) -> bool {
    let list = pod.pointer("/status/conditions").and_then(Value::as_array);
    find(list.into_iter().flatten(), "Ready").is_some_and(|ready| ready.status() == TRUE)
}

#[cfg(test)]
mod tests;
