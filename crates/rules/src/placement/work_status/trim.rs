//! Keeps the status of a Work small enough to be stored.

use std::cmp::Reverse;

use karmada_api::Condition;
use karmada_api::condition::TRUE;
use karmada_api::fleet::Work;
use karmada_api::fleet::conditions::STATUS_TRIMMED;
use karmada_api::fleet::work::{ManifestCondition, WorkStatus};
use serde::Serialize;

use crate::placement::condition::condition;

/// The most bytes of JSON of a Work: etcd takes 1.5 MiB, and managed fields need some of that.
const MOST_BYTES: usize = 1_400 * 1024;

/// Takes the differences out of the new status of a Work that would be too large with it, the largest first.
/// Returns the condition that says so, `None` if none are missing, as they may be since an earlier pass.
pub(super) fn trim(work: &Work, status: &mut WorkStatus) -> Option<Condition> {
    let room = MOST_BYTES.saturating_sub(bytes(&work.spec) + bytes(&work.metadata));
    let mut size = bytes(status);
    let details = |one: &ManifestCondition| bytes(&one.drift_details) + bytes(&one.diff_details);
    let mut manifests: Vec<_> = status.manifest_conditions.iter_mut().collect();
    manifests.retain(|one| one.drift_details.is_some() || one.diff_details.is_some());
    manifests.sort_by_key(|one| Reverse(details(one)));
    for manifest in &mut manifests {
        if size <= room {
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
        size = size.saturating_sub(before - details(manifest));
    }
    let trimmed = manifests.iter().filter(|one| is_trimmed(one)).count();
    let message = format!(
        "The differences of {trimmed} of the {} objects that differ are left out, for the status would be too large",
        manifests.len()
    );
    let trimmed_condition = || condition((STATUS_TRIMMED, TRUE), "DetailsLeftOut", &message);
    (trimmed > 0).then(trimmed_condition)
}

/// Returns `true` if an object is said to differ, but not in what.
fn is_trimmed(manifest: &ManifestCondition) -> bool {
    let drift = manifest.drift_details.as_ref();
    let diff = manifest.diff_details.as_ref();
    drift.is_some_and(|drift| drift.observed_drifts.is_empty())
        || diff.is_some_and(|diff| diff.observed_diffs.is_empty())
}

fn bytes(value: &impl Serialize) -> usize {
    serde_json::to_vec(value).map_or(0, |json| json.len())
}
