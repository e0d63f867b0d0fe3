//! The status of a template from that of its copies in the members, by kind.

use std::collections::BTreeMap;

use objects::{Metadata, group_kind};
use serde_json::{Map, Value, json};

use super::members::{MemberStatus, earliest, is_observed, latest, statuses, sums, text};
use super::reflect::{DAEMON_SET, DEPLOYMENT, DISRUPTION_BUDGET, STATEFUL_SET, number};

const REPLICA_SET: [&str; 4] = [
    "replicas",
    "fullyLabeledReplicas",
    "readyReplicas",
    "availableReplicas",
];

/// Returns the merge patch (RFC 7396) of the status of `template`, and `None` if its status is up to date or
/// its kind has none that could be put together.
///
/// `rebuilt` is true if every manifest is made from the template as it is now. Only then may
/// `observedGeneration` become the template's.
pub(super) fn template_status(
    template: &Value,
    members: &[MemberStatus<'_>],
    rebuilt: bool,
) -> Option<Value> {
    let current = template.get("status").unwrap_or(&Value::Null);
    let mut status = put_together(template, current, members)?;
    let generation = template.generation().unwrap_or_default();
    if group_kind(template).0 == "apps" && rebuilt && members.iter().all(is_observed) {
        status.insert("observedGeneration".to_owned(), generation.into());
    }
    status.retain(|name, value| !is_same(current.get(name), value));
    (!status.is_empty()).then(|| json!({ "status": status }))
}

fn put_together(
    template: &Value,
    current: &Value,
    members: &[MemberStatus<'_>],
) -> Option<Map<String, Value>> {
    match group_kind(template) {
        ("apps", "Deployment") => Some(sums(members, &DEPLOYMENT)),
        ("apps", "ReplicaSet") => Some(sums(members, &REPLICA_SET)),
        ("apps", "StatefulSet") => Some(sums(members, &STATEFUL_SET)),
        ("apps", "DaemonSet") => Some(sums(members, &DAEMON_SET)),
        ("batch", "Job") => job(current, members),
        ("batch", "CronJob") => Some(cron_job(members)),
        ("", "Service") => {
            let kind = template.pointer("/spec/type").and_then(Value::as_str);
            (kind == Some("LoadBalancer")).then(|| load_balancer(members))
        }
        ("networking.k8s.io" | "extensions", "Ingress") => Some(load_balancer(members)),
        ("", "Pod") => pod(template, current, members),
        ("", "PersistentVolumeClaim") => phase(claim(members)),
        ("", "PersistentVolume") => phase(volume(members)),
        ("policy", "PodDisruptionBudget") => Some(disruption_budget(members)),
        ("autoscaling", "HorizontalPodAutoscaler") => {
            Some(sums(members, &["currentReplicas", "desiredReplicas"]))
        }
        _ => None,
    }
}

/// Compares as Kubernetes writes: zeros, empty lists and empty texts may be absent.
pub(super) fn is_same(current: Option<&Value>, new: &Value) -> bool {
    match (current.unwrap_or(&Value::Null), new) {
        (Value::Null, new) => is_nothing(new),
        (current, Value::Null) => is_nothing(current),
        (Value::Object(current), Value::Object(new)) => {
            let mut names = current.keys().chain(new.keys());
            names.all(|name| is_same(current.get(name), new.get(name).unwrap_or(&Value::Null)))
        }
        (Value::Array(current), Value::Array(new)) => {
            let mut pairs = current.iter().zip(new);
            current.len() == new.len() && pairs.all(|(current, new)| is_same(Some(current), new))
        }
        (current, new) => current == new,
    }
}

fn is_nothing(value: &Value) -> bool {
    match value {
        Value::Null => true,
        Value::Number(number) => number.as_i64() == Some(0),
        Value::String(text) => text.is_empty(),
        Value::Array(list) => list.is_empty(),
        Value::Object(map) => map.values().all(is_nothing),
        Value::Bool(_) => false,
    }
}

/// Returns the True condition `kind` of a job.
fn condition<'a>(status: &'a Value, kind: &str) -> Option<&'a Value> {
    let list = status.get("conditions").and_then(Value::as_array)?;
    list.iter().find(|condition| {
        text(condition, "type") == Some(kind) && text(condition, "status") == Some("True")
    })
}

