//! A model of the desired state: naive, on JSON, and independent of the controllers and of
//! the crates of rules, so that they do not share a mistake.

use std::collections::BTreeSet;

use jiff::Timestamp;
use serde_json::{Value, json};

use super::kinds::Kind;
use super::program::CONTROLLER;
use crate::harness::value::{is_deleting, items, name, text};

/// The name of its ingress on an object at the gateway.
pub(crate) const INGRESS_ANNOTATION: &str =
    "/metadata/annotations/karmada-rs.io~1multi-cluster-ingress";
/// The name of its Service on a slice.
pub(crate) const SERVICE_LABEL: &str = "/metadata/labels/kubernetes.io~1service-name";

const TRAFFIC_CONTROL: &str = "TrafficControl";
const KARMADAS_FINALIZER: &str = "karmada.io/multi-cluster-ingress-controller";

fn texts<'a>(object: &'a Value, pointer: &str) -> BTreeSet<&'a str> {
    items(object, pointer).filter_map(Value::as_str).collect()
}

/// Returns `true` unless a step has [corrupted](super::step::Change::Corrupt) the object.
pub(crate) fn is_readable(kind: Kind, object: &Value) -> bool {
    !kind.may_be_corrupted() || object["spec"].is_object()
}

/// The way in which the annotations of a Remedy let it act.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Annotated {
    Acts,
    Observes,
    /// Nobody can tell: it neither sets nor clears anything.
    Unclear,
    Expired,
}

/// Returns the way in which the annotations of a Remedy let it act at `now`.
pub(crate) fn annotated(remedy: &Value, now: Timestamp) -> Annotated {
    let annotations = &remedy["metadata"]["annotations"];
    let end = annotations["remedy.karmada-rs.io/expires-at"].as_str();
    let end = end.and_then(|end| end.parse::<Timestamp>().ok());
    if end.is_some_and(|end| now >= end) {
        return Annotated::Expired;
    }
    match annotations["remedy.karmada-rs.io/observe-only"].as_str() {
        None | Some("false") => Annotated::Acts,
        Some("true") => Annotated::Observes,
        Some(_) => Annotated::Unclear,
    }
}

/// Returns `true` if a Remedy is carried out as it is written.
pub(crate) fn is_accepted(remedy: &Value) -> bool {
    let spec = &remedy["spec"];
    let annotations = &remedy["metadata"]["annotations"];
    let end = annotations["remedy.karmada-rs.io/expires-at"].as_str();
    let lists = [
        &spec["clusterAffinity"]["clusterNames"],
        &spec["decisionMatches"],
        &spec["actions"],
    ];
    !lists.contains(&&json!([]))
        && end.is_none_or(|end| end.parse::<Timestamp>().is_ok())
        && annotated(remedy, Timestamp::MIN) != Annotated::Unclear
}

/// Returns `true` if a Remedy acts on a cluster: the cluster has an action that the Remedy wants.
pub(crate) fn acts_on(remedy: &Value, cluster: &Value, now: Timestamp) -> bool {
    let has = texts(cluster, "/status/remedyActions");
    let wanted = wanted_actions(remedy, cluster, now);
    annotated(remedy, now) == Annotated::Acts
        && !is_deleting(cluster)
        && wanted.iter().any(|action| has.contains(action.as_str()))
}

/// Returns the status of a condition that holds, or does not.
fn truth(holds: bool) -> &'static str {
    if holds { "True" } else { "False" }
}

/// Returns the fault of a Remedy's status, which says that it acts on `acting`.
pub(crate) fn misstatement(
    remedy: &Value,
    status: &Value,
    acting: &BTreeSet<String>,
) -> Option<String> {
    let condition = |kind: &str| {
        let mut conditions = items(status, "/conditions");
        conditions
            .find(|condition| condition["type"] == kind)
            .map(|condition| condition["status"].clone())
    };
    let expected = [
        (
            json!(condition("Accepted")),
            json!(truth(is_accepted(remedy))),
        ),
        (json!(condition("Active")), json!(truth(!acting.is_empty()))),
        (status["activeClusters"].clone(), json!(acting.len())),
        (status["activeClusterNames"].clone(), written(acting)),
        (status["refusedClusters"].clone(), json!(0)),
        (status["refusedClusterNames"].clone(), Value::Null),
        (
            status["observedGeneration"].clone(),
            remedy["metadata"]["generation"].clone(),
        ),
    ];
    let wrong = expected.iter().find(|(is, must)| is != must)?;
    Some(format!("{} instead of {} in {status}", wrong.0, wrong.1))
}

