use std::collections::{BTreeMap, BTreeSet};

use jiff::Timestamp;
use karmada_api::Condition;
use karmada_api::gateway_api::{
    GROUP, Gateway, HttpRoute, Listener, ListenerStatus, RouteGroupKind,
};
use objects::Key;
use objects::condition::{find, upsert};
use objects::patch::JsonPatch;
use serde::Serialize;
use serde_json::json;

use super::attachment::{ParentFacts, attachment, owner_of};
use super::listeners::{
    SELECTS, attached, certificates, is_route, is_secret, kinds, passes_tls, selects, speaks_http,
    takes_routes,
};
use super::said::{ACCEPTED, RESOLVED_REFS, Said};
use crate::cached::Cached;
use crate::ingress::class::{ControllerName, Ownership};

/// The condition about whether an object is served.
const PROGRAMMED: &str = "Programmed";

/// The conditions and listeners in the status of a Gateway of ours.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct GatewayReport {
    /// The generation of the Gateway.
    generation: Option<i64>,
    conditions: [Said; 2],
    listeners: Vec<ListenerReport>,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
struct ListenerReport {
    name: String,
    takes_routes: bool,
    attached_routes: i32,
    conditions: [Said; 3],
}

/// Reports on `gateway`, whose routes `accepted` are served. Returns `None` unless its class has our `controller`.
pub fn gateway_report<'a>(
    gateway: &Gateway,
    accepted: impl IntoIterator<Item = &'a HttpRoute>,
    facts: &'a impl ParentFacts,
    controller: &ControllerName,
) -> Option<GatewayReport> {
    if owner_of(Cached::Present(gateway), facts, controller) != Ownership::Ours {
        return None;
    }
    let attached = attached_routes(&Key::of(gateway), accepted, facts, controller);
    let listeners = gateway.spec.listeners.iter();
    let listeners = listeners.map(|listener| {
        let attached = attached.get(listener.name.as_str()).copied();
        ListenerReport::new(listener, attached.unwrap_or_default())
    });
    let listeners: Vec<ListenerReport> = listeners.collect();
    Some(GatewayReport {
        generation: gateway.metadata.generation,
        conditions: summary(&listeners),
        listeners,
    })
}

/// Returns the number of routes at each listener of a Gateway that has any.
fn attached_routes<'a>(
    gateway: &Key,
    accepted: impl IntoIterator<Item = &'a HttpRoute>,
    facts: &'a impl ParentFacts,
    controller: &ControllerName,
) -> BTreeMap<&'a str, i32> {
    let mut counts = BTreeMap::new();
    for route in accepted {
        let parents = attachment(route, facts, controller).parents;
        let here = parents.iter().filter(|parent| parent.key == *gateway);
        // A route may name a Gateway more than once.
        let listeners: BTreeSet<&str> = here.flat_map(|parent| attached(route, parent)).collect();
        for listener in listeners {
            *counts.entry(listener).or_default() += 1;
        }
    }
    counts
}

/// Returns the conditions of a Gateway. One listener that is served suffices.
fn summary(listeners: &[ListenerReport]) -> [Said; 2] {
    let unserved = listeners.iter().filter(|listener| !listener.is_served());
    let unserved: Vec<&str> = unserved.map(|listener| listener.name.as_str()).collect();
    let message = format!("listeners that are not served: {}", unserved.join(", "));
    let programmed = Said::yes(
        PROGRAMMED,
        "Where its requests arrive, the condition LoadBalanced of each HTTPRoute says",
    );
    if unserved.is_empty() {
        let accepted = Said::yes(ACCEPTED, "The ingress-controller reads its HTTPRoutes");
        return [accepted, programmed];
    }
    let accepted = Said::no(ACCEPTED, "ListenersNotValid", message.clone());
    if unserved.len() == listeners.len() {
        return [accepted, Said::no(PROGRAMMED, "Invalid", message)];
    }
    let accepted = Said {
        is_true: true,
        ..accepted
    };
    [accepted, programmed]
}

