//! The strategy of a placement, with its defaults, and the meaning of its words.

use fleet_api::Placement;
use fleet_api::placement::ApplyStrategy;
use k8s_openapi::apimachinery::pkg::util::intstr::IntOrString;
use objects::comparison::ComparisonOption;
use objects::ownership::WriteStyle;
use objects::patch::merge_between;
use serde_json::{Value, json};

/// The strategy by which runs through stages give snapshots to clusters, and nothing else does.
const EXTERNAL: &str = "External";

/// How the objects of a Work are written. A word that is left out, or unknown, means the default.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Strategy {
    pub(super) type_: ApplyType,
    pub(super) comparison_option: ComparisonOption,
    pub(super) when_to_apply: WhenToApply,
    /// When an object that a member had before is taken over.
    pub when_to_take_over: WhenToTakeOver,
    pub(super) allow_co_ownership: bool,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum ApplyType {
    ClientSideApply,
    ServerSideApply {
        /// True if a field that somebody else has set is taken from him.
        force: bool,
    },
    /// Differences are reported, and nothing is written.
    ReportDiff,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum WhenToApply {
    Always,
    IfNotDrifted,
}

/// When an object that a member had before is taken over.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum WhenToTakeOver {
    /// Whatever it is like.
    Always,
    /// If it does not differ from its manifest.
    IfNoDiff,
    /// In no case.
    Never,
}

impl Strategy {
    /// Reads a strategy.
    pub fn of(strategy: Option<&ApplyStrategy>) -> Self {
        let default = ApplyStrategy::default();
        let strategy = strategy.unwrap_or(&default);
        let config = strategy.server_side_apply_config.as_ref();
        Self {
            type_: match &*strategy.type_ {
                "ServerSideApply" => ApplyType::ServerSideApply {
                    force: config.is_some_and(|config| config.force),
                },
                "ReportDiff" => ApplyType::ReportDiff,
                _ => ApplyType::ClientSideApply,
            },
            comparison_option: match &*strategy.comparison_option {
                "FullComparison" => ComparisonOption::Full,
                _ => ComparisonOption::Partial,
            },
            when_to_apply: match &*strategy.when_to_apply {
                "IfNotDrifted" => WhenToApply::IfNotDrifted,
                _ => WhenToApply::Always,
            },
            when_to_take_over: match &*strategy.when_to_take_over {
                "IfNoDiff" => WhenToTakeOver::IfNoDiff,
                "Never" => WhenToTakeOver::Never,
                _ => WhenToTakeOver::Always,
            },
            allow_co_ownership: strategy.allow_co_ownership == Some(true),
        }
    }

    /// Returns `true` if differences are reported and nothing is written.
    pub fn only_reports(self) -> bool {
        self.type_ == ApplyType::ReportDiff
    }

    /// Returns `true` if fields that are not in the manifest are compared, too.
    pub(super) fn compares_all(self) -> bool {
        self.comparison_option == ComparisonOption::Full
    }

    pub(super) fn write_style(self) -> WriteStyle {
        match self.type_ {
            ApplyType::ServerSideApply { force: false } => WriteStyle::ApplyUnforced,
            ApplyType::ServerSideApply { force: true }
            | ApplyType::ClientSideApply
            | ApplyType::ReportDiff => WriteStyle::Apply,
        }
    }
}

/// Returns `true` if clusters of a placement are given something by runs only.
pub fn is_external(placement: &Placement) -> bool {
    placement.spec.strategy.type_ == EXTERNAL
}

/// Returns how the objects of a placement are written, with the defaults written out.
pub fn apply_strategy(placement: &Placement) -> ApplyStrategy {
    let mut strategy = placement
        .spec
        .strategy
        .apply_strategy
        .clone()
        .unwrap_or_default();
    for (field, default) in [
        (&mut strategy.comparison_option, "PartialComparison"),
        (&mut strategy.type_, "ClientSideApply"),
        (&mut strategy.when_to_apply, "Always"),
        (&mut strategy.when_to_take_over, "Always"),
    ] {
        if field.is_empty() {
            default.clone_into(field);
        }
    }
    strategy
}

/// Returns `true` if a rollout may never take anything from a cluster: no edit can reach one that has the placement.
pub(super) fn allows_no_change(placement: &Placement) -> bool {
    let update = placement.spec.strategy.rolling_update.as_ref();
    let bound = update.and_then(|update| update.max_unavailable.as_ref());
    bound.and_then(|bound| part_of(bound, 1)) == Some(0)
}

/// Returns the merge patch that makes one way to write of another, or `None` if it is the same: fields that are left out go.
pub(super) fn change(
    before: Option<&ApplyStrategy>,
    after: Option<&ApplyStrategy>,
) -> Option<Value> {
    merge_between(&json!(before), &json!(after))
}

/// Returns the number that a bound means, quoted or not, or a percentage of all rounded up; `None` for any other text.
pub(super) fn part_of(bound: &IntOrString, all: usize) -> Option<usize> {
    match bound {
        IntOrString::Int(number) => Some(usize::try_from(*number).unwrap_or_default()),
        IntOrString::String(text) => {
            let Some(percent) = text.strip_suffix('%') else {
                return text.parse().ok();
            };
            Some(percentage_of(all, percent.parse().ok()?))
        }
    }
}

/// Returns a percentage of all, rounded up.
pub(super) fn percentage_of(all: usize, percent: usize) -> usize {
    all.saturating_mul(percent).div_ceil(100)
}
