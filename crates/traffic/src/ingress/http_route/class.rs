use jiff::Timestamp;
use karmada_api::Condition;
use karmada_api::gateway_api::GatewayClass;
use objects::condition::{TRUE, find, transition};
use objects::patch::JsonPatch;
use serde_json::json;

use crate::ingress::class::ControllerName;

const ACCEPTED: &str = "Accepted";

/// Returns the write that tells users of `class` that our `controller` serves it, which needs a guard. It is empty if the class
/// is told already, or is that of another controller.
pub fn class_status(
    class: &GatewayClass,
    controller: &ControllerName,
    now: Timestamp,
) -> JsonPatch {
    let mut steps = JsonPatch::default();
    if class.spec.controller_name != controller.as_str() {
        return steps;
    }
    let status = class.status.as_ref();
    let current = status.and_then(|status| status.conditions.as_deref());
    let told = find(current.unwrap_or_default(), ACCEPTED);
    let wanted = Condition {
        type_: ACCEPTED.to_owned(),
        status: TRUE.to_owned(),
        reason: ACCEPTED.to_owned(),
        message: "The ingress-controller reads the HTTPRoutes of its Gateways".to_owned(),
        last_transition_time: Some(transition(told, TRUE, now)),
        observed_generation: class.metadata.generation,
        ..Condition::default()
    };
    if told == Some(&wanted) {
        return steps;
    }
    match status {
        Some(_) => steps.conditions(current, &[wanted]),
        None => steps.add(["status"], json!({ "conditions": [wanted] })),
    }
    steps
}
