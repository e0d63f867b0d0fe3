//! Conditions that the API refuses, of which an Event on the Lease of the agents tells: they may write nothing else there.

use k8s_openapi::api::coordination::v1::Lease;
use k8s_openapi::api::core::v1::ObjectReference;
use karmada_runtime::events::EventReason;
use kube::Resource;
use kube::runtime::events::{Event, EventType};

use crate::reason::Reason;

/// Returns the reference to the Lease of the agents in `namespace`.
pub(crate) fn lease_in(namespace: String) -> ObjectReference {
    let mut lease = Lease::default();
    lease.metadata.name = Some(crate::identity::NAME.to_owned());
    lease.metadata.namespace = Some(namespace);
    lease.object_ref(&())
}

/// Returns the Event of a condition of `cluster` that the API refuses for this reason.
pub(super) fn refused(cluster: &str, condition: &str, reason: &str) -> Event {
    Event {
        type_: EventType::Warning,
        reason: Reason::ConditionRefused.as_str().to_owned(),
        note: Some(format!(
            "the API refuses every write of the condition {condition} of {cluster}: {reason}"
        )),
        action: "Report".to_owned(),
        secondary: None,
    }
}