/// Returns the numbers of the Pods of a job. The API refuses fewer that have ended, though a copy with its Pods is gone.
fn counts(current: &Value, members: &[MemberStatus<'_>]) -> Map<String, Value> {
    let mut counts = sums(members, &["active", "succeeded", "failed"]);
    for (name, count) in &mut counts {
        if name != "active" {
            let least = number(Some(current), name);
            *count = count.as_i64().unwrap_or_default().max(least).into();
        }
    }
    counts
}

/// Returns the time at which a job has started, once all members tell theirs, or it is over: the API refuses another
/// start of a job that has one.
fn started<'a>(members: &[MemberStatus<'a>], is_over: bool) -> Option<&'a str> {
    let mut statuses = members.iter().map(|member| member.status);
    let is_known = is_over
        || statuses.all(|status| status.is_some_and(|one| text(one, "startTime").is_some()));
    earliest(members, "startTime").filter(|_| is_known)
}

/// A finished job does not change any more.
fn job(current: &Value, members: &[MemberStatus<'_>]) -> Option<Map<String, Value>> {
    if condition(current, "Complete")
        .or_else(|| condition(current, "Failed"))
        .is_some()
    {
        return None;
    }
    let mut status = counts(current, members);
    let active = status.get("active").and_then(Value::as_i64) != Some(0);
    let failed: Vec<_> = members
        .iter()
        .filter(|member| {
            let status = member.status;
            status.is_some_and(|status| condition(status, "Failed").is_some())
        })
        .map(|member| member.cluster)
        .collect();
    let complete = !members.is_empty()
        && members.iter().all(|member| {
            member
                .status
                .is_some_and(|status| condition(status, "Complete").is_some())
        });
    let is_over = !failed.is_empty();
    let start = text(current, "startTime").or_else(|| started(members, is_over));
    status.insert("startTime".to_owned(), json!(start));
    let at = statuses(members)
        .filter_map(|status| condition(status, "Failed").or_else(|| condition(status, "Complete")))
        .filter_map(|condition| text(condition, "lastTransitionTime"))
        .max();
    // The API accepts each end only together with its announcement, and not while pods run.
    let ends = if active || start.is_none() {
        None
    } else if !failed.is_empty() {
        let message = format!(
            "Job executed failed in member clusters {}",
            failed.join(",")
        );
        Some((["FailureTarget", "Failed"], "JobFailed", message))
    } else if complete {
        let completion = latest(members, "completionTime");
        status.insert("completionTime".to_owned(), json!(completion));
        Some((
            ["SuccessCriteriaMet", "Complete"],
            "Completed",
            "Job completed".to_owned(),
        ))
    } else {
        None
    };
    if let Some((kinds, reason, message)) = ends {
        let conditions = kinds.map(|kind| {
            json!({
                "type": kind, "status": "True", "reason": reason, "message": message,
                "lastProbeTime": at, "lastTransitionTime": at,
            })
        });
        status.insert("conditions".to_owned(), json!(conditions));
    }
    Some(status)
}

fn cron_job(members: &[MemberStatus<'_>]) -> Map<String, Value> {
    let active = statuses(members).filter_map(|status| status.get("active")?.as_array());
    let active: Vec<_> = active.flatten().collect();
    Map::from_iter([
        ("active".to_owned(), json!(active)),
        (
            "lastScheduleTime".to_owned(),
            json!(latest(members, "lastScheduleTime")),
        ),
        (
            "lastSuccessfulTime".to_owned(),
            json!(latest(members, "lastSuccessfulTime")),
        ),
    ])
}

/// Returns the addresses of all load balancers.
fn load_balancer(members: &[MemberStatus<'_>]) -> Map<String, Value> {
    let lists = statuses(members).filter_map(|status| status.pointer("/loadBalancer/ingress"));
    // By their text: sorted, and each once.
    let addresses: BTreeMap<String, &Value> = lists
        .filter_map(Value::as_array)
        .flatten()
        .map(|address| (address.to_string(), address))
        .collect();
    let addresses: Vec<_> = addresses.into_values().collect();
    Map::from_iter([("loadBalancer".to_owned(), json!({ "ingress": addresses }))])
}

/// A copy without a status is about to start.
fn pod(
    template: &Value,
    current: &Value,
    members: &[MemberStatus<'_>],
) -> Option<Map<String, Value>> {
    let phases: Vec<&str> = members
        .iter()
        .map(|member| member.status.and_then(|status| text(status, "phase")))
        .map(|phase| phase.unwrap_or("Pending"))
        .collect();
    let first = ["Failed", "Pending", "Running", "Succeeded"]
        .into_iter()
        .find(|phase| phases.contains(phase))?;
    let policy = template.pointer("/spec/restartPolicy");
    let restarts = policy.is_none_or(|policy| policy == "Always");
    // Where none restarts, the API lets none that has ended run again.
    let ended = containers(current).filter(|one| !restarts && has_ended(one));
    let all = statuses(members).flat_map(containers).chain(ended);
    Some(Map::from_iter([
        ("phase".to_owned(), first.into()),
        ("containerStatuses".to_owned(), worst(all).into()),
    ]))
}

fn containers(status: &Value) -> impl Iterator<Item = &Value> {
    let list = status.get("containerStatuses").and_then(Value::as_array);
    list.into_iter().flatten()
}

/// Returns the status of each container, as it is where it is worst.
fn worst<'a>(all: impl Iterator<Item = &'a Value>) -> Vec<Value> {
    let mut worst: BTreeMap<&str, &Value> = BTreeMap::new();
    for container in all {
        let name = text(container, "name").unwrap_or_default();
        let known = worst.entry(name).or_insert(container);
        if standing(container) < standing(known) {
            *known = container;
        }
    }
    worst.into_values().map(summary).collect()
}

/// Returns how well a container is, the worst first.
fn standing(container: &Value) -> (bool, bool, bool) {
    let is_ready = container.get("ready") == Some(&Value::Bool(true));
    let is_running = container.pointer("/state/running").is_some();
    (!has_ended(container), is_ready, is_running)
}

fn has_ended(container: &Value) -> bool {
    container.pointer("/state/terminated").is_some()
}

/// Returns the fields of a container's status that the API requires, and its state.
fn summary(container: &Value) -> Value {
    let fields = [
        ("name", json!("")),
        ("image", json!("")),
        ("imageID", json!("")),
        ("restartCount", json!(0)),
        ("ready", json!(false)),
        ("state", json!({})),
    ];
    let fields = fields.map(|(name, default)| {
        let value = container.get(name).filter(|value| !value.is_null());
        (name.to_owned(), value.cloned().unwrap_or(default))
    });
    Value::Object(Map::from_iter(fields))
}

fn phase(phase: Option<&str>) -> Option<Map<String, Value>> {
    Some(Map::from_iter([("phase".to_owned(), phase?.into())]))
}

fn claim<'a>(members: &[MemberStatus<'a>]) -> Option<&'a str> {
    let phases = statuses(members).filter_map(|status| text(status, "phase"));
    let phases: Vec<_> = phases.collect();
    let lost = phases.iter().find(|phase| **phase == "Lost");
    let unbound = phases.iter().find(|phase| **phase != "Bound");
    lost.or(unbound).or_else(|| phases.first()).copied()
}

fn volume(members: &[MemberStatus<'_>]) -> Option<&'static str> {
    let phases = members.iter().map(|member| match member.status {
        Some(status) => text(status, "phase"),
        // One that was not heard of is no more bound than others.
        None => Some("Pending"),
    });
    let phases: Vec<_> = phases.flatten().collect();
    let mut order = ["Failed", "Pending", "Available", "Bound", "Released"].into_iter();
    order.find(|phase| phases.contains(phase))
}

fn disruption_budget(members: &[MemberStatus<'_>]) -> Map<String, Value> {
    let mut status = sums(members, &DISRUPTION_BUDGET);
    let mut disrupted = Map::new();
    for member in members {
        let pods = member
            .status
            .and_then(|status| status.get("disruptedPods")?.as_object());
        for (pod, time) in pods.into_iter().flatten() {
            disrupted.insert(format!("{}/{pod}", member.cluster), time.clone());
        }
    }
    status.insert("disruptedPods".to_owned(), Value::Object(disrupted));
    status
}
