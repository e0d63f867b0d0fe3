//! The forms in which an API takes Events.

use k8s_openapi::api::core::v1::Event as CoreEvent;
use k8s_openapi::api::events::v1::Event;
use kube::api::PostParams;
use kube::core::ObjectMeta;
use kube::{Api, Client};

/// The form of an Event. The rights to write one are those to its group.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum EventForm {
    /// `events.k8s.io/v1`.
    Current,
    /// `v1`, which Karmada grants to the agents of its members.
    Core,
}

impl EventForm {
    /// Writes an Event in this form, as `manager`.
    pub(super) async fn create(
        self,
        client: Client,
        manager: &str,
        namespace: &str,
        event: Event,
    ) -> kube::Result<()> {
        let parameters = PostParams {
            field_manager: Some(manager.to_owned()),
            ..PostParams::default()
        };
        match self {
            Self::Current => {
                let events = Api::namespaced(client, namespace);
                events.create(&parameters, &event).await.map(drop)
            }
            Self::Core => {
                let events = Api::namespaced(client, namespace);
                let event = core(event, namespace);
                events.create(&parameters, &event).await.map(drop)
            }
        }
    }
}

fn core(event: Event, namespace: &str) -> CoreEvent {
    CoreEvent {
        // This form is validated more strictly: it names its namespace.
        metadata: ObjectMeta {
            namespace: Some(namespace.to_owned()),
            ..event.metadata
        },
        event_time: event.event_time,
        type_: event.type_,
        reason: event.reason,
        message: event.note,
        action: event.action,
        involved_object: event.regarding.unwrap_or_default(),
        related: event.related,
        reporting_component: event.reporting_controller,
        reporting_instance: event.reporting_instance,
        ..CoreEvent::default()
    }
}