/// Returns `true` if a match of a Remedy is that of a cluster.
fn matches(entry: &Value, cluster: &Value) -> bool {
    let wanted = &entry["clusterConditionMatch"];
    let mut conditions = items(cluster, "/status/conditions");
    let found = conditions.find(|condition| condition["type"] == wanted["conditionType"]);
    !wanted.is_null()
        && found.is_some_and(|condition| {
            let equal = condition["status"] == wanted["conditionStatus"];
            equal == (wanted["operator"] == "Equal")
        })
}

/// Returns the actions that a Remedy wants for a cluster at `now`.
pub(crate) fn wanted_actions(remedy: &Value, cluster: &Value, now: Timestamp) -> BTreeSet<String> {
    let named = texts(remedy, "/spec/clusterAffinity/clusterNames");
    let is_covered = remedy["spec"]["clusterAffinity"].is_null() || named.contains(name(cluster));
    let mut all = items(remedy, "/spec/decisionMatches");
    let is_met =
        remedy["spec"]["decisionMatches"].is_null() || all.any(|one| matches(one, cluster));
    if !is_covered || !is_met || is_deleting(remedy) {
        return BTreeSet::new();
    }
    let mut wanted = texts(remedy, "/spec/actions");
    match annotated(remedy, now) {
        Annotated::Acts => {}
        Annotated::Unclear => {
            let has = texts(cluster, "/status/remedyActions");
            wanted.retain(|action| has.contains(action));
        }
        Annotated::Observes | Annotated::Expired => wanted.clear(),
    }
    wanted.into_iter().map(str::to_owned).collect()
}

/// Returns `true` if a cluster is blocked.
pub(crate) fn is_blocked(cluster: &Value) -> bool {
    texts(cluster, "/status/remedyActions").contains(TRAFFIC_CONTROL)
}

/// Returns `true` if a cluster is admitted, judged by its own object alone.
pub(crate) fn is_admitted(cluster: &Value) -> bool {
    !is_blocked(cluster) && !is_deleting(cluster)
}

/// Returns `true` if a Remedy without matches blocks a cluster: a person decided that.
pub(crate) fn is_blocked_manually(remedy: &Value, cluster: &Value, now: Timestamp) -> bool {
    remedy["spec"]["decisionMatches"].is_null()
        && wanted_actions(remedy, cluster, now).contains(TRAFFIC_CONTROL)
}

/// Returns `true` if a cluster may serve although it is blocked, provided that no admitted
/// cluster has endpoints of the Service.
pub(crate) fn is_readmissible<'a>(
    cluster: &Value,
    mut remedies: impl Iterator<Item = &'a Value>,
    now: Timestamp,
) -> bool {
    is_blocked(cluster)
        && !is_deleting(cluster)
        && !remedies.any(|remedy| is_blocked_manually(remedy, cluster, now))
}

/// Returns the controller that these classes name for an ingress. A class that does not exist, or one
/// of several default ones, names none.
fn controller_of<'a>(ingress: &Value, classes: impl Iterator<Item = &'a Value>) -> Option<&'a str> {
    const DEFAULT: &str = "/metadata/annotations/ingressclass.kubernetes.io~1is-default-class";
    let wanted = text(ingress, "/spec/ingressClassName");
    let candidates: Vec<&Value> = if wanted.is_empty() {
        classes
            .filter(|class| text(*class, DEFAULT) == "true")
            .collect()
    } else {
        classes.filter(|class| name(class) == wanted).collect()
    };
    match *candidates {
        [class] => Some(text(class, "/spec/controller")).filter(|name| !name.is_empty()),
        _ => None,
    }
}

/// Returns `true` if these classes make an ingress ours, regardless of its finalizers.
pub(crate) fn is_ours<'a>(ingress: &Value, classes: impl Iterator<Item = &'a Value>) -> bool {
    controller_of(ingress, classes) == Some(CONTROLLER)
}

/// Returns `true` if an ingress that is not being deleted is served: it is ours, or it was and no class
/// names another controller.
pub(crate) fn is_served<'a>(ingress: &Value, classes: impl Iterator<Item = &'a Value>) -> bool {
    match controller_of(ingress, classes) {
        Some(controller) => controller == CONTROLLER,
        None => carries(ingress, CONTROLLER),
    }
}

/// Returns `true` if an ingress has a finalizer.
pub(crate) fn carries(ingress: &Value, finalizer: &str) -> bool {
    texts(ingress, "/metadata/finalizers").contains(finalizer)
}

/// Returns `true` if a settled fleet may keep a finalizer on an ingress that is being deleted.
pub(crate) fn may_keep(finalizer: &str, is_ours: bool) -> bool {
    finalizer != CONTROLLER && !(is_ours && finalizer == KARMADAS_FINALIZER)
}

