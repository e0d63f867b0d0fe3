//! The Events about clusters, with Karmada's reasons.

use karmada_api::condition::TRUE;
use karmada_api::execution_namespace;
use karmada_runtime::events::EventReason;
use karmada_runtime::panics::Panicked;
use kube::runtime::events::{Event, EventType};
use propagation_rules::cluster::{ClusterChange, Report};

use crate::reason::Reason;

/// Returns the Event about a change of `cluster`.
pub(crate) fn changed(cluster: &str, change: &ClusterChange) -> Event {
    let namespace = execution_namespace(cluster);
    match change {
        ClusterChange::Health(report) => health_changed(report),
        ClusterChange::NamespaceCreated => normal(
            Reason::CreateExecutionSpaceSucceed,
            format!("Created execution space({namespace}) for cluster({cluster}) successfully."),
            "CreateExecutionSpace",
        ),
        ClusterChange::NamespaceDeleted => normal(
            Reason::RemoveExecutionSpaceSucceed,
            format!("Removed execution space({namespace}) for cluster({cluster}) successfully."),
            "RemoveExecutionSpace",
        ),
        ClusterChange::Taints(taints) => normal(
            Reason::TaintClusterSucceed,
            if taints.is_empty() {
                "Taint cluster succeed: cluster now does not have taints.".to_owned()
            } else {
                let taints = taints.join(", ");
                format!("Taint cluster succeed: cluster now does have taints({taints}).")
            },
            "TaintCluster",
        ),
    }
}

/// Returns the Event about a panic.
pub(crate) fn panicked(panicked: Panicked) -> Event {
    let reason = Reason::ClusterTaskFailed;
    let mut event = normal(reason, panicked.to_string(), "Probe");
    event.type_ = EventType::Warning;
    event
}

fn health_changed(report: &Report) -> Event {
    let reason = match report.reason {
        "ClusterReady" => Reason::ClusterReady,
        "ClusterNotReady" => Reason::ClusterNotReady,
        _ => Reason::ClusterNotReachable,
    };
    let mut event = normal(reason, report.message.clone(), "Probe");
    if report.status != TRUE {
        event.type_ = EventType::Warning;
    }
    event
}

fn normal(reason: Reason, note: String, action: &str) -> Event {
    Event {
        type_: EventType::Normal,
        reason: reason.as_str().to_owned(),
        note: Some(note),
        action: action.to_owned(),
        secondary: None,
    }
}
