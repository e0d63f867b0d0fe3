//! Our entries of `status.parents`. Those of other controllers are never touched: the list is one value for the API server,
//! so each write names the places of our own entries, and holds for the version in which they were found there.

use std::net::IpAddr;

use jiff::Timestamp;
use k8s_openapi::api::networking::v1::{IngressLoadBalancerIngress, IngressLoadBalancerStatus};
use karmada_api::gateway_api::{HttpRoute, ParentReference, RouteParentStatus};
use karmada_api::{MultiClusterIngressStatus, ServiceLocation};
use objects::condition::{TRUE, find, upsert};
use objects::message::{LONGEST, bounded};
use objects::patch::JsonPatch;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use super::attachment::Parent;
use super::entries::{has_entry, is_same_parent, own_entries};
use super::refusal::Refusal;
use super::said::{ACCEPTED, RESOLVED_REFS, Said};
use crate::ingress::class::ControllerName;
use crate::ingress::plan::StatusPatch;

/// Our condition for the clusters that a Remedy blocks: its message has their names.
const TRAFFIC_BLOCKED: &str = "networking.karmada-rs.io/TrafficBlocked";
/// Our condition for the clusters in which the Services run.
const LOCATED: &str = "networking.karmada-rs.io/Located";
/// Our condition for the addresses of the load balancer.
const LOAD_BALANCED: &str = "networking.karmada-rs.io/LoadBalanced";

/// The content of our entries about a route.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct RouteReport {
    /// The parents that have an entry.
    parents: Vec<ParentReference>,
    /// The generation of the route.
    generation: Option<i64>,
    conditions: Vec<Said>,
}