/// Returns the backends of an ingress: the name of each Service, and its port as the ingress has it.
pub(crate) fn backends(ingress: &Value) -> BTreeSet<(String, String)> {
    let paths = items(ingress, "/spec/rules").flat_map(|rule| items(rule, "/http/paths"));
    let of_paths = paths.filter_map(|path| path.pointer("/backend/service"));
    let all = of_paths.chain(ingress.pointer("/spec/defaultBackend/service"));
    all.map(|service| {
        (
            text(service, "/name").to_owned(),
            service["port"].to_string(),
        )
    })
    .collect()
}

/// Returns the names of the Services that an ingress routes to.
pub(crate) fn services(ingress: &Value) -> BTreeSet<String> {
    backends(ingress)
        .into_iter()
        .map(|(service, _)| service)
        .collect()
}

/// Returns the user's name of a Service from the gateway's, which is `<ingress>-<service>-<hash>`.
pub(crate) fn original<'a>(gateway_name: &'a str, ingress: &str) -> Option<&'a str> {
    let own = gateway_name.strip_prefix(ingress)?.strip_prefix('-')?;
    Some(own.rsplit_once('-')?.0)
}

/// Returns the name of a Service's binding.
pub(crate) fn binding_name(service: &str) -> String {
    format!("{service}-service")
}

/// Returns the clusters in which a binding places the Service; `None` if it binds another object.
pub(crate) fn located(service: &str, binding: Option<&Value>) -> Option<BTreeSet<String>> {
    let binding = binding?;
    let resource = &binding["spec"]["resource"];
    if (
        &resource["apiVersion"],
        &resource["kind"],
        &resource["name"],
    ) != (&json!("v1"), &json!("Service"), &json!(service))
    {
        return None;
    }
    let scheduled = items(binding, "/spec/clusters").map(name_of);
    let required = items(binding, "/spec/requiredBy");
    let required = required.flat_map(|by| items(by, "/clusters")).map(name_of);
    let status = items(binding, "/status/aggregatedStatus");
    let applied = status.filter(|item| item["applied"] == true);
    let applied = applied.map(|item| text(item, "/clusterName"));
    Some(
        scheduled
            .chain(required)
            .chain(applied)
            .map(str::to_owned)
            .collect(),
    )
}

fn name_of(cluster: &Value) -> &str {
    text(cluster, "/name")
}

/// Builds an entry of `serviceLocations`.
pub(crate) fn location(service: &str, clusters: &BTreeSet<String>) -> Value {
    if clusters.is_empty() {
        json!({ "name": service })
    } else {
        json!({ "name": service, "clusters": clusters })
    }
}

/// Returns a list as the controllers write it: sorted, and `null` rather than empty.
pub(crate) fn written(sorted: &BTreeSet<String>) -> Value {
    if sorted.is_empty() {
        Value::Null
    } else {
        json!(sorted)
    }
}

/// Returns the cluster from which a slice was collected.
pub(crate) fn collected_from(slice: &Value) -> Option<&str> {
    text(slice, "/metadata/annotations/work.karmada.io~1namespace").strip_prefix("karmada-es-")
}

/// Returns the Service for which a slice was collected.
pub(crate) fn collected_for(slice: &Value) -> Option<&str> {
    text(slice, "/metadata/labels/kubernetes.io~1service-name").strip_prefix("derived-")
}

/// Returns the endpoints of a slice, each formatted as its address and the slice's ports.
pub(crate) fn endpoints(slice: &Value) -> BTreeSet<String> {
    let ports: Vec<String> = items(slice, "/ports")
        .map(|port| format!("{}={}", text(port, "/name"), port["port"]))
        .collect();
    let endpoints = items(slice, "/endpoints").flat_map(|endpoint| items(endpoint, "/addresses"));
    let addresses = endpoints.filter_map(Value::as_str);
    addresses
        .map(|address| format!("{address} {}", ports.join(",")))
        .collect()
}

/// Returns the endpoints of a slice as a Service with these ports serves them: if both have one, it is the same by any name.
pub(crate) fn served_endpoints(slice: &Value, ports: &[String]) -> BTreeSet<String> {
    let endpoints = endpoints(slice).into_iter();
    let [only] = ports else {
        return endpoints.collect();
    };
    let name = only.split('=').next().unwrap_or_default();
    endpoints
        .map(|endpoint| match endpoint.split_once('=') {
            Some((named, number)) if !number.contains(',') => {
                let address = named.split(' ').next().unwrap_or_default();
                format!("{address} {name}={number}")
            }
            _ => endpoint,
        })
        .collect()
}

/// Returns the ports of a Service, each as `name=number`.
pub(crate) fn ports(service: &Value) -> Vec<String> {
    items(service, "/spec/ports")
        .map(|port| format!("{}={}", text(port, "/name"), port["port"]))
        .collect()
}
