//! Whether an object that a member has is taken over or written again, and whether it is compared with its manifest
//! first.

use fleet_api::names::SPEC_HASH;
use objects::Metadata;
use objects::comparison::{Comparison, ComparisonOption};
use serde_json::Value;

use super::strategy::{Strategy, WhenToApply, WhenToTakeOver};

/// Why an object that a member had before is left alone.
pub(super) const LEFT_ALONE: &str = "the object was in the member before, and whenToTakeOver is Never: delete it there, or \
                                     set whenToTakeOver to Always or IfNoDiff";

/// Decides when a manifest, as it is written, is compared with its object, which is the Work's own or not.
pub(super) fn comparison(
    strategy: Strategy,
    manifest: &Value,
    object: Option<&Value>,
    is_owned: bool,
) -> Comparison {
    let option = strategy.comparison_option;
    if strategy.only_reports() {
        return Comparison::Only(option);
    }
    let is_compared_first = object.is_some_and(|object| {
        if is_owned {
            // One that has another manifest is behind, and not changed by somebody.
            let has_manifest = object.annotation(SPEC_HASH) == manifest.annotation(SPEC_HASH);
            has_manifest && strategy.when_to_apply == WhenToApply::IfNotDrifted
        } else {
            strategy.when_to_take_over == WhenToTakeOver::IfNoDiff
        }
    });
    match option {
        option if is_compared_first => Comparison::First(option),
        ComparisonOption::Full => Comparison::Afterwards,
        ComparisonOption::Partial => Comparison::Never,
    }
}

#[cfg(test)]
mod tests {
    use fleet_api::Work;
    use serde_json::{from_value, json};

    use super::*;

    fn object(hash: &str) -> Value {
        json!({ "metadata": { "annotations": { SPEC_HASH: hash } } })
    }

    fn full(mut strategy: Value) -> Value {
        strategy["comparisonOption"] = json!("FullComparison");
        strategy
    }

    /// Case F70: the strategy decides, and whether the object is the Work's and has its manifest.
    #[test]
    fn strategies_decide_about_comparisons() {
        let kept = json!({ "whenToApply": "IfNotDrifted" });
        let same = json!({ "whenToTakeOver": "IfNoDiff" });
        let report = json!({ "type": "ReportDiff", "whenToTakeOver": "Never" });
        let (manifest, whole) = (ComparisonOption::Partial, ComparisonOption::Full);
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
            let parsed = Strategy::of(work.spec.apply_strategy.as_ref());
            let comparison = comparison(parsed, &object("new"), present, is_owned);
            assert_eq!(comparison, expected, "{strategy} {found}");
        }
    }
}
