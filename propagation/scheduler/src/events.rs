//! The Events recorded on bindings and their templates.

use std::sync::Arc;

use karmada_api::{GracefulEvictionTask, TargetCluster};
use karmada_runtime::commit::{Notices, Obstacle};
use karmada_runtime::events::{EventReason, EventRecorder};
use kube::runtime::events::{Event, EventType};
use parking_lot::Mutex;
use propagation_rules::schedule::SUCCESS;

use crate::binding::AnyBinding;
use crate::index::Index;
use crate::reason::Reason;

/// Records an Event on a binding and on its template.
pub(crate) fn record(events: &EventRecorder, binding: &AnyBinding, event: impl Fn() -> Event) {
    events.record(binding.object().reference(), event());
    events.record(binding.template(), event());
}

/// Returns the notices of bindings of which another client undoes the clusters.
pub(crate) fn notices(events: EventRecorder, index: Arc<Mutex<Index>>) -> Notices {
    Box::new(move |write, obstacle| {
        let binding = index.lock().binding(&write.object.key);
        if let (Obstacle::Contested(manager), Some(binding)) = (obstacle, binding) {
            record(&events, &binding, || contested(manager));
        }
    })
}

/// Returns the Event of a binding that has got its clusters.
pub(crate) fn scheduled(clusters: &[TargetCluster]) -> Event {
    let targets = clusters.iter().map(|target| match target.replicas {
        Some(replicas) => format!("{}:{replicas}", target.name),
        None => target.name.clone(),
    });
    let targets = targets.collect::<Vec<_>>().join(", ");
    let note = format!("{SUCCESS} Result: {{{targets}}}");
    event(EventType::Normal, Reason::ScheduleBindingSucceed, note)
}

/// Returns the Event of a binding that could not be scheduled.
pub(crate) fn failed(message: &str) -> Event {
    event(
        EventType::Warning,
        Reason::ScheduleBindingFailed,
        message.to_owned(),
    )
}

/// Returns the Event of a binding that leaves a cluster.
pub(crate) fn evicted(task: &GracefulEvictionTask) -> Event {
    let cluster = &task.from_cluster;
    let message = task.message.as_deref().unwrap_or_default();
    let note = format!("Evict from cluster {cluster}: {message}");
    event(
        EventType::Normal,
        Reason::EvictWorkloadFromClusterSucceed,
        note,
    )
}

/// Returns the Event of a binding whose clusters `manager` undoes.
fn contested(manager: &str) -> Event {
    let note = format!(
        "{manager} undoes every write to spec.clusters; this scheduler writes again after growing pauses, up to 5 minutes"
    );
    event(EventType::Warning, Reason::BindingContested, note)
}

fn event(type_: EventType, reason: Reason, note: String) -> Event {
    Event {
        type_,
        reason: reason.as_str().to_owned(),
        note: Some(note),
        action: "ScheduleBinding".to_owned(),
        secondary: None,
    }
}
