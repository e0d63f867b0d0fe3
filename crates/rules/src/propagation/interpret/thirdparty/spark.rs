//! The operator of Apache Spark.

use serde_json::{Map, Value};

use super::aggregation::Aggregation;
use super::interpreter::{Interpreter, Known};
use super::reading::{is_empty, status_part, text};

pub(super) const KINDS: &[Known] = &[(
    "sparkoperator.k8s.io/v1beta2",
    "SparkApplication",
    Interpreter {
        is_healthy: Some(is_healthy),
        reflect: Some(|object| status_part(object, &STATUS).into()),
        aggregate: Some(aggregate),
        ..Interpreter::NONE
    },
)];

const STATUS: [&str; 9] = [
    "applicationState",
    "driverInfo",
    "executorState",
    "sparkApplicationId",
    "submissionID",
    "submissionAttempts",
    "executionAttempts",
    "lastSubmissionAttemptTime",
    "terminationTime",
];

/// A new application has a state that is empty.
fn is_healthy(object: &Value) -> bool {
    let state = object.pointer("/status/applicationState/state");
    let state = state.and_then(Value::as_str);
    state.is_some_and(|state| state != "FAILED")
}

fn aggregate(all: &Aggregation<'_>) -> Option<Map<String, Value>> {
    match all.copies() {
        0 => return None,
        1 => return all.alone(),
        _ => {}
    }
    let told = all.statuses().filter_map(|status| {
        let state = status.get("applicationState")?;
        (!is_empty(state)).then_some(state)
    });
    // Of equals the first.
    let worst = told.reduce(|worst, other| {
        if severity(other) > severity(worst) {
            other
        } else {
            worst
        }
    });
    let mut status = all.sums(&["executionAttempts", "submissionAttempts"]);
    let fields = [
        ("applicationState", worst.cloned().unwrap_or_default()),
        (
            "lastSubmissionAttemptTime",
            all.latest("lastSubmissionAttemptTime"),
        ),
        ("terminationTime", all.latest("terminationTime")),
        ("executorState", all.united("executorState").into()),
    ];
    status.extend(fields.map(|(name, value)| (name.to_owned(), value)));
    Some(all.keeping(status))
}

/// Returns how much a state of an application matters for all of it. One that is not known does not.
fn severity(state: &Value) -> u8 {
    match text(state, "/state") {
        "SUBMITTED" | "PENDING_RERUN" => 1,
        "COMPLETED" => 2,
        "SUSPENDING" | "SUSPENDED" => 3,
        "RUNNING" | "RESUMING" | "SUCCEEDING" => 4,
        "INVALIDATING" => 5,
        "FAILING" | "FAILED" | "SUBMISSION_FAILED" => 6,
        _ => 0,
    }
}
