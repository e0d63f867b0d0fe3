//! The conditions of a Work as a whole.

use fleet_api::conditions::{APPLIED, AVAILABLE, DIFF_REPORTED, WORK_NOT_TRACKABLE};
use fleet_api::work::ManifestCondition;
use objects::condition::{Condition, FALSE, TRUE, find};

use crate::condition::condition;

/// Returns the conditions of a Work whose manifests have these, and are only reported on or not. Where not all is applied,
/// nobody asks whether it is available.
pub(super) fn whole(manifests: &[ManifestCondition], is_reported: bool) -> Vec<Condition> {
    let [compared, applied, available] = [DIFF_REPORTED, APPLIED, AVAILABLE].map(|kind| {
        let conditions = manifests
            .iter()
            .filter_map(|one| find(&one.conditions, kind));
        conditions.filter(|one| one.status == TRUE).count()
    });
    let all = manifests.len();
    if is_reported {
        return vec![reported(compared, all)];
    }
    if applied < all {
        let message =
            format!("Failed to apply all manifests ({applied} of {all} manifests are applied)");
        let reason = "SomeManifestsAreNotApplied";
        return vec![condition((APPLIED, FALSE), reason, &message)];
    }
    let message = "All the specified manifests have been applied";
    let applied = condition((APPLIED, TRUE), "AllManifestsApplied", message);
    let mut availability = manifests
        .iter()
        .filter_map(|one| find(&one.conditions, AVAILABLE));
    let available = if available < all {
        let message = format!(
            "Some manifests are not available ({available} of {all} manifests are available)"
        );
        condition((AVAILABLE, FALSE), "SomeManifestsAreNotAvailable", &message)
    } else if availability.any(|one| one.reason == "NotTrackable") {
        let message = "Some of the applied manifests cannot be tracked for availability";
        condition((AVAILABLE, TRUE), WORK_NOT_TRACKABLE, message)
    } else {
        let message = "All of the applied manifests are available";
        condition((AVAILABLE, TRUE), "AllManifestsAvailable", message)
    };
    vec![applied, available]
}

fn reported(reported: usize, all: usize) -> Condition {
    if reported < all {
        let message = format!(
            "Failed to report diff on all manifests ({reported} of {all} manifests have reported diff)"
        );
        let reason = "SomeManifestsHaveNotReportedDiff";
        return condition((DIFF_REPORTED, FALSE), reason, &message);
    }
    let message = "All the specified manifests have reported diff";
    condition((DIFF_REPORTED, TRUE), "AllManifestsDiffReported", message)
}
