//! What the agent of a member says of a Work.

use jiff::Timestamp;
use karmada_api::Condition;
use karmada_api::condition::{FALSE, TRUE};
use karmada_api::fleet::Work;
use karmada_api::fleet::conditions::{
    APPLIED, AVAILABLE, FINISHED, PREPARING, PROGRESS_DEADLINE_EXCEEDED, WORK_NOT_TRACKABLE,
};
use karmada_api::fleet::names::SPEC_HASH;
use karmada_api::fleet::work::{ManifestCondition, WorkResourceIdentifier, WorkStatus};
use objects::condition::{find, transition, upsert};
use objects::{Metadata, group_kind};
use serde_json::Value;

use super::availability::{Availability, availability};
use super::condition::condition;
use super::manifests::{Failure, identifier};

/// A manifest of a Work, and what became of it.
#[derive(Clone, Copy, Debug)]
pub struct ManifestReport<'a> {
    /// The manifest.
    pub manifest: &'a Value,
    /// The name of its kind in the paths of the member's API; empty if the member does not serve it.
    pub resource: &'a str,
    /// The outcome.
    pub result: ManifestResult<'a>,
}

/// What became of a manifest.
#[derive(Clone, Copy, Debug)]
pub enum ManifestResult<'a> {
    /// It is about to be applied for the first time.
    Pending,
    /// Nothing new is known of it.
    Unknown,
    /// The member's object is as the manifest has it, as far as the member knows its fields: what it lacks, the note
    /// tells.
    Applied {
        /// The object.
        object: &'a Value,
        /// The note.
        note: Option<&'a str>,
    },
    /// The member's object is not.
    Failed(Failure, &'a str),
}

