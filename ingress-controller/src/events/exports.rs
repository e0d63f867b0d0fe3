//! The Events about the exports of Services, on the ingresses that route to these.

use std::collections::BTreeSet;
use std::sync::Arc;

use karmada_api::MultiClusterIngress;
use kube::runtime::events::EventType;
use objects::Key;
use objects::write::Write;

use super::IngressEvents;
use super::recorded::Recorded;
use super::references::reference;
use crate::ingresses::object;
use crate::provider::Obstacle;
use crate::reason::Reason;

impl IngressEvents {
    /// Records `obstacle` to the export of `service` on those of `ingresses`, which route there, that
    /// have no Event of it yet. `None` if there is none any more.
    pub(crate) fn export(
        &self,
        service: &Key,
        obstacle: Option<Obstacle>,
        ingresses: &[Arc<MultiClusterIngress>],
    ) {
        let mut exports = self.exports.lock();
        let before = exports.remove(service);
        let Some(obstacle) = obstacle else {
            return;
        };
        let before = before.filter(|(known, _)| known.is(&obstacle));
        let (known, mut recorded) =
            before.unwrap_or_else(|| (Recorded::now(obstacle.clone()), BTreeSet::new()));
        for ingress in ingresses {
            if recorded.insert(Key::of(&**ingress)) {
                let (reason, note) = (obstacle.reason, obstacle.message.clone());
                let related = reference(&obstacle.object);
                // Users may well export a Service themselves.
                let type_ = match reason {
                    Reason::ExportNotOurs => EventType::Normal,
                    _ => EventType::Warning,
                };
                self.record(object(ingress).reference(), type_, reason, note, related);
            }
        }
        exports.insert(service.clone(), (known, recorded));
    }

    /// Records, on those whom the export concerns, that `manager` undoes every write to it.
    pub(super) fn export_contested(&self, write: &Write, manager: &str) {
        let (kind, key) = (&write.object.resource.kind, &write.object.key);
        let note = format!(
            "{manager} undoes every write to {kind} {key}; this controller writes again after growing pauses, up to 5 minutes"
        );
        for ingress in &write.about {
            self.record(
                ingress.clone(),
                EventType::Warning,
                Reason::ExportContested,
                note.clone(),
                write.object.reference(),
            );
        }
    }
}
