//! The Events about runs.

use fleet_api::update::UpdateRunStatus;
use karmada_runtime::events::EventReason;
use kube::runtime::events::{Event, EventType};
use placement_rules::update::said;

use crate::reason::Reason;

/// Returns the Event of the change from one status to another, if users need to know.
pub(super) fn transition(before: &UpdateRunStatus, after: &UpdateRunStatus) -> Option<Event> {
    let said_now = said(after)?;
    let (reason, type_) = match &*said_now.reason {
        "UpdateRunInitializedSuccessfully" => (Reason::UpdateRunInitialized, EventType::Normal),
        "UpdateRunInitializedFailed" => (Reason::UpdateRunInitializedFailed, EventType::Warning),
        "UpdateRunWaiting" => (Reason::UpdateRunWaiting, EventType::Normal),
        "UpdateRunStuck" => (Reason::UpdateRunStuck, EventType::Warning),
        "UpdateRunStopped" => (Reason::UpdateRunStopped, EventType::Normal),
        "UpdateRunSucceeded" => (Reason::UpdateRunSucceeded, EventType::Normal),
        "UpdateRunFailed" => (Reason::UpdateRunFailed, EventType::Warning),
        _ => return None,
    };
    let is_news = said(before).is_none_or(|one| {
        // A run waits in one stage after another, and the obstacles of one may change by the minute.
        let may_repeat = said_now.reason == "UpdateRunWaiting" && one.message != said_now.message;
        one.reason != said_now.reason || may_repeat
    });
    is_news.then(|| Event {
        type_,
        reason: reason.as_str().to_owned(),
        note: Some(said_now.message.clone()),
        action: reason.as_str().to_owned(),
        secondary: None,
    })
}
