//! Workloads: Deployments, `ReplicaSets`, `StatefulSets`, `DaemonSets`, Jobs and `CronJobs`; and budgets that
//! protect them.

use jiff::Timestamp;
use serde_json::{Value, json};

use super::cell::{
    NONE, age, container_images, container_names, entries_of, has_condition, items, joined, name,
    number, or, text,
};
use super::columns::Table;
use super::selector::selector;
use crate::table::age;

pub(super) const DEPLOYMENT: Table = Table {
    columns: &[
        ("Name", "string", 0),
        ("Ready", "string", 0),
        ("Up-to-date", "string", 0),
        ("Available", "string", 0),
        ("Age", "string", 0),
        ("Containers", "string", 1),
        ("Images", "string", 1),
        ("Selector", "string", 1),
    ],
    cells: |object, now| {
        let status = &object["status"];
        let pod = &object["spec"]["template"]["spec"];
        vec![
            name(object),
            json!(ready_replicas(object)),
            json!(number(&status["updatedReplicas"])),
            json!(number(&status["availableReplicas"])),
            json!(age(object, now)),
            json!(container_names(pod)),
            json!(container_images(pod)),
            // Alone of all kinds, a Deployment without requirements shows nothing.
            json!(selector(&object["spec"]["selector"])),
        ]
    },
};

pub(super) const REPLICA_SET: Table = Table {
    columns: &[
        ("Name", "string", 0),
        ("Desired", "integer", 0),
        ("Current", "integer", 0),
        ("Ready", "integer", 0),
        ("Age", "string", 0),
        ("Containers", "string", 1),
        ("Images", "string", 1),
        ("Selector", "string", 1),
    ],
    cells: |object, now| {
        let status = &object["status"];
        let mut cells = vec![
            name(object),
            json!(desired_replicas(object)),
            json!(number(&status["replicas"])),
            json!(number(&status["readyReplicas"])),
            json!(age(object, now)),
        ];
        cells.extend(wide(&object["spec"]));
        cells
    },
};

pub(super) const STATEFUL_SET: Table = Table {
    columns: &[
        ("Name", "string", 0),
        ("Ready", "string", 0),
        ("Age", "string", 0),
        ("Containers", "string", 1),
        ("Images", "string", 1),
    ],
    cells: |object, now| {
        let pod = &object["spec"]["template"]["spec"];
        vec![
            name(object),
            json!(ready_replicas(object)),
            json!(age(object, now)),
            json!(container_names(pod)),
            json!(container_images(pod)),
        ]
    },
};

pub(super) const DAEMON_SET: Table = Table {
    columns: &[
        ("Name", "string", 0),
        ("Desired", "integer", 0),
        ("Current", "integer", 0),
        ("Ready", "integer", 0),
        ("Up-to-date", "integer", 0),
        ("Available", "integer", 0),
        ("Node Selector", "string", 0),
        ("Age", "string", 0),
        ("Containers", "string", 1),
        ("Images", "string", 1),
        ("Selector", "string", 1),
    ],
    cells: |object, now| {
        let status = &object["status"];
        let nodes = entries_of(&object["spec"]["template"]["spec"]["nodeSelector"]);
        let nodes = joined(nodes.map(|(key, value)| format!("{key}={}", text(value))));
        let mut cells = vec![
            name(object),
            json!(number(&status["desiredNumberScheduled"])),
            json!(number(&status["currentNumberScheduled"])),
            json!(number(&status["numberReady"])),
            json!(number(&status["updatedNumberScheduled"])),
            json!(number(&status["numberAvailable"])),
            json!(or(&nodes, NONE)),
            json!(age(object, now)),
        ];
        cells.extend(wide(&object["spec"]));
        cells
    },
};

pub(super) const JOB: Table = Table {
    columns: &[
        ("Name", "string", 0),
        ("Status", "string", 0),
        ("Completions", "string", 0),
        ("Duration", "string", 0),
        ("Age", "string", 0),
        ("Containers", "string", 1),
        ("Images", "string", 1),
        ("Selector", "string", 1),
    ],
    cells: |object, now| {
        let mut cells = vec![
            name(object),
            json!(job_status(object)),
            json!(job_completions(object)),
            json!(job_duration(object, now)),
            json!(age(object, now)),
        ];
        cells.extend(wide(&object["spec"]));
        cells
    },
};

