//! The Events about Works, which regard their `AppliedWork`s.

use karmada_api::condition::FALSE;
use karmada_api::fleet::conditions::{APPLIED, PREPARING};
use karmada_api::fleet::work::WorkStatus;
use karmada_runtime::events::EventReason;
use kube::runtime::events::{Event, EventType};
use objects::condition::find;

use crate::reason::Reason;

/// Returns the Event about the first manifest that is not applied, if that is another than before, or for another
/// reason.
pub(crate) fn not_applied(before: &WorkStatus, after: &WorkStatus) -> Option<Event> {
    let note = first_failure(after)?;
    let is_news = first_failure(before).as_ref() != Some(&note);
    is_news.then(|| warning(Reason::WorkNotApplied, note, "Apply"))
}

/// Returns the Event about a Work whose hub has gone back in time.
pub(crate) fn rewound() -> Event {
    let note = "The hub has an older version of this Work than before: what is in none of its manifests is kept in the \
                member until the Work is newer again";
    warning(Reason::WorkRewound, note.to_owned(), "Prune")
}

fn first_failure(status: &WorkStatus) -> Option<String> {
    status.manifest_conditions.iter().find_map(|one| {
        let applied = find(&one.conditions, APPLIED)?;
        let has_failed = applied.status == FALSE && applied.reason != PREPARING;
        let place = one.identifier.ordinal;
        has_failed.then(|| format!("Manifest {place}: {}: {}", applied.reason, applied.message))
    })
}

fn warning(reason: Reason, note: String, action: &str) -> Event {
    Event {
        type_: EventType::Warning,
        reason: reason.as_str().to_owned(),
        note: Some(note),
        action: action.to_owned(),
        secondary: None,
    }
}
