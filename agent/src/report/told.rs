//! The Events about reports. They are on the Lease of the agents, which may write none about a cluster.

use k8s_openapi::api::coordination::v1::Lease;
use k8s_openapi::api::core::v1::ObjectReference;
use karmada_runtime::events::EventReason;
use karmada_runtime::panics::Panicked;
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
    let refuses = format!("the API refuses every write of the condition {condition} of {cluster}");
    warning(Reason::ConditionRefused, format!("{refuses}: {reason}"))
}

/// Returns the Event of a declared signal whose condition another writes.
pub(super) fn taken(cluster: &str, condition: &str) -> Event {
    let note = format!(
        "another writes the condition {condition} of {cluster}, which stays as it is: give the signal another condition in the file of signals"
    );
    warning(Reason::ConditionTaken, note)
}

/// Returns the Event of a fault of this program in its report on `cluster`.
pub(super) fn failed(cluster: &str, panicked: Panicked) -> Event {
    let note = format!("{cluster} is not reported on: {panicked}");
    warning(Reason::ReportFailed, note)
}

fn warning(reason: Reason, note: String) -> Event {
    Event {
        type_: EventType::Warning,
        reason: reason.as_str().to_owned(),
        note: Some(note),
        action: "Report".to_owned(),
        secondary: None,
    }
}
