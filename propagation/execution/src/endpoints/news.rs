//! The Events about obstacles to the collection of endpoints, each when it arises.

use std::collections::BTreeMap;

use karmada_api::ServiceExport;
use karmada_runtime::events::{EventReason, EventRecorder};
use kube::Resource;
use kube::runtime::events::{Event, EventType};
use parking_lot::Mutex;

use super::origin::Origin;
use crate::reason::Reason;

/// Records the obstacle to a collection on the export that asks for it.
#[derive(Debug)]
pub(super) struct News {
    /// Absent if nothing is written.
    events: Option<EventRecorder>,
    /// The obstacles that were recorded last.
    recorded: Mutex<BTreeMap<Origin, Obstacle>>,
}

/// An obstacle to the collection of endpoints.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Obstacle {
    pub(super) reason: Reason,
    pub(super) note: String,
}

impl News {
    pub(super) fn new(events: Option<EventRecorder>) -> Self {
        Self {
            events,
            recorded: Mutex::default(),
        }
    }

    /// Takes in the obstacle of now, and records it if that is news.
    pub(super) fn tell(
        &self,
        origin: &Origin,
        export: Option<&ServiceExport>,
        obstacle: Option<Obstacle>,
    ) {
        let mut recorded = self.recorded.lock();
        let Some(obstacle) = obstacle else {
            recorded.remove(origin);
            return;
        };
        let before = recorded.insert(origin.clone(), obstacle.clone());
        drop(recorded);
        if before.as_ref() == Some(&obstacle) {
            return;
        }
        let Obstacle { reason, note } = obstacle;
        tracing::warn!(cluster = origin.cluster, service = %origin.service, note, "Endpoints are not collected");
        let (Some(events), Some(export)) = (&self.events, export) else {
            return;
        };
        let event = Event {
            type_: EventType::Warning,
            reason: reason.as_str().to_owned(),
            note: Some(note),
            action: "Collect".to_owned(),
            secondary: None,
        };
        events.record(export.object_ref(&()), event);
    }
}
