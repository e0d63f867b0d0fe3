//! Volcano: batch jobs of several tasks.

use std::collections::BTreeMap;

use serde_json::{Map, Value, json};

use super::aggregation::Aggregation;
use super::interpreter::{Interpreter, Known};
use super::reading::{count, entries, is_empty, list, status_part, text, without_empties};
use crate::interpret::components::{Component, component};

pub(super) const KINDS: &[Known] = &[(
    "batch.volcano.sh/v1alpha1",
    "Job",
    Interpreter {
        components: Some(components),
        is_healthy: Some(is_healthy),
        reflect: Some(reflect),
        aggregate: Some(aggregate),
        ..Interpreter::NONE
    },
)];

const COUNTS: [&str; 8] = [
    "minAvailable",
    "pending",
    "running",
    "succeeded",
    "failed",
    "terminating",
    "unknown",
    "retryCount",
];
const OTHERS: [&str; 6] = [
    "version",
    "runningDuration",
    "taskStatusCount",
    "controlledResources",
    "state",
    "conditions",
];

/// Each task with as many Pods as it starts with.
fn components(job: &Value) -> Vec<Component> {
    let tasks = list(job, "/spec/tasks").zip(0..);
    let components = tasks.map(|(task, index)| {
        let name = match text(task, "/name") {
            "" => format!("task-{index}"),
            name => name.to_owned(),
        };
        let replicas = count(task, "/minAvailable").unwrap_or(1);
        component(&name, replicas, task.pointer("/template/spec"))
    });
    components.collect()
}

fn is_healthy(job: &Value) -> bool {
    matches!(
        text(job, "/status/state/phase"),
        "Running"
            | "Completed"
            | "Pending"
            | "Aborting"
            | "Aborted"
            | "Restarting"
            | "Completing"
            | "Terminating"
            | "Terminated"
    )
}

fn reflect(job: &Value) -> Value {
    let mut status = status_part(job, &[&COUNTS[..], &OTHERS].concat());
    status.retain(|_, value| !is_empty(value));
    status.into()
}

fn aggregate(all: &Aggregation<'_>) -> Option<Map<String, Value>> {
    match all.copies() {
        0 => return None,
        1 => return all.alone(),
        _ => {}
    }
    let mut status = all.sums(&COUNTS);
    let durations = all
        .statuses()
        .map(|status| text(status, "/runningDuration"));
    let longest = durations.max_by(|a, b| seconds(a).total_cmp(&seconds(b)));
    let fields = [
        ("version", all.greatest("version").into()),
        ("runningDuration", json!(longest)),
        ("taskStatusCount", tasks(all)),
        (
            "controlledResources",
            all.united("controlledResources").into(),
        ),
        ("state", state(all)),
        ("conditions", conditions(all).into()),
    ];
    status.extend(fields.map(|(name, value)| (name.to_owned(), value)));
    Some(without_empties(status))
}

/// Returns the number of Pods of each task in each phase.
fn tasks(all: &Aggregation<'_>) -> Value {
    let mut counts: BTreeMap<&str, BTreeMap<&str, i64>> = BTreeMap::new();
    for status in all.statuses() {
        for (task, of_task) in entries(status, "/taskStatusCount") {
            for (phase, count) in entries(of_task, "/phase") {
                let sum = counts.entry(task).or_default().entry(phase).or_default();
                *sum = sum.saturating_add(count.as_i64().unwrap_or_default());
            }
        }
    }
    let tasks = counts.into_iter();
    let tasks = tasks.map(|(task, phases)| (task.to_owned(), json!({ "phase": phases })));
    Value::Object(tasks.collect())
}

/// A job that has failed anywhere has failed, and is complete once it is everywhere. Until then it has no state.
fn state(all: &Aggregation<'_>) -> Value {
    let failed = members_in(all, &["Failed", "Aborted"]);
    let complete = members_in(all, &["Completed"]);
    let (phase, reason, message, at) = if !failed.is_empty() {
        let clusters: Vec<_> = failed.iter().map(|(cluster, _)| *cluster).collect();
        let message = format!("Job failed in clusters: {}", clusters.join(","));
        (
            "Failed",
            "VolcanoJobFailed",
            message,
            last_transition(&failed),
        )
    } else if complete.len() == all.copies() {
        let message = "Job completed successfully".to_owned();
        (
            "Completed",
            "Completed",
            message,
            last_transition(&complete),
        )
    } else {
        return Value::Null;
    };
    json!({ "phase": phase, "reason": reason, "message": message, "lastTransitionTime": at })
}

/// Returns the members in which the job is in one of these phases.
fn members_in<'a>(all: &Aggregation<'a>, phases: &[&str]) -> Vec<(&'a str, &'a Value)> {
    let members = all.members();
    let found = members.filter(|(_, status)| phases.contains(&text(status, "/state/phase")));
    found.collect()
}

fn last_transition<'a>(members: &[(&str, &'a Value)]) -> Option<&'a str> {
    let statuses = members.iter().map(|(_, status)| *status);
    let times = statuses.map(|status| text(status, "/state/lastTransitionTime"));
    times.max()
}

/// Returns the conditions of the first member in which the job has ended badly, or else the latest of each phase.
fn conditions(all: &Aggregation<'_>) -> Vec<Value> {
    let mut statuses = all.statuses();
    if let Some(failed) = statuses.find(|status| list(status, "/conditions").any(ends_badly)) {
        return list(failed, "/conditions").cloned().collect();
    }
    let mut latest: BTreeMap<String, Value> = BTreeMap::new();
    for condition in all.joined("conditions") {
        let phase = text(&condition, "/status").to_owned();
        if latest
            .get(&phase)
            .is_none_or(|known| since(known) < since(&condition))
        {
            latest.insert(phase, condition);
        }
    }
    let mut latest: Vec<_> = latest.into_values().collect();
    latest.sort_by(|one, other| since(one).cmp(since(other)));
    latest
}

fn ends_badly(condition: &Value) -> bool {
    let bad = ["Failed", "Aborted", "Aborting", "Terminated", "Terminating"];
    bad.contains(&text(condition, "/status"))
}

fn since(condition: &Value) -> &str {
    text(condition, "/lastTransitionTime")
}

/// Returns the seconds of a duration as Go writes it, such as `1h2m3.5s`; 0 for any other text.
fn seconds(duration: &str) -> f64 {
    let mut rest = duration;
    let mut total = 0.0;
    while let Some(end) = rest.find(|c: char| !c.is_ascii_digit() && c != '.') {
        let (number, after) = rest.split_at(end);
        let units = [
            ("ms", 1e-3),
            ("us", 1e-6),
            ("µs", 1e-6),
            ("ns", 1e-9),
            ("h", 3600.0),
            ("m", 60.0),
            ("s", 1.0),
        ];
        let unit = units
            .iter()
            .find_map(|(unit, factor)| Some((after.strip_prefix(unit)?, factor)));
        let (Some((after, factor)), Ok(number)) = (unit, number.parse::<f64>()) else {
            return 0.0;
        };
        total += number * factor;
        rest = after;
    }
    total
}
