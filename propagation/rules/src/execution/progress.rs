//! How far a Work has come in its member.

use jiff::Timestamp;
use karmada_api::Work;
use karmada_api::condition::FALSE;
use karmada_api::work::APPLIED;

use super::applied;

/// How far a Work has come.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub enum Progress {
    /// Its objects are as it has them.
    Applied,
    /// Its objects are not, or not known to be, as it has them.
    #[default]
    Unapplied,
    /// Nothing of it is created or changed.
    Suspended,
    /// It is being deleted, and its objects before it.
    Deleting,
}

impl Progress {
    /// Every progress.
    pub const ALL: [Self; 4] = [
        Self::Applied,
        Self::Unapplied,
        Self::Suspended,
        Self::Deleting,
    ];

    /// Returns how far a Work has come, by its status.
    pub fn of(work: &Work) -> Self {
        if work.metadata.deletion_timestamp.is_some() {
            Self::Deleting
        } else if work.is_suspended() {
            Self::Suspended
        } else if applied(work).is_some() {
            Self::Applied
        } else {
            Self::Unapplied
        }
    }
}

/// Returns since when a Work says that it is not applied, however often it was changed meanwhile; `None` if it was applied
/// before it was changed, for it does not say when that was.
pub fn unapplied_since(work: &Work) -> Option<Timestamp> {
    let created = work.metadata.creation_timestamp.as_ref();
    let since = match work.condition(APPLIED) {
        None => created,
        Some(applied) if applied.status == FALSE => {
            applied.last_transition_time.as_ref().or(created)
        }
        Some(_) => None,
    };
    since.map(|time| time.0)
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, from_value, json};

    use super::*;

    fn work(metadata: Value, suspended: bool, condition: Option<Value>) -> Work {
        let mut metadata = metadata;
        metadata["generation"] = json!(2);
        metadata["creationTimestamp"] = json!("2026-11-01T00:00:00Z");
        let conditions: Vec<Value> = condition.into_iter().collect();
        let work = json!({ "metadata": metadata, "spec": { "suspendDispatching": suspended },
            "status": { "conditions": conditions } });
        from_value(work).unwrap()
    }

    /// A Work that fails has failed since its condition says so, a new one since it exists, and a changed one since a time that
    /// it does not say.
    #[test]
    fn progress_follows_the_condition() {
        for (condition, progress, since) in [
            (Some(("True", 2)), Progress::Applied, None),
            (Some(("True", 1)), Progress::Unapplied, None),
            (
                Some(("False", 2)),
                Progress::Unapplied,
                Some("2026-11-02T00:00:00Z"),
            ),
            (None, Progress::Unapplied, Some("2026-11-01T00:00:00Z")),
        ] {
            let condition = condition.map(|(status, generation)| {
                json!({ "type": "Applied", "status": status, "observedGeneration": generation,
                    "lastTransitionTime": "2026-11-02T00:00:00Z" })
            });
            let work = work(json!({}), false, condition);
            assert_eq!(Progress::of(&work), progress);
            let since = since.map(|since| since.parse().unwrap());
            assert_eq!(unapplied_since(&work), since);
        }
    }

    /// Neither a paused Work nor one that goes is late.
    #[test]
    fn paused_and_deleted_stand_apart() {
        let paused = work(json!({}), true, None);
        assert_eq!(Progress::of(&paused), Progress::Suspended);
        let deleted = json!({ "deletionTimestamp": "2026-11-03T00:00:00Z" });
        assert_eq!(Progress::of(&work(deleted, true, None)), Progress::Deleting);
    }
}
