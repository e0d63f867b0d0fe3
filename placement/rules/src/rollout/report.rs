//! The report about one binding.

use fleet_api::Binding;
use fleet_api::conditions::{
    APPLIED, APPLY_IN_PROGRESS, AVAILABLE, BEEN_AVAILABLE, DIFF_REPORT_IN_PROGRESS, DIFF_REPORTED,
    OVERRIDDEN, OVERRIDES_RENDERED, PREPARING, PROGRESS_DEADLINE_EXCEEDED, UNTRACKABLE,
    WORK_SYNCHRONIZED,
};
use fleet_api::names::OVERRIDES_DIGEST;
use fleet_api::placement::ApplyStrategy;
use jiff::{SignedDuration, Timestamp};
use objects::Metadata;
use objects::condition::{Condition, FALSE, TRUE, find};

use super::facts::RolloutFacts;
use crate::condition::current_condition;
use crate::strategy::apply_strategy;

/// The settings by which a report is judged, of a placement and its hub.
#[derive(Debug)]
pub(super) struct Rules {
    /// How the objects are to be written.
    pub(super) apply_strategy: ApplyStrategy,
    unavailable_period: SignedDuration,
    progress_deadline: SignedDuration,
    now: Timestamp,
}

/// The seconds after which objects that nobody can track are taken for available, where a placement does not say.
const UNAVAILABLE_SECONDS: i32 = 60;

impl Rules {
    pub(super) fn of(facts: &RolloutFacts<'_>) -> Self {
        let update = facts.placement.spec.strategy.rolling_update.as_ref();
        let seconds = update.and_then(|update| update.unavailable_period_seconds);
        let seconds = seconds.unwrap_or(UNAVAILABLE_SECONDS);
        Self {
            apply_strategy: apply_strategy(facts.placement),
            unavailable_period: SignedDuration::from_secs(i64::from(seconds)),
            progress_deadline: facts.progress_deadline,
            now: facts.now,
        }
    }
}

/// The report about one binding at its generation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Outcome {
    /// It serves.
    Ready,
    /// It is there, and nobody can say whether it serves: it is taken for serving from this time on.
    Settling(Timestamp),
    /// It will not serve as it is.
    Failed,
    /// It may serve, or not yet; it means something else at this time, if nothing is reported until then.
    Progressing(Option<Timestamp>),
}

/// The report about one binding.
#[derive(Clone, Copy, Debug)]
pub(super) struct Report {
    outcome: Outcome,
    /// True if it never served.
    is_fresh: bool,
}

impl Report {
    pub(super) fn of(binding: &Binding, rules: &Rules) -> Self {
        // Once the strategy is changed, or the effect of overrides, every report is on the version before.
        let outdated = binding.spec.apply_strategy.as_ref() != Some(&rules.apply_strategy)
            || !is_rendered(binding);
        let outcome = match outcome(binding, rules) {
            Outcome::Ready | Outcome::Settling(_) if outdated => Outcome::Progressing(None),
            outcome => outcome,
        };
        let served = matches!(outcome, Outcome::Ready | Outcome::Settling(_));
        Self {
            outcome,
            is_fresh: !served && never_served(binding),
        }
    }

    pub(super) fn is_ready(&self) -> bool {
        self.outcome == Outcome::Ready
    }

    /// Returns `true` if it is to be left alone until it is taken for serving.
    pub(super) fn is_settling(&self) -> bool {
        matches!(self.outcome, Outcome::Settling(_))
    }

    /// Returns `true` if nothing serves there that a change could interrupt.
    pub(super) fn has_nothing_to_lose(&self) -> bool {
        self.is_fresh || self.outcome == Outcome::Failed
    }

    /// Returns the time at which the same report means something else.
    pub(super) fn changes_at(&self) -> Option<Timestamp> {
        match self.outcome {
            Outcome::Settling(at) => Some(at),
            Outcome::Progressing(at) => at,
            Outcome::Ready | Outcome::Failed => None,
        }
    }
}

/// Returns `true` if the Works are made by the effect that the overrides had when they were given, as far as that is known. The
/// generation does not say so: the same overrides come to something else where the labels of a cluster change.
pub(crate) fn is_rendered(binding: &Binding) -> bool {
    let status = binding.status.as_ref();
    let rendered = status.and_then(|status| find(&status.conditions, OVERRIDES_RENDERED));
    let rendered = rendered.map(|rendered| &*rendered.message);
    let given = binding.metadata.annotation(OVERRIDES_DIGEST);
    given.is_none() || rendered == given
}

/// Returns `true` if the cluster has nothing of the placement yet: nobody has written it there.
pub(super) fn has_nothing(binding: &Binding) -> bool {
    let status = binding.status.as_ref();
    status.is_none_or(|status| find(&status.conditions, WORK_SYNCHRONIZED).is_none())
}

fn never_served(binding: &Binding) -> bool {
    // One that was unscheduled before its turn came says only that it has nothing to synchronize.
    if binding.spec.resource_snapshot_name.is_empty() {
        return true;
    }
    let status = binding.status.as_ref();
    let been = status.and_then(|status| find(&status.conditions, BEEN_AVAILABLE));
    // Where the condition is absent, another controller made the binding: it may have served.
    been.map_or_else(|| has_nothing(binding), |been| been.status == FALSE)
}

fn outcome(binding: &Binding, rules: &Rules) -> Outcome {
    match current_condition(binding, DIFF_REPORTED) {
        Some(reported) if reported.status == TRUE => return Outcome::Ready,
        // Where nothing is written, nothing can be lost.
        Some(reported) if reported.reason != DIFF_REPORT_IN_PROGRESS => return Outcome::Failed,
        _ => {}
    }
    // Its Works cannot be made: nothing of it will serve.
    let overridden = current_condition(binding, OVERRIDDEN);
    if overridden.is_some_and(|overridden| overridden.status == FALSE) {
        return Outcome::Failed;
    }
    let applied = current_condition(binding, APPLIED);
    if applied.is_some_and(|applied| applied.status == FALSE && applied.reason != APPLY_IN_PROGRESS)
        && has_failed(binding, APPLIED, |reason| reason != PREPARING)
    {
        return Outcome::Failed;
    }
    let Some(available) = current_condition(binding, AVAILABLE) else {
        return Outcome::Progressing(None);
    };
    let since = available.last_transition_time.as_ref();
    let since = since.map_or(rules.now, |time| time.0);
    let [settled, overdue] = [rules.unavailable_period, rules.progress_deadline]
        .map(|period| since.saturating_add(period).unwrap_or(Timestamp::MAX));
    match &*available.status {
        TRUE if available.reason == UNTRACKABLE && rules.now < settled => {
            Outcome::Settling(settled)
        }
        TRUE => Outcome::Ready,
        FALSE => {
            let exceeded = PROGRESS_DEADLINE_EXCEEDED;
            if rules.now >= overdue || has_failed(binding, AVAILABLE, |reason| reason == exceeded) {
                Outcome::Failed
            } else {
                Outcome::Progressing(Some(overdue))
            }
        }
        _ => Outcome::Progressing(None),
    }
}

/// Returns `true` if an object has this condition False for such a reason.
fn has_failed(binding: &Binding, kind: &str, is_failure: impl Fn(&str) -> bool) -> bool {
    let status = binding.status.iter();
    let mut failed = status.flat_map(|status| &status.failed_placements);
    failed.any(|failed| {
        let Condition {
            type_,
            status,
            reason,
            ..
        } = &failed.condition;
        type_ == kind && status == FALSE && is_failure(reason)
    })
}