/// Returns the status of a Work after a pass over its manifests, or `None` if it is up to date.
pub fn work_status(
    work: &Work,
    reports: &[ManifestReport<'_>],
    now: Timestamp,
) -> Option<WorkStatus> {
    let before = work.status.clone().unwrap_or_default();
    let manifests = reports.iter().zip(0..).map(|(report, ordinal)| {
        let identifier = identifier(report.manifest, ordinal, report.resource);
        let old = before.manifest_conditions.iter();
        let mut old = old.filter(|one| is_same_object(&one.identifier, &identifier));
        let old = old.next().map_or(&[][..], |old| &old.conditions);
        ManifestCondition {
            conditions: of_manifest(work, report.result, old, now),
            identifier,
            ..ManifestCondition::default()
        }
    });
    let manifest_conditions: Vec<_> = manifests.collect();
    let mut conditions = before.conditions.clone();
    let is_pending = reports
        .iter()
        .any(|one| matches!(one.result, ManifestResult::Pending));
    if !is_pending {
        let new = whole(&manifest_conditions);
        conditions.retain(|old| old.type_ != AVAILABLE || find(&new, AVAILABLE).is_some());
        for mut condition in new {
            let old = find(&before.conditions, &condition.type_);
            condition.last_transition_time = Some(transition(old, &condition.status, now));
            condition.observed_generation = work.metadata.generation;
            upsert(&mut conditions, condition);
        }
    }
    let after = WorkStatus {
        conditions,
        manifest_conditions,
    };
    (after != before).then_some(after)
}

/// Returns the conditions of a manifest.
fn of_manifest(
    work: &Work,
    result: ManifestResult<'_>,
    before: &[Condition],
    now: Timestamp,
) -> Vec<Condition> {
    let (mut conditions, generation) = match result {
        ManifestResult::Pending => {
            let message = "The manifest is being prepared for processing.";
            let pending = condition((APPLIED, FALSE), PREPARING, message);
            (vec![pending], work.metadata.generation)
        }
        ManifestResult::Unknown => return before.to_vec(),
        ManifestResult::Failed(failure, message) => (
            vec![condition((APPLIED, FALSE), failure.reason(), message)],
            None,
        ),
        ManifestResult::Applied { object, note } => {
            let mut message = "Manifest has been applied successfully".to_owned();
            if let Some(note) = note {
                message = format!("{message}, but {note}");
            }
            let applied = condition((APPLIED, TRUE), "Applied", &message);
            let mut conditions = vec![applied, available(object)];
            conditions.extend(finished(object));
            (conditions, object.generation())
        }
    };
    for condition in &mut conditions {
        let old = find(before, &condition.type_);
        condition.last_transition_time = Some(transition(old, &condition.status, now));
        condition.observed_generation = generation;
    }
    conditions
}

/// Returns the condition of a Job that has done its work, if its member deletes it then.
fn finished(object: &Value) -> Option<Condition> {
    let is_kept = object["spec"]["ttlSecondsAfterFinished"].is_null();
    if group_kind(object) != ("batch", "Job") || is_kept || !has_ended(object) {
        return None;
    }
    let hash = object.annotation(SPEC_HASH)?;
    Some(condition((FINISHED, TRUE), "JobFinished", hash))
}

fn has_ended(job: &Value) -> bool {
    let conditions = job["status"]["conditions"].as_array();
    let mut conditions = conditions.into_iter().flatten();
    conditions.any(|one| {
        let kind = one["type"].as_str().unwrap_or_default();
        ["Complete", "Failed"].contains(&kind) && one["status"] == TRUE
    })
}

fn available(object: &Value) -> Condition {
    let (status, reason, message) = match availability(object) {
        Availability::Available => (TRUE, "Available", "Manifest is available"),
        Availability::NotTrackable => {
            let message = "Manifest's availability is not trackable; Fleet assumes that the applied manifest is available";
            (TRUE, "NotTrackable", message)
        }
        Availability::NotYet => {
            let message = "Manifest is not yet available; Fleet will check again later";
            (FALSE, "ManifestNotAvailableYet", message)
        }
        Availability::GivenUp => {
            let message = "The Deployment has exceeded its progress deadline";
            (FALSE, PROGRESS_DEADLINE_EXCEEDED, message)
        }
    };
    condition((AVAILABLE, status), reason, message)
}

/// Returns the conditions of a Work whose manifests have these. Of what is not all applied, nobody asks whether it is
/// available.
fn whole(manifests: &[ManifestCondition]) -> Vec<Condition> {
    let count = |kind: &str| {
        let conditions = manifests.iter().map(|one| find(&one.conditions, kind));
        conditions
            .flatten()
            .filter(|one| one.status == TRUE)
            .count()
    };
    let (all, applied, available) = (manifests.len(), count(APPLIED), count(AVAILABLE));
    if applied < all {
        let message =
            format!("Failed to apply all manifests ({applied} of {all} manifests are applied)");
        let reason = "SomeManifestsAreNotApplied";
        return vec![condition((APPLIED, FALSE), reason, &message)];
    }
    let message = "All the specified manifests have been applied";
    let applied = condition((APPLIED, TRUE), "AllManifestsApplied", message);
    let is_untrackable = |one: &ManifestCondition| {
        find(&one.conditions, AVAILABLE).is_some_and(|one| one.reason == "NotTrackable")
    };
    let available = if available < all {
        let message = format!(
            "Some manifests are not available ({available} of {all} manifests are available)"
        );
        condition((AVAILABLE, FALSE), "SomeManifestsAreNotAvailable", &message)
    } else if manifests.iter().any(is_untrackable) {
        let message = "Some of the applied manifests cannot be tracked for availability";
        condition((AVAILABLE, TRUE), WORK_NOT_TRACKABLE, message)
    } else {
        let message = "All of the applied manifests are available";
        condition((AVAILABLE, TRUE), "AllManifestsAvailable", message)
    };
    vec![applied, available]
}

/// Returns `true` if the two are of the same object, whatever its place among the manifests.
fn is_same_object(one: &WorkResourceIdentifier, other: &WorkResourceIdentifier) -> bool {
    let of = |id: &WorkResourceIdentifier| WorkResourceIdentifier {
        ordinal: 0,
        ..id.clone()
    };
    of(one) == of(other)
}

#[cfg(test)]
mod tests {
    use serde_json::{from_value, json};

    use super::super::fixtures::{fixture, items};
    use super::*;

    const NOW: &str = "2026-11-25T17:00:00Z";

    fn applied(object: &Value) -> ManifestResult<'_> {
        ManifestResult::Applied { object, note: None }
    }

    /// Returns the reports on the manifests of a Work, of which `recorded` has the status.
    fn reports<'a>(
        recorded: &'a Work,
        result: impl Fn(&'a Value) -> ManifestResult<'a>,
    ) -> Vec<ManifestReport<'a>> {
        let manifests = recorded.spec.workload.manifests.iter();
        let status = recorded.status.as_ref().unwrap();
        let reports = manifests
            .zip(&status.manifest_conditions)
            .map(|(manifest, recorded)| ManifestReport {
                manifest,
                resource: &recorded.identifier.resource,
                result: result(manifest),
            });
        reports.collect()
    }

    /// An agent that takes over finds nothing to say anew of what is as it was.
    #[test]
    fn recorded_statuses_are_ours() {
        let mut objects = items("crp-1-member-objects");
        for (name, available) in [("crp-1-work", 2), ("crp-1-work-not-available", 0)] {
            let of_kind = |object: &&mut Value| objects::kind(object) == "Deployment";
            let deployment = objects.iter_mut().find(of_kind).unwrap();
            deployment["status"]["availableReplicas"] = json!(available);
            let work: Work = from_value(fixture(name)).unwrap();
            let is_of = |object: &Value, manifest: &Value| {
                objects::kind(object) == objects::kind(manifest) && object.name() == manifest.name()
            };
            // Of those that have no status only their manifests were recorded.
            let reports = reports(&work, |manifest| {
                let object = objects.iter().find(|object| is_of(object, manifest));
                applied(object.unwrap_or(manifest))
            });
            assert_eq!(
                work_status(&work, &reports, NOW.parse().unwrap()),
                None,
                "{name}"
            );
        }
    }

    /// Before the first write in the member, everything that is about to be written is named.
    #[test]
    fn recorded_write_ahead_is_ours() {
        let recorded: Work = from_value(fixture("work-write-ahead")).unwrap();
        let reports = reports(&recorded, |_| ManifestResult::Pending);
        assert_eq!(work_status(&recorded, &reports, NOW.parse().unwrap()), None);
        let mut first = recorded.clone();
        first.status = None;
        let at = "2026-11-25T16:44:45Z".parse().unwrap();
        assert_eq!(work_status(&first, &reports, at), recorded.status);
    }

    #[test]
    fn failures_have_their_reasons() {
        let work: Work = from_value(json!({ "metadata": { "generation": 3 } })).unwrap();
        let manifest =
            json!({ "apiVersion": "v1", "kind": "ConfigMap", "metadata": { "name": "a" } });
        for (failure, reason) in [
            (Failure::Undecodable, "DecodingErred"),
            (Failure::GenerateName, "FoundGenerateName"),
            (Failure::Duplicate, "Duplicated"),
            (Failure::TakeOver, "FailedToTakeOver"),
            (Failure::Apply, "ManifestApplyFailed"),
        ] {
            let applied = ManifestReport {
                manifest: &manifest,
                resource: "configmaps",
                result: applied(&manifest),
            };
            let failed = ManifestReport {
                result: ManifestResult::Failed(failure, "why"),
                ..applied
            };
            let status = work_status(&work, &[applied, failed], NOW.parse().unwrap()).unwrap();
            let said = &status.manifest_conditions[1].conditions[0];
            assert_eq!((&*said.reason, &*said.message), (reason, "why"));
            let whole: Vec<_> = status.conditions.iter().map(|one| &*one.message).collect();
            let expected = ["Failed to apply all manifests (1 of 2 manifests are applied)"];
            assert_eq!(whole, expected);
        }
    }
}