impl ListenerReport {
    fn new(listener: &Listener, attached_routes: i32) -> Self {
        let (accepted, resolved) = (accepted(listener), resolved(listener));
        let is_secret = certificates(listener).all(is_secret);
        let programmed = if accepted.is_true && takes_routes(listener) && is_secret {
            Said::yes(PROGRAMMED, "")
        } else {
            let message = [&accepted, &resolved]
                .into_iter()
                .find(|said| !said.is_true);
            let message = message.map(|said| said.message.clone());
            Said::no(PROGRAMMED, "Invalid", message.unwrap_or_default())
        };
        Self {
            name: listener.name.clone(),
            takes_routes: takes_routes(listener),
            attached_routes,
            conditions: [accepted, resolved, programmed],
        }
    }

    fn is_served(&self) -> bool {
        let [_, _, programmed] = &self.conditions;
        programmed.is_true
    }

    /// Returns the entry of the listener in the place of that among `told`.
    fn entry(
        &self,
        told: &[ListenerStatus],
        generation: Option<i64>,
        now: Timestamp,
    ) -> ListenerStatus {
        let told = told.iter().find(|told| told.name == self.name);
        let mut conditions = told.map(|told| told.conditions.clone()).unwrap_or_default();
        for said in &self.conditions {
            let condition = said.condition(&conditions, generation, now);
            upsert(&mut conditions, condition);
        }
        let route = RouteGroupKind {
            group: Some(GROUP.to_owned()),
            kind: "HTTPRoute".to_owned(),
        };
        ListenerStatus {
            name: self.name.clone(),
            supported_kinds: self.takes_routes.then_some(route).into_iter().collect(),
            attached_routes: self.attached_routes,
            conditions,
        }
    }
}

fn accepted(listener: &Listener) -> Said {
    if !speaks_http(listener) {
        let message = format!(
            "protocol {} is not served; write HTTP or HTTPS",
            listener.protocol
        );
        return Said::no(ACCEPTED, "UnsupportedProtocol", message);
    }
    if passes_tls(listener) {
        let message = "tls.mode Passthrough is not served; write Terminate";
        return Said::no(ACCEPTED, "UnsupportedValue", message.to_owned());
    }
    if selects(listener) {
        return Said::no(
            ACCEPTED,
            "UnsupportedValue",
            format!("allowedRoutes {SELECTS}"),
        );
    }
    Said::yes(ACCEPTED, "")
}

fn resolved(listener: &Listener) -> Said {
    if let Some(other) = kinds(listener).find(|kind| !is_route(kind)) {
        let message = format!(
            "routes of kind {} are not served; write HTTPRoute",
            other.kind
        );
        return Said::no(RESOLVED_REFS, "InvalidRouteKinds", message);
    }
    if let Some(other) = certificates(listener).find(|it| !is_secret(it)) {
        let message = format!("certificate {} is no Secret", other.name);
        return Said::no(RESOLVED_REFS, "InvalidCertificateRef", message);
    }
    Said::yes(RESOLVED_REFS, "")
}

impl GatewayReport {
    /// Returns the steps that make the status of `gateway` say this, which need a guard. Conditions of others stay.
    pub fn patch(&self, gateway: &Gateway, now: Timestamp) -> JsonPatch {
        let status = gateway.status.clone().unwrap_or_default();
        let wanted = self.conditions.iter();
        let wanted = wanted.map(|said| said.condition(&status.conditions, self.generation, now));
        let wanted: Vec<Condition> = wanted
            .filter(|one| find(&status.conditions, &one.type_) != Some(one))
            .collect();
        let listeners = self.listeners.iter();
        let listeners =
            listeners.map(|listener| listener.entry(&status.listeners, self.generation, now));
        let listeners: Vec<ListenerStatus> = listeners.collect();
        let has_news = listeners != status.listeners;
        let mut steps = JsonPatch::default();
        if gateway.status.is_none() && (has_news || !wanted.is_empty()) {
            steps.add(["status"], json!({}));
        }
        // An empty list may be absent.
        let told = Some(status.conditions.as_slice()).filter(|told| !told.is_empty());
        steps.conditions(told, &wanted);
        if has_news {
            steps.add(["status", "listeners"], json!(listeners));
        }
        steps
    }
}
