//! The conditions of one manifest of a Work.

use fleet_api::Work;
use fleet_api::conditions::{
    APPLIED, AVAILABLE, DIFF_REPORTED, FINISHED, PREPARING, PROGRESS_DEADLINE_EXCEEDED,
};
use fleet_api::names::SPEC_HASH;
use fleet_api::work::{ManifestCondition, WorkResourceIdentifier};
use jiff::Timestamp;
use objects::comparison::Compared;
use objects::condition::{Condition, FALSE, TRUE, find, transition};
use objects::{Metadata, group_kind};
use serde_json::Value;

use super::report::{ManifestReport, ManifestResult};
use crate::availability::{Availability, availability};
use crate::condition::condition;
use crate::drift::{diff_details, drift_details};
use crate::manifests::Failure;
use crate::strategy::Strategy;

/// Returns the conditions of a manifest, which were `before`.
pub(super) fn of_manifest(
    work: &Work,
    report: &ManifestReport<'_>,
    (identifier, before): (WorkResourceIdentifier, &ManifestCondition),
    now: Timestamp,
) -> ManifestCondition {
    let ManifestReport {
        manifest, result, ..
    } = *report;
    let (mut drift, mut diff) = (None, None);
    match result {
        ManifestResult::Unknown => {
            return ManifestCondition {
                identifier,
                ..before.clone()
            };
        }
        ManifestResult::Differs(compared) if compared.is_owned => {
            drift = drift_details(
                (work, manifest),
                compared,
                before.drift_details.as_ref(),
                now,
            );
        }
        ManifestResult::Applied {
            compared: Some(compared),
            ..
        } => {
            drift = drift_details(
                (work, manifest),
                compared,
                before.drift_details.as_ref(),
                now,
            );
        }
        ManifestResult::Applied { compared: None, .. }
            if Strategy::of(work.spec.apply_strategy.as_ref()).compares_all() =>
        {
            drift.clone_from(&before.drift_details);
        }
        ManifestResult::Differs(compared) | ManifestResult::Reported(compared) => {
            diff = diff_details(
                (work, manifest),
                compared,
                before.diff_details.as_ref(),
                now,
            );
        }
        // No failure undoes the changes of somebody else.
        ManifestResult::Failed {
            failure: Failure::Apply | Failure::Report,
            ..
        } => {
            drift.clone_from(&before.drift_details);
            diff.clone_from(&before.diff_details);
        }
        ManifestResult::Applied { .. }
        | ManifestResult::Pending
        | ManifestResult::Failed { .. } => {}
    }
    let (mut conditions, generation) = conditions(work, result, &before.conditions);
    for condition in &mut conditions {
        let old = find(&before.conditions, &condition.type_);
        condition.last_transition_time = Some(transition(old, &condition.status, now));
        condition.observed_generation = generation;
    }
    ManifestCondition {
        identifier,
        conditions,
        drift_details: drift,
        diff_details: diff,
    }
}

/// Returns the conditions of a manifest, and the generation that they are about.
fn conditions(
    work: &Work,
    result: ManifestResult<'_>,
    before: &[Condition],
) -> (Vec<Condition>, Option<i64>) {
    let is_reported = Strategy::of(work.spec.apply_strategy.as_ref()).only_reports();
    let kind = if is_reported { DIFF_REPORTED } else { APPLIED };
    match result {
        ManifestResult::Unknown => (Vec::new(), None),
        ManifestResult::Pending => {
            let message = "The manifest is being prepared for processing.";
            let pending = condition((APPLIED, FALSE), PREPARING, message);
            (vec![pending], work.metadata.generation)
        }
        ManifestResult::Failed {
            failure,
            message,
            object,
        } => {
            // Whatever it is, there is no report then.
            let failure = if is_reported {
                Failure::Report
            } else {
                failure
            };
            let failed = condition((kind, FALSE), failure.reason(), message);
            (vec![failed], object.and_then(Metadata::generation))
        }
        ManifestResult::Differs(compared) => (
            vec![differs(compared.is_owned)],
            compared_generation(compared),
        ),
        ManifestResult::Reported(compared) => {
            let mut conditions = vec![reported(compared)];
            // It keeps a Job from running again, should it be applied once more.
            conditions.extend(find(before, FINISHED).cloned());
            (conditions, compared_generation(compared))
        }
        ManifestResult::Applied { object, note, .. } => {
            let mut message = "Manifest has been applied successfully".to_owned();
            if let Some(note) = note {
                message = format!("{message}, but {note}");
            }
            let applied = condition((APPLIED, TRUE), "Applied", &message);
            let mut conditions = vec![applied, available(object)];
            conditions.extend(finished(object));
            (conditions, object.generation())
        }
    }
}

/// Returns the generation of the object that was compared, if there was one.
fn compared_generation(compared: &Compared) -> Option<i64> {
    compared.generation.filter(|generation| *generation > 0)
}

/// Returns the condition of a manifest whose object, the Work's own or not, differs and is left so.
fn differs(is_owned: bool) -> Condition {
    let (failure, message) = if is_owned {
        let message = "Failed to apply the manifest (error: cannot apply manifest: drifts are found between the manifest and \
                       the object from the member cluster)";
        (Failure::Drift, message)
    } else {
        let message = "Failed to take over a pre-existing object (error: cannot take over object: diffs are found between the \
                       manifest and the object from the member cluster)";
        (Failure::TakeOver, message)
    };
    condition((APPLIED, FALSE), failure.reason(), message)
}

fn reported(compared: &Compared) -> Condition {
    let (reason, found) = if compared.differences.is_empty() {
        ("NoDiffFound", "No diff has")
    } else {
        ("FoundDiff", "Diff has")
    };
    let message = format!("{found} been found between the hub cluster and the member cluster");
    condition((DIFF_REPORTED, TRUE), reason, &message)
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
