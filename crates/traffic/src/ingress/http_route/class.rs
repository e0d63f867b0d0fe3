use jiff::Timestamp;
use karmada_api::gateway_api::GatewayClass;
use objects::condition::find;
use objects::patch::JsonPatch;
use serde_json::json;

use super::said::{ACCEPTED, Said};
use crate::ingress::class::ControllerName;

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
    let told = current.unwrap_or_default();
    let said = Said::yes(
        ACCEPTED,
        "The ingress-controller reads the HTTPRoutes of its Gateways",
    );
    let wanted = said.condition(told, class.metadata.generation, now);
    if find(told, ACCEPTED) == Some(&wanted) {
        return steps;
    }
    match status {
        Some(_) => steps.conditions(current, &[wanted]),
        None => steps.add(["status"], json!({ "conditions": [wanted] })),
    }
    steps
}
