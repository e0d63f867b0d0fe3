//! Whether an object that a member has is taken over or written again, and whether it is compared with its manifest
//! first.

use fleet_api::Work;
use fleet_api::names::SPEC_HASH;
use fleet_api::placement::ApplyStrategy;
use objects::Metadata;
use objects::ownership::{Comparison, Extent};
use serde_json::Value;

use super::strategy::{compares_all, only_reports};

/// Why an object that a member had before is left alone.
pub(super) const LEFT_ALONE: &str = "the object was in the member before, and whenToTakeOver is Never: delete it there, or \
                                     set whenToTakeOver to Always or IfNoDiff";

/// Returns `true` if objects that members had before are never taken over.
pub fn leaves_alone(work: &Work) -> bool {
    strategy(work).is_some_and(|strategy| strategy.when_to_take_over == "Never")
}

/// Returns `true` if an object that is there by the time of its creation is taken over like any other.
pub fn adopts_unseen(work: &Work) -> bool {
    strategy(work).is_none_or(|strategy| ["", "Always"].contains(&&*strategy.when_to_take_over))
}

/// Decides when a manifest, as it is written, is compared with its object, which is the Work's own or not.
pub fn comparison(
    work: &Work,
    manifest: &Value,
    object: Option<&Value>,
    is_owned: bool,
) -> Comparison {
    let is = |field: fn(&ApplyStrategy) -> &str, value: &str| {
        strategy(work).is_some_and(|strategy| field(strategy) == value)
    };
    let extent = if compares_all(strategy(work)) {
        Extent::Whole
    } else {
        Extent::Manifest
    };
    if only_reports(strategy(work)) {
        return Comparison::Only(extent);
    }
    let is_compared_first = object.is_some_and(|object| {
        if is_owned {
            // One that has another manifest is behind, and not changed by somebody.
            let has_manifest = object.annotation(SPEC_HASH) == manifest.annotation(SPEC_HASH);
            has_manifest && is(|strategy| &strategy.when_to_apply, "IfNotDrifted")
        } else {
            is(|strategy| &strategy.when_to_take_over, "IfNoDiff")
        }
    });
    match extent {
        extent if is_compared_first => Comparison::First(extent),
        Extent::Whole => Comparison::Afterwards,
        Extent::Manifest => Comparison::Never,
    }
}

fn strategy(work: &Work) -> Option<&ApplyStrategy> {
    work.spec.apply_strategy.as_ref()
}

#[cfg(test)]
mod tests {
    use serde_json::{from_value, json};

    use super::*;

    /// Case F70: what is asked for decides, and whether the object is the Work's and has its manifest.
    #[test]
    fn strategies_decide_about_comparisons() {
        let object = |hash: &str| json!({ "metadata": { "annotations": { SPEC_HASH: hash } } });
        let full = |mut strategy: Value| {
            strategy["comparisonOption"] = json!("FullComparison");
            strategy
        };
        let kept = json!({ "whenToApply": "IfNotDrifted" });
        let same = json!({ "whenToTakeOver": "IfNoDiff" });
        let report = json!({ "type": "ReportDiff", "whenToTakeOver": "Never" });
        let (manifest, whole) = (Extent::Manifest, Extent::Whole);
        for (strategy, found, expected) in [
            (json!({}), "ours", Comparison::Never),
            (kept.clone(), "ours", Comparison::First(manifest)),
            (kept.clone(), "outdated", Comparison::Never),
            (kept.clone(), "theirs", Comparison::Never),
            (kept.clone(), "none", Comparison::Never),
            (same.clone(), "theirs", Comparison::First(manifest)),
            (same.clone(), "ours", Comparison::Never),
            (full(json!({})), "ours", Comparison::Afterwards),
            (full(kept.clone()), "ours", Comparison::First(whole)),
            (full(kept), "outdated", Comparison::Afterwards),
            (full(same), "theirs", Comparison::First(whole)),
            (report.clone(), "none", Comparison::Only(manifest)),
            (full(report), "ours", Comparison::Only(whole)),
        ] {
            let work: Work = from_value(json!({ "spec": { "applyStrategy": strategy } })).unwrap();
            let present = object(if found == "ours" { "new" } else { "old" });
            let present = Some(&present).filter(|_| found != "none");
            let is_owned = ["ours", "outdated"].contains(&found);
            let comparison = comparison(&work, &object("new"), present, is_owned);
            assert_eq!(comparison, expected, "{strategy} {found}");
        }
    }
}
