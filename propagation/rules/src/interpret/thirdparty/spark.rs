//! The operator of Apache Spark.

use objects::amounts::Amounts;
use objects::quantity::Quantity;
use serde_json::{Map, Value, json};

use super::aggregation::Aggregation;
use super::interpreter::{Interpreter, Known};
use super::reading::{count, is_empty, needs, status_part, text};
use crate::interpret::components::{Component, with_requirements};
use crate::interpret::replicas::node_claim;

pub(super) const KINDS: &[Known] = &[(
    "sparkoperator.k8s.io/v1beta2",
    "SparkApplication",
    Interpreter {
        components: Some(components),
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

/// A driver and its executors, of which those that it starts with count.
fn components(application: &Value) -> Vec<Component> {
    let mut executors = count(application, "/spec/executor/instances").unwrap_or(1);
    let allocation = &application["spec"]["dynamicAllocation"];
    if allocation["enabled"] == true {
        let initial = count(allocation, "/initialExecutors").unwrap_or(1);
        let least = count(allocation, "/minExecutors").unwrap_or(1);
        executors = executors.max(initial).max(least);
    }
    let factor = overhead_factor(application);
    let parts = [("driver", 1), ("executor", executors)].map(|(name, replicas)| {
        let needs = requirements(&application["spec"][name], factor);
        with_requirements(name, replicas, needs)
    });
    parts.into()
}

/// Returns the part of its memory that a Pod needs besides.
fn overhead_factor(application: &Value) -> f64 {
    let factor = application.pointer("/spec/memoryOverheadFactor");
    let factor = factor.and_then(|factor| match factor {
        Value::String(text) => text.parse().ok(),
        number => number.as_f64(),
    });
    factor.unwrap_or_else(|| {
        let kind = text(application, "/spec/type").to_ascii_lowercase();
        if ["java", "scala"].contains(&&*kind) {
            0.1
        } else {
            0.4
        }
    })
}

fn requirements(pod: &Value, overhead_factor: f64) -> Option<Value> {
    let cores = pod.get("cores").filter(|cores| !cores.is_null());
    let one = json!(1);
    let mut request = json!({ "cpu": cores.unwrap_or(&one) });
    let gpus = count(pod, "/gpu/quantity").unwrap_or_default();
    let gpu = text(pod, "/gpu/name");
    if gpus > 0 && !gpu.is_empty() {
        request[gpu] = gpus.into();
    }
    let request = Amounts::read(Some(&request)).texts().into_iter();
    let request = request.map(|(name, amount)| (name, amount.into()));
    let memory = memory(pod, overhead_factor).map(|amount| ("memory".to_owned(), amount.into()));
    let request = request.chain(memory).collect();
    needs(node_claim(pod), pod.get("priorityClassName"), request)
}

/// Returns the memory that a Pod needs with the overhead of Spark, to a millionth of the smaller unit of both, as
/// Karmada computes it; 1 GiB if it does not say how much.
fn memory(pod: &Value, overhead_factor: f64) -> Option<String> {
    const LEAST: (f64, i32) = (384.0, 2);
    let memory = java_memory(text(pod, "/memory")).unwrap_or((1.0, 3));
    let overhead = java_memory(text(pod, "/memoryOverhead")).unwrap_or_else(|| {
        let unit = memory.1.min(LEAST.1);
        let part = in_unit((memory.0 * overhead_factor, memory.1), unit);
        (part.max(in_unit(LEAST, unit)), unit)
    });
    let unit = memory.1.min(overhead.1);
    let total = in_unit(memory, unit) + in_unit(overhead, unit);
    let suffix = ["", "Ki", "Mi", "Gi", "Ti", "Pi"].get(usize::try_from(unit).ok()?)?;
    let total = Quantity::parse(&format!("{total:.6}{suffix}"))?;
    let is_whole = total.millis() % 1000 == 0;
    Some(if is_whole {
        total.binary()
    } else {
        total.milli()
    })
}

/// Reads an amount of memory as Java has it, such as `512m` or `2g`: a number, and the power of 1024 that is its unit.
/// Without one Spark means mebibytes.
fn java_memory(text: &str) -> Option<(f64, i32)> {
    let text = text.to_ascii_lowercase();
    let end = text.find(|c: char| c.is_ascii_alphabetic());
    let (number, unit) = text.split_at(end.unwrap_or(text.len()));
    let power = match unit {
        "b" => 0,
        "k" | "kb" => 1,
        "" | "m" | "mb" => 2,
        "g" | "gb" => 3,
        "t" | "tb" => 4,
        "p" | "pb" => 5,
        _ => return None,
    };
    Some((number.parse().ok()?, power))
}

/// Returns an amount in the unit that is this power of 1024.
fn in_unit((amount, power): (f64, i32), unit: i32) -> f64 {
    amount * 1024_f64.powi(power - unit)
}

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
