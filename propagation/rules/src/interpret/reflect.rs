//! The part of an object's status that is reported from a member, by its kind.

use karmada_api::names::TEMPLATE_GENERATION;
use objects::{Metadata, api_version, group_kind};
use serde_json::{Map, Value};

/// The counts of a `Deployment`.
pub(super) const DEPLOYMENT: [&str; 5] = [
    "replicas",
    "updatedReplicas",
    "readyReplicas",
    "availableReplicas",
    "unavailableReplicas",
];
/// The counts of a `StatefulSet`; the first two are always there.
pub(super) const STATEFUL_SET: [&str; 5] = [
    "replicas",
    "availableReplicas",
    "readyReplicas",
    "currentReplicas",
    "updatedReplicas",
];
/// The counts of a `DaemonSet`; the first four are always there.
pub(super) const DAEMON_SET: [&str; 7] = [
    "currentNumberScheduled",
    "numberMisscheduled",
    "desiredNumberScheduled",
    "numberReady",
    "updatedNumberScheduled",
    "numberAvailable",
    "numberUnavailable",
];
/// The counts of a `PodDisruptionBudget`.
pub(super) const DISRUPTION_BUDGET: [&str; 4] = [
    "disruptionsAllowed",
    "currentHealthy",
    "desiredHealthy",
    "expectedPods",
];

const JOB: [&str; 6] = [
    "conditions",
    "startTime",
    "completionTime",
    "active",
    "succeeded",
    "failed",
];

/// Returns the `status` of an object in a member as it is reported to the control plane, and `None` if nothing
/// is. Of a kind without a rule it is all of it.
pub(super) fn reflect(object: &Value, status: &Value) -> Option<Value> {
    match group_kind(object) {
        ("apps", "Deployment") => Some(workload(object, &DEPLOYMENT, &[])),
        ("apps", "StatefulSet") => Some(workload(object, &STATEFUL_SET[2..], &STATEFUL_SET[..2])),
        ("apps", "DaemonSet") => Some(workload(object, &DAEMON_SET[4..], &DAEMON_SET[..4])),
        ("batch", "Job") => Some(fields(status, &JOB, &[])),
        ("", "Service") => {
            let kind = object.pointer("/spec/type").and_then(Value::as_str);
            let balanced = kind == Some("LoadBalancer");
            balanced.then(|| fields(status, &["loadBalancer"], &[]))
        }
        ("policy", "PodDisruptionBudget") => {
            Some(fields(status, &["disruptedPods"], &DISRUPTION_BUDGET))
        }
        // Of the older version Karmada reports all.
        ("autoscaling", "HorizontalPodAutoscaler") if api_version(object) == "autoscaling/v2" => {
            Some(fields(status, &["currentReplicas"], &["desiredReplicas"]))
        }
        _ => Some(status.clone()),
    }
}

/// Returns the number `name` of `part`; 0 if it is absent, as Kubernetes leaves zeros out.
pub(super) fn number(part: Option<&Value>, name: &str) -> i64 {
    let number = part.and_then(|part| part.get(name));
    number.and_then(Value::as_i64).unwrap_or_default()
}

/// Returns the fields `names` that are not zero or empty, and the numbers `always`: Kubernetes' own types
/// write some numbers even if they are zero, and so does Karmada.
fn fields(status: &Value, names: &[&str], always: &[&str]) -> Value {
    let present = names.iter().filter_map(|&name| {
        let value = status.get(name)?;
        let empty = match value {
            Value::Null => true,
            Value::Number(number) => number.as_i64() == Some(0),
            Value::Array(list) => list.is_empty(),
            Value::Object(map) => map.is_empty() && name != "loadBalancer",
            _ => false,
        };
        (!empty).then(|| (name.to_owned(), value.clone()))
    });
    let always = always
        .iter()
        .map(|&name| (name.to_owned(), number(Some(status), name).into()));
    Value::Object(present.chain(always).collect())
}

/// Returns counts together with the generations of which they are: the object's own, the one its controller
/// has seen, and that of the template it was made from.
fn workload(object: &Value, counts: &[&str], always: &[&str]) -> Value {
    let status = object.get("status").unwrap_or(&Value::Null);
    let mut reflected = match fields(status, counts, always) {
        Value::Object(fields) => fields,
        _ => Map::new(),
    };
    let observed = number(Some(status), "observedGeneration");
    if observed != 0 {
        reflected.insert("observedGeneration".to_owned(), observed.into());
    }
    reflected.extend(generations(object));
    Value::Object(reflected)
}

/// Returns the generation of an object, and that of the template it was made from, as they are reported.
pub(super) fn generations(object: &Value) -> impl Iterator<Item = (String, Value)> {
    let template = object.annotation(TEMPLATE_GENERATION);
    let template = template.and_then(|text| text.parse::<i64>().ok());
    let generations = [
        ("generation", object.generation()),
        ("resourceTemplateGeneration", template),
    ];
    generations.into_iter().filter_map(|(name, generation)| {
        let generation = generation.filter(|generation| *generation != 0)?;
        Some((name.to_owned(), generation.into()))
    })
}
