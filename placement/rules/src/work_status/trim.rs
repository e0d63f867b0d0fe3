//! Keeps the status of a Work small enough to be stored.

use std::cmp::Reverse;

use fleet_api::Work;
use fleet_api::conditions::STATUS_TRIMMED;
use fleet_api::work::{ManifestCondition, WorkStatus};
use objects::condition::{Condition, TRUE};
use serde::Serialize;

use crate::condition::condition;

/// The most bytes of JSON of a Work: etcd takes 1.5 MiB, and managed fields need some of that.
const MOST_BYTES: usize = 1_400 * 1024;

/// Takes the differences out of the new status of a Work that would be too large with it, the largest first.
/// Returns the condition that says so, `None` if none are missing, as they may be since an earlier pass.
pub(super) fn trim(work: &Work, status: &mut WorkStatus) -> Option<Condition> {
    let room = MOST_BYTES.saturating_sub(bytes(&work.spec) + bytes(&work.metadata));
    let size = bytes(status);
    if size > room {
        cut(status, size - room);
    }
    missing(status)
}

/// Takes out differences of so many bytes in all, or more.
fn cut(status: &mut WorkStatus, mut excess: usize) {
    let mut manifests: Vec<_> = status.manifest_conditions.iter_mut().collect();
    manifests.retain(|one| one.drift_details.is_some() || one.diff_details.is_some());
    manifests.sort_by_key(|one| Reverse(details(one)));
    for manifest in manifests {
        if excess == 0 {
            break;
        }
        let before = details(manifest);
        // That it differs, and since when, stays.
        if let Some(drift) = &mut manifest.drift_details {
            drift.observed_drifts.clear();
        }
        if let Some(diff) = &mut manifest.diff_details {
            diff.observed_diffs.clear();
        }
        excess = excess.saturating_sub(before - details(manifest));
    }
}

/// Returns the condition that tells of objects that are said to differ, but not in which fields.
fn missing(status: &WorkStatus) -> Option<Condition> {
    let manifests = status.manifest_conditions.iter();
    let differing =
        manifests.filter(|one| one.drift_details.is_some() || one.diff_details.is_some());
    let trimmed = differing.clone().filter(|one| is_trimmed(one)).count();
    if trimmed == 0 {
        return None;
    }
    let all = differing.count();
    let message = format!(
        "The differences of {trimmed} of the {all} objects that differ are left out, for the status would be too large"
    );
    Some(condition(
        (STATUS_TRIMMED, TRUE),
        "StatusOversized",
        &message,
    ))
}

fn is_trimmed(one: &ManifestCondition) -> bool {
    let (drift, diff) = (one.drift_details.as_ref(), one.diff_details.as_ref());
    drift.is_some_and(|drift| drift.observed_drifts.is_empty())
        || diff.is_some_and(|diff| diff.observed_diffs.is_empty())
}

fn details(one: &ManifestCondition) -> usize {
    bytes(&one.drift_details) + bytes(&one.diff_details)
}

fn bytes(value: &impl Serialize) -> usize {
    serde_json::to_vec(value).map_or(0, |json| json.len())
}
