//! The end of a practice, recorded in the status of its Remedy and as an Event on it.

use std::fmt;

use jiff::Timestamp;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Condition;
use karmada_api::Remedy;
use karmada_api::condition::{FALSE, TRUE};
use karmada_api::remedy::PRACTICED;
use kube::runtime::events::{Event, EventType, Recorder};
use kube::{Api, Client, Resource, ResourceExt};
use objects::condition::{find, transition, upsert};
use objects::write::{Guard, ObjectRef, Write};
use serde_json::json;

use crate::age::span;
use crate::args::{DryRun, PracticeArgs};
use crate::error::Error;
use crate::identity::NAME;
use crate::send::{Edited, edit};
use crate::terminal;

/// The longest message of an Event.
const LONGEST_NOTE: usize = 1024;

/// How a practice has ended.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Outcome {
    /// The others did without the cluster for this time.
    Well(String),
    /// They did not.
    Worse(Vec<String>),
    /// Nobody knows, for this reason.
    Interrupted(String),
    /// Nobody knows, for the Remedy is no longer that of the practice.
    Replaced(String),
}

impl Outcome {
    /// Returns the outcome of a practice that has lasted for all of its time.
    pub(super) fn of_whole(args: &PracticeArgs, was_blocked: bool) -> Self {
        if was_blocked {
            let seconds = i64::try_from(args.length.as_secs());
            Self::Well(span(seconds.unwrap_or(i64::MAX)))
        } else {
            let reason = "nobody took the traffic away; `kubectl remedy check` tells who should";
            Self::Interrupted(reason.to_owned())
        }
    }

    pub(super) fn is_well(&self) -> bool {
        matches!(self, Self::Well(_))
    }

    fn reason(&self) -> &'static str {
        match self {
            Self::Well(_) => "PracticeSucceeded",
            Self::Worse(_) => "PracticeEndedEarly",
            Self::Interrupted(_) | Self::Replaced(_) => "PracticeInterrupted",
        }
    }

    /// Records the outcome in the status of the Remedy, where it has one, and as an Event.
    pub(super) async fn record(&self, remedy: &str, client: &Client) -> Result<(), Error> {
        let remedies: Api<Remedy> = Api::all(client.clone());
        let edited = edit(&remedies, remedy, DryRun::None, |found| {
            Some(self.write(found, Timestamp::now()))
        });
        let found = match edited.await {
            Ok(Edited::Written(found) | Edited::Unchanged(found)) => found,
            Ok(Edited::Absent(Some(found))) => {
                terminal::print_error(
                    "the Remedies of this API have no status: only an Event has the outcome",
                );
                found
            }
            Ok(Edited::Absent(None)) => return Ok(()),
            Err(source) => {
                let attempt = format!("write the status of Remedy {remedy}");
                return Err(Error::request(attempt, source));
            }
        };
        self.publish(&found, client).await;
        Ok(())
    }

    /// Returns the write of the status of the Remedy. The conditions of others stay as they are.
    fn write(&self, remedy: &Remedy, now: Timestamp) -> Write {
        let status = remedy.status.as_ref();
        let conditions = status.and_then(|status| status.conditions.clone());
        let mut conditions = conditions.unwrap_or_default();
        let status = if self.is_well() { TRUE } else { FALSE };
        let new = Condition {
            type_: PRACTICED.to_owned(),
            status: status.to_owned(),
            reason: self.reason().to_owned(),
            message: format!("{now:.0}: {self}"),
            last_transition_time: transition(find(&conditions, PRACTICED), status, now),
            observed_generation: remedy.metadata.generation,
        };
        upsert(&mut conditions, new);
        let body = json!({ "status": { "conditions": conditions } });
        let write = Write::merge("remedy_status", ObjectRef::of(remedy, &()), body);
        write.of_status().guarded(Guard::Version)
    }

    /// Publishes the Event. That informs: the outcome is the same without it.
    async fn publish(&self, remedy: &Remedy, client: &Client) {
        let mut note = self.to_string();
        note.truncate(note.floor_char_boundary(LONGEST_NOTE));
        let event = Event {
            type_: if self.is_well() {
                EventType::Normal
            } else {
                EventType::Warning
            },
            reason: self.reason().to_owned(),
            note: Some(note),
            action: "Practise".to_owned(),
            secondary: None,
        };
        let recorder = Recorder::new(client.clone(), NAME.into());
        if let Err(error) = recorder.publish(&event, &remedy.object_ref(&())).await {
            let name = remedy.name_any();
            terminal::print_error(&format!("no Event on Remedy {name}: {error}"));
        }
    }
}

impl fmt::Display for Outcome {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Well(length) => write!(f, "the others did without it for {length}"),
            Self::Worse(troubles) => write!(f, "ended early: {}", troubles.join("; ")),
            Self::Interrupted(reason) | Self::Replaced(reason) => {
                write!(f, "no outcome: {reason}")
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::from_value;

    use super::*;

    /// The outcome takes the place of the one before, beside the conditions of the remedy-controller.
    #[test]
    fn last_outcome_counts() {
        let now: Timestamp = "2026-11-20T08:00:00.7Z".parse().unwrap();
        let time = "2026-11-13T08:00:00Z";
        let old = |kind: &str| {
            json!({ "type": kind, "status": "True", "reason": "Old", "message": "",
                "lastTransitionTime": time })
        };
        let remedy: Remedy = from_value(json!({
            "metadata": { "name": "practice-m1", "resourceVersion": "7" }, "spec": {},
            "status": { "conditions": [old("Accepted"), old(PRACTICED)] },
        }))
        .unwrap();
        let worse = Outcome::Worse(vec!["a".to_owned(), "b".to_owned()]);
        let patch = worse.write(&remedy, now).guarded_body();
        assert_eq!(patch["metadata"]["resourceVersion"], "7");
        let conditions = &patch["status"]["conditions"];
        assert_eq!(conditions[0]["reason"], "Old");
        assert_eq!(conditions[1]["reason"], "PracticeEndedEarly");
        assert_eq!(conditions[1]["status"], "False");
        let message = conditions[1]["message"].as_str().unwrap();
        assert!(message.ends_with(": ended early: a; b"), "{message}");
        let again = Outcome::Well("10m".to_owned()).write(&remedy, now);
        assert_eq!(
            again.body()["status"]["conditions"][1]["lastTransitionTime"],
            time
        );
    }
}
