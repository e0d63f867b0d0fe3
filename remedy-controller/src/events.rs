//! The Events recorded on clusters.

use k8s_openapi::apimachinery::pkg::apis::meta::v1::Condition;
use karmada_api::{Remedy, RemedySpec};
use karmada_rules::remedy::{ActionChange, OverBound};
use kube::Resource;
use kube::runtime::events::{Event, EventType};

/// Returns the Event of a condition of ours whose status changed.
pub(crate) fn condition_changed(condition: &Condition) -> Event {
    let healthy = condition.status == karmada_api::condition::TRUE;
    let Condition {
        type_,
        status,
        message,
        ..
    } = condition;
    Event {
        type_: if healthy {
            EventType::Normal
        } else {
            EventType::Warning
        },
        reason: condition.reason.clone(),
        note: Some(format!("{type_} is {status}: {message}")),
        action: "Observe".to_owned(),
        secondary: None,
    }
}

/// Returns the Event of an action that was set or cleared.
pub(crate) fn action_changed(change: &ActionChange) -> Event {
    let (type_, reason, remedy) = match change {
        ActionChange::Set { remedy, .. } => (EventType::Warning, "RemedyActionSet", Some(remedy)),
        ActionChange::Cleared { .. } => (EventType::Normal, "RemedyActionCleared", None),
    };
    let secondary = remedy.map(|name| {
        let mut reference = Remedy::new(name, RemedySpec::default()).object_ref(&());
        reference.uid = None;
        reference
    });
    Event {
        type_,
        reason: reason.to_owned(),
        note: Some(change.to_string()),
        action: "Remedy".to_owned(),
        secondary,
    }
}

/// Returns the Event of a cluster that the bound keeps unblocked.
pub(crate) fn kept_unblocked(over_bound: &OverBound) -> Event {
    Event {
        type_: EventType::Warning,
        reason: "MaxBlockedClustersReached".to_owned(),
        note: Some(over_bound.to_string()),
        action: "Remedy".to_owned(),
        secondary: None,
    }
}
