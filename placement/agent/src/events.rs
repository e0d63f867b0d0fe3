//! The Events about Works, which regard their `AppliedWork`s.

use fleet_api::conditions::{APPLIED, DIFF_REPORTED, PREPARING};
use fleet_api::work::WorkStatus;
use karmada_runtime::events::EventReason;
use kube::runtime::events::{Event, EventType};
use objects::condition::{FALSE, find};

use crate::reason::Reason;

/// Returns the Event about the first manifest that is not applied, or not compared where that is all that is asked for,
/// if that is another than before, or for another reason.
pub(crate) fn failure(before: &WorkStatus, after: &WorkStatus) -> Option<Event> {
    let events = [
        (APPLIED, Reason::WorkNotApplied, "Apply"),
        (DIFF_REPORTED, Reason::WorkNotCompared, "Compare"),
    ];
    events.into_iter().find_map(|(kind, reason, action)| {
        let note = first_failure(after, kind)?;
        let is_news = first_failure(before, kind).as_ref() != Some(&note);
        is_news.then(|| warning(reason, note, action))
    })
}

/// Returns the Event about a Work whose hub has gone back in time.
pub(crate) fn rewound() -> Event {
    let note = "The hub has an older version of this Work than before: what is in none of its manifests is kept in the \
                member until the Work is newer again";
    warning(Reason::WorkRewound, note.to_owned(), "Prune")
}

fn first_failure(status: &WorkStatus, kind: &str) -> Option<String> {
    status.manifest_conditions.iter().find_map(|one| {
        let said = find(&one.conditions, kind)?;
        let has_failed = said.status == FALSE && said.reason != PREPARING;
        let place = one.identifier.ordinal;
        has_failed.then(|| format!("Manifest {place}: {}: {}", said.reason, said.message))
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