impl RouteReport {
    /// Creates a report that says nothing at the `parents` of a route. The default one has no parents: our entries go.
    pub fn new(route: &HttpRoute, parents: &[Parent<'_>]) -> Self {
        Self {
            parents: parents
                .iter()
                .map(|parent| parent.reference.clone())
                .collect(),
            generation: route.metadata.generation,
            conditions: Vec::new(),
        }
    }

    /// Adds whether the route is served as it is, and which of its Services have no template.
    #[must_use]
    pub fn with_verdict(mut self, refusal: Option<&Refusal>, missing: &[&str]) -> Self {
        match refusal {
            None => self.say(ACCEPTED, true, "Accepted", String::new()),
            Some(refusal) => {
                let reason = match refusal.also {
                    None => refusal.reason,
                    Some(_) => "UnsupportedValue",
                };
                self.say(ACCEPTED, false, reason, refusal.message.clone());
            }
        }
        match refusal.filter(|refusal| refusal.also == Some(RESOLVED_REFS)) {
            Some(refusal) => {
                self.say(
                    RESOLVED_REFS,
                    false,
                    refusal.reason,
                    refusal.message.clone(),
                );
            }
            None if missing.is_empty() => {
                self.say(RESOLVED_REFS, true, "ResolvedRefs", String::new());
            }
            None => {
                let message = format!("no such Service in this namespace: {}", missing.join(", "));
                self.say(RESOLVED_REFS, false, "BackendNotFound", message);
            }
        }
        self
    }

    /// Adds where the Services run, and which clusters are blocked.
    #[must_use]
    pub fn with_traffic(mut self, status: &StatusPatch) -> Self {
        let blocked = status.traffic_block_clusters.as_deref().unwrap_or_default();
        let message = joined(blocked.iter().cloned(), ", ");
        match blocked {
            [] => self.say(TRAFFIC_BLOCKED, false, "NoClusterBlocked", message),
            _ => self.say(TRAFFIC_BLOCKED, true, "ClusterBlocked", message),
        }
        let locations = status.service_locations.as_deref().unwrap_or_default();
        let shown = locations.iter().map(|location| {
            let clusters = location.clusters.as_deref().unwrap_or_default();
            format!("{}: {}", location.name, clusters.join(", "))
        });
        let message = joined(shown, "; ");
        match locations {
            [] => self.say(LOCATED, false, "NotPropagated", message),
            _ => self.say(LOCATED, true, "Propagated", message),
        }
        self
    }

    /// Adds the addresses of the load balancer.
    #[must_use]
    pub fn with_addresses(mut self, addresses: Option<&IngressLoadBalancerStatus>) -> Self {
        let message = addresses.map(shown_addresses).unwrap_or_default();
        if message.is_empty() {
            self.say(LOAD_BALANCED, false, "NoAddress", message);
        } else {
            self.say(LOAD_BALANCED, true, "AddressAssigned", message);
        }
        self
    }

    /// Adds a condition, with as much of its message as the API takes: for a longer one it refuses the whole status.
    fn say(&mut self, kind: &'static str, is_true: bool, reason: &'static str, message: String) {
        self.conditions.push(Said {
            kind,
            is_true,
            reason,
            message: bounded(message),
        });
    }

    /// Returns `true` if the status of `route` says this already.
    pub fn is_shown(&self, route: &HttpRoute, controller: &ControllerName) -> bool {
        let status = json!(route.status);
        // The moment decides nothing: a condition keeps its own unless its status changes.
        self.patch(&status, controller, Timestamp::UNIX_EPOCH)
            .is_empty()
    }

    /// Returns the write that makes our entries in `status`, that of a route, say this. It needs a guard.
    pub fn patch(&self, status: &Value, controller: &ControllerName, now: Timestamp) -> JsonPatch {
        let listed = status["parents"].as_array();
        let mut steps = JsonPatch::default();
        let mut missing: Vec<&ParentReference> = self.parents.iter().collect();
        let mut stale = Vec::new();
        for (place, entry) in listed.into_iter().flatten().enumerate() {
            let Some(entry) = own(entry, controller) else {
                continue;
            };
            let place = place.to_string();
            let known = missing
                .iter()
                .position(|parent| is_same_parent(parent, &entry.parent_ref));
            let Some(known) = known else {
                stale.push(place);
                continue;
            };
            missing.remove(known);
            let wanted = self.entry(entry.clone(), now);
            if wanted != entry {
                steps.replace(["status", "parents", &place], json!(wanted));
            }
        }
        // From the end, so that no place moves before it is named.
        for place in stale.iter().rev() {
            steps.remove(["status", "parents", place]);
        }
        let added = missing.into_iter().map(|parent| {
            let entry = RouteParentStatus {
                controller_name: controller.as_str().to_owned(),
                parent_ref: parent.clone(),
                conditions: Vec::new(),
            };
            self.entry(entry, now)
        });
        let added: Vec<RouteParentStatus> = added.collect();
        if added.is_empty() {
            return steps;
        }
        if listed.is_some() {
            for entry in &added {
                steps.add(["status", "parents", "-"], json!(entry));
            }
        } else if status.is_object() {
            steps.add(["status", "parents"], json!(added));
        } else {
            steps.add(["status"], json!({ "parents": added }));
        }
        steps
    }

    /// Returns `entry` with these conditions. Others in it stay, of the same generation from now on.
    fn entry(&self, mut entry: RouteParentStatus, now: Timestamp) -> RouteParentStatus {
        for said in &self.conditions {
            let condition = said.condition(&entry.conditions, self.generation, now);
            upsert(&mut entry.conditions, condition);
        }
        for condition in &mut entry.conditions {
            condition.observed_generation = self.generation;
        }
        entry
    }
}

/// Returns an entry if it is ours.
fn own(entry: &Value, controller: &ControllerName) -> Option<RouteParentStatus> {
    let entry = RouteParentStatus::deserialize(entry).ok()?;
    (entry.controller_name == controller.as_str()).then_some(entry)
}

/// Returns the controller of ours that tells where the Services of `route` run.
pub(super) fn reporter(route: &HttpRoute) -> Option<ControllerName> {
    let mut entries = route.status.iter().flat_map(|status| &status.parents);
    let entry = entries.find(|entry| find(&entry.conditions, LOCATED).is_some())?;
    entry.controller_name.parse().ok()
}

/// Returns the content of our entries, as the status of an ingress has it.
pub(super) fn shown(
    route: &HttpRoute,
    controller: &ControllerName,
) -> Option<MultiClusterIngressStatus> {
    let message = |kind: &str| {
        let conditions = own_entries(route, controller).flat_map(|entry| &entry.conditions);
        let condition = find(conditions, kind)?;
        (condition.status == TRUE).then_some(condition.message.as_str())
    };
    has_entry(route, controller).then(|| MultiClusterIngressStatus {
        load_balancer: message(LOAD_BALANCED).map(read_addresses),
        traffic_block_clusters: message(TRAFFIC_BLOCKED).map(names),
        service_locations: message(LOCATED).map(read_locations),
    })
}

/// Returns addresses as they are read back from our entries, without ports.
pub fn as_shown(addresses: &IngressLoadBalancerStatus) -> IngressLoadBalancerStatus {
    read_addresses(&shown_addresses(addresses))
}

fn shown_addresses(addresses: &IngressLoadBalancerStatus) -> String {
    let entries = addresses.ingress.iter().flatten();
    let texts = entries.filter_map(|entry| entry.ip.clone().or_else(|| entry.hostname.clone()));
    joined(texts, ", ")
}

fn read_addresses(message: &str) -> IngressLoadBalancerStatus {
    let entries = names(message).into_iter().map(|address| {
        let (ip, hostname) = if address.parse::<IpAddr>().is_ok() {
            (Some(address), None)
        } else {
            (None, Some(address))
        };
        IngressLoadBalancerIngress {
            ip,
            hostname,
            ports: None,
        }
    });
    let entries: Vec<_> = entries.collect();
    IngressLoadBalancerStatus {
        ingress: Some(entries).filter(|entries| !entries.is_empty()),
    }
}

fn read_locations(message: &str) -> Vec<ServiceLocation> {
    let locations = message.split(';').filter_map(|one| {
        let (service, clusters) = one.split_once(':')?;
        Some(ServiceLocation {
            name: service.trim().to_owned(),
            clusters: Some(names(clusters)).filter(|clusters| !clusters.is_empty()),
        })
    });
    locations.collect()
}

fn names(message: &str) -> Vec<String> {
    let names = message.split(',').map(str::trim);
    names
        .filter(|name| !name.is_empty())
        .map(str::to_owned)
        .collect()
}

/// Joins as many texts as the message of a condition takes.
fn joined(texts: impl IntoIterator<Item = String>, separator: &str) -> String {
    let mut message = String::new();
    for text in texts {
        if message.len() + separator.len() + text.len() > LONGEST {
            break;
        }
        if !message.is_empty() {
            message.push_str(separator);
        }
        message.push_str(&text);
    }
    message
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A route may name more Services than the message of a condition takes.
    #[test]
    fn long_message_is_cut() {
        let missing = ["é".repeat(LONGEST)];
        let missing = missing.each_ref().map(String::as_str);
        let report = RouteReport::default().with_verdict(None, &missing);
        let told = report.conditions.iter().map(|said| said.message.len());
        // Half of a character would be none.
        assert_eq!(told.max(), Some(LONGEST - 1));
    }
}