pub(super) const CRON_JOB: Table = Table {
    columns: &[
        ("Name", "string", 0),
        ("Schedule", "string", 0),
        ("Timezone", "string", 0),
        ("Suspend", "boolean", 0),
        ("Active", "integer", 0),
        ("Last Schedule", "string", 0),
        ("Age", "string", 0),
        ("Containers", "string", 1),
        ("Images", "string", 1),
        ("Selector", "string", 1),
    ],
    cells: |object, now| {
        let (spec, status) = (&object["spec"], &object["status"]);
        let last = status["lastScheduleTime"].as_str();
        let mut cells = vec![
            name(object),
            json!(text(&spec["schedule"])),
            json!(or(text(&spec["timeZone"]), NONE)),
            // Text: kube-apiserver declares a column of booleans, and fills it with words.
            json!(if spec["suspend"] == true {
                "True"
            } else {
                "False"
            }),
            json!(items(&status["active"]).len()),
            json!(last.map_or_else(|| NONE.to_owned(), |last| age::since(Some(last), now))),
            json!(age(object, now)),
        ];
        cells.extend(wide(&spec["jobTemplate"]["spec"]));
        cells
    },
};

pub(super) const DISRUPTION_BUDGET: Table = Table {
    columns: &[
        ("Name", "string", 0),
        ("Min Available", "string", 0),
        ("Max Unavailable", "string", 0),
        ("Allowed Disruptions", "integer", 0),
        ("Age", "string", 0),
    ],
    cells: |object, now| {
        vec![
            name(object),
            json!(count_or_percent(&object["spec"]["minAvailable"])),
            json!(count_or_percent(&object["spec"]["maxUnavailable"])),
            json!(number(&object["status"]["disruptionsAllowed"])),
            json!(age(object, now)),
        ]
    },
};

fn count_or_percent(value: &Value) -> String {
    match value {
        Value::Null => "N/A".to_owned(),
        Value::String(percent) => percent.clone(),
        count => count.to_string(),
    }
}

/// Returns the wide cells of a workload with a template of its pods.
fn wide(spec: &Value) -> [Value; 3] {
    let pod = &spec["template"]["spec"];
    [
        json!(container_names(pod)),
        json!(container_images(pod)),
        json!(or(&selector(&spec["selector"]), NONE)),
    ]
}

/// Returns the replicas that are wanted: one, if the object does not say it.
fn desired_replicas(object: &Value) -> i64 {
    object["spec"]["replicas"].as_i64().unwrap_or(1)
}

fn ready_replicas(object: &Value) -> String {
    let ready = number(&object["status"]["readyReplicas"]);
    format!("{ready}/{}", desired_replicas(object))
}

fn job_status(job: &Value) -> &'static str {
    if has_condition(job, "Complete") {
        "Complete"
    } else if has_condition(job, "Failed") {
        "Failed"
    } else if !job["metadata"]["deletionTimestamp"].is_null() {
        "Terminating"
    } else if has_condition(job, "Suspended") {
        "Suspended"
    } else if has_condition(job, "FailureTarget") {
        "FailureTarget"
    } else if has_condition(job, "SuccessCriteriaMet") {
        "SuccessCriteriaMet"
    } else {
        "Running"
    }
}

fn job_completions(job: &Value) -> String {
    let succeeded = number(&job["status"]["succeeded"]);
    let parallelism = number(&job["spec"]["parallelism"]);
    match job["spec"]["completions"].as_i64() {
        Some(completions) => format!("{succeeded}/{completions}"),
        None if parallelism > 1 => format!("{succeeded}/1 of {parallelism}"),
        None => format!("{succeeded}/1"),
    }
}

/// Returns the time that a Job has run: until now, if it is not complete.
fn job_duration(job: &Value, now: Timestamp) -> String {
    let completed = job["status"]["completionTime"].as_str();
    match job["status"]["startTime"].as_str() {
        None => String::new(),
        started => age::since(
            started,
            completed.and_then(|at| at.parse().ok()).unwrap_or(now),
        ),
    }
}
