//! The Events of this program.

use karmada_api::Condition;
use karmada_api::condition::TRUE;
use karmada_api::work::{ManifestIdentifier, ManifestStatus};
use karmada_runtime::commit::{Notices, Obstacle};
use karmada_runtime::events::{EventReason, EventRecorder};
use karmada_runtime::panics::Panicked;
use kube::runtime::events::{Event, EventType};
use objects::Key;
use propagation_rules::execution::{StatusNews, SyncOutcome, identifier};
use serde_json::Value;

use crate::reason::Reason;

/// Returns the notices about writes that the API refuses, on the imports for which these are.
pub(crate) fn notices(events: EventRecorder) -> Notices {
    Box::new(move |write, obstacle| {
        let Obstacle::Refused(reason) = obstacle else {
            return;
        };
        for import in &write.about {
            events.record(import.clone(), refused(&write.object.key, reason));
        }
    })
}

/// Returns the Event of an import whose Service is refused.
fn refused(service: &Key, reason: &str) -> Event {
    let note = format!("Service {service} cannot be written for the import: {reason}");
    let derive = Reason::DeriveServiceFailed;
    event(EventType::Warning, derive, &note, "Import")
}

/// Returns the Event about news in a Work's status.
pub(crate) fn news(news: &StatusNews) -> Event {
    match news {
        StatusNews::Dispatching(condition) => dispatching_changed(condition),
        StatusNews::Applied(condition) => applied_changed(condition),
        StatusNews::Withheld(condition) => withheld_changed(condition),
        StatusNews::Reflected(manifest) => reflected(manifest),
        StatusNews::Interpreted(manifest) => interpreted(manifest),
    }
}

/// Returns the Event about a change of the condition `Dispatching`.
fn dispatching_changed(condition: &Condition) -> Event {
    event(
        EventType::Normal,
        Reason::WorkDispatching,
        &condition.message,
        "Dispatch",
    )
}

/// Returns the Event about a change of the condition `Applied`.
fn applied_changed(condition: &Condition) -> Event {
    if condition.status == TRUE {
        event(
            EventType::Normal,
            Reason::SyncSucceed,
            &condition.message,
            "Sync",
        )
    } else {
        event(
            EventType::Warning,
            Reason::SyncFailed,
            &condition.message,
            "Sync",
        )
    }
}

/// Returns the Event about a change of the condition `Withheld`.
fn withheld_changed(condition: &Condition) -> Event {
    let (reason, action) = if condition.status == TRUE {
        (Reason::EndpointSliceWithheld, "Withhold")
    } else {
        (Reason::EndpointSliceReleased, "Release")
    };
    event(EventType::Normal, reason, &condition.message, action)
}

fn reflected(manifest: &ManifestIdentifier) -> Event {
    let note = format!("Reflect status for object({}) succeed.", named(manifest));
    event(
        EventType::Normal,
        Reason::ReflectStatusSucceed,
        &note,
        "Reflect",
    )
}

fn interpreted(manifest: &ManifestStatus) -> Event {
    let object = named(&manifest.identifier);
    let health = manifest.health.as_deref().unwrap_or_default();
    let note = format!("Interpret health of object({object}) as {health}.");
    let reason = Reason::InterpretHealthSucceed;
    event(EventType::Normal, reason, &note, "Interpret")
}

/// Returns the news about scripts and webhooks that have failed.
pub(crate) fn troubles(outcome: SyncOutcome<'_>) -> Vec<(Reason, String)> {
    let mut troubles = Vec::new();
    for (one, ordinal) in outcome.manifests.iter().zip(0..) {
        let object = named(&identifier(one.manifest, ordinal));
        if let Some(Err(error)) = &one.interpreted.status {
            let note = format!("Reflect status for object({object}) failed, err: {error}.");
            troubles.push((Reason::ReflectStatusFailed, note));
        }
        if let Some(Err(error)) = &one.interpreted.is_healthy {
            let note = format!("Interpret health of object({object}) failed, err: {error}.");
            troubles.push((Reason::InterpretHealthFailed, note));
        }
    }
    troubles
}

/// Returns the Event about a script or webhook that has failed.
pub(crate) fn warning(reason: Reason, note: &str) -> Event {
    event(EventType::Warning, reason, note, "Interpret")
}

/// Returns the Event about a panic, which is about a cluster.
pub(crate) fn panicked(panicked: Panicked) -> Event {
    event(
        EventType::Warning,
        Reason::MemberTaskFailed,
        &panicked.to_string(),
        "Watch",
    )
}

/// Returns the Event about the object of a manifest that `manager` changes back in a member each time.
pub(crate) fn contested(
    manifest: &Value,
    ordinal: i64,
    cluster: &str,
    manager: Option<&str>,
) -> Event {
    let object = named(&identifier(manifest, ordinal));
    let manager = manager.unwrap_or("another client");
    let note = format!(
        "{manager} undoes every write to object({object}) in member({cluster}); this controller writes again after growing pauses, up to 5 minutes"
    );
    let reason = Reason::MemberObjectContested;
    event(EventType::Warning, reason, &note, "Sync")
}

fn named(manifest: &ManifestIdentifier) -> String {
    let ManifestIdentifier {
        kind,
        namespace,
        name,
        ..
    } = manifest;
    let parts = [kind, namespace, name].into_iter();
    let parts = parts.filter(|part| !part.is_empty()).map(String::as_str);
    parts.collect::<Vec<_>>().join("/")
}

fn event(type_: EventType, reason: Reason, note: &str, action: &str) -> Event {
    Event {
        type_,
        reason: reason.as_str().to_owned(),
        note: Some(note.to_owned()),
        action: action.to_owned(),
        secondary: None,
    }
}
