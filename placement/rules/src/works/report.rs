//! The report of a binding about its Works.

use fleet_api::binding::BindingStatus;
use fleet_api::conditions::{
    APPLIED, APPLY_IN_PROGRESS, AVAILABLE, BEEN_AVAILABLE, DIFF_REPORT_IN_PROGRESS, DIFF_REPORTED,
    NO_OVERRIDE, OVERRIDDEN, OVERRIDES_RENDERED, UNTRACKABLE, WORK_NOT_TRACKABLE,
    WORK_SYNCHRONIZED,
};
use fleet_api::names::OVERRIDES_DIGEST;
use fleet_api::{Binding, Work};
use jiff::Timestamp;
use objects::Metadata;
use objects::condition::{Condition, FALSE, TRUE, find};

use super::desired::is_current;
use super::facts::Failure;
use super::listed::{diffed, drifted, failed};
use crate::condition::{been_available, condition, put};
use crate::overrides::listed;
use crate::strategy::Strategy;

/// Whether the Works of a binding are those that its cluster should have.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Synchronization {
    /// They are.
    Synchronized,
    /// They stay as they are, as far as the rollout has got. Only how their objects are written may change.
    Kept,
    /// They were written now, and nobody has answered.
    Written,
    /// They are not, and stay as they are.
    Failed(Failure),
}

/// Returns the status of a binding after a look at its Works, or `None` if it is up to date. The conditions of
/// others stay. A Work that leaves has nothing more to say, unless it was deleted by hand and comes again.
pub fn report(
    binding: &Binding,
    synchronization: &Synchronization,
    works: &[&Work],
    now: Timestamp,
) -> Option<BindingStatus> {
    let asked = works.iter().copied();
    let asked = asked.filter(|work| !work.metadata.is_deleting() || is_current(work, binding));
    let works = &asked.collect::<Vec<_>>()[..];
    let before = binding.status.clone().unwrap_or_default();
    let mut after = before.clone();
    let is_reported = Strategy::of(binding.spec.apply_strategy.as_ref()).only_reports();
    let new = conditions(binding, synchronization, works, is_reported);
    let ours = [
        OVERRIDDEN,
        WORK_SYNCHRONIZED,
        APPLIED,
        AVAILABLE,
        DIFF_REPORTED,
    ];
    after
        .conditions
        .retain(|one| !ours.contains(&&*one.type_) || find(&new, &one.type_).is_some());
    after.failed_placements = if is_failed(&new, APPLIED) || is_failed(&new, AVAILABLE) {
        // Whoever mends the objects that cannot be applied is to see those that do not run, too.
        failed(&answered(works, APPLIED), &[APPLIED, AVAILABLE])
    } else {
        Vec::new()
    };
    let kind = if is_reported { DIFF_REPORTED } else { APPLIED };
    let answered = answered(works, kind);
    after.drifted_placements = drifted(&answered);
    // As upstream's, differences are told once all are known: the condition names the Work that has not told its own.
    after.diffed_placements = if is_failed(&new, DIFF_REPORTED) {
        Vec::new()
    } else {
        diffed(&answered)
    };
    let served = first_served(&before, &new);
    put(
        &mut after.conditions,
        new.into_iter().chain(served),
        (binding.metadata.generation, now),
    );
    (after != before).then_some(after)
}

/// Returns `true` if a condition is False, and not only because something is in progress.
fn is_failed(conditions: &[Condition], kind: &str) -> bool {
    let in_progress = [APPLY_IN_PROGRESS, DIFF_REPORT_IN_PROGRESS];
    find(conditions, kind)
        .is_some_and(|one| one.status == FALSE && !in_progress.contains(&&*one.reason))
}

/// Returns the Works that report a condition of their present content.
fn answered<'w>(works: &[&'w Work], kind: &str) -> Vec<&'w Work> {
    let works = works.iter().copied();
    works
        .filter(|work| reported(work, kind).is_some())
        .collect()
}

/// Returns the condition that a binding which never served does so with these `new` ones, if it does. The rollout would say
/// it with a write of its own.
fn first_served(before: &BindingStatus, new: &[Condition]) -> Option<Condition> {
    let been = find(&before.conditions, BEEN_AVAILABLE)?;
    let serves = [AVAILABLE, DIFF_REPORTED].into_iter();
    let mut serves = serves.filter_map(|kind| find(new, kind));
    let is_first = been.status == FALSE && serves.any(|one| one.status == TRUE);
    is_first.then(|| been_available(TRUE))
}

fn conditions(
    binding: &Binding,
    synchronization: &Synchronization,
    works: &[&Work],
    is_reported: bool,
) -> Vec<Condition> {
    let overridden = if listed(&binding.spec).next().is_none() {
        let message = "No override rules are configured for the selected resources";
        condition((OVERRIDDEN, TRUE), NO_OVERRIDE, message)
    } else {
        let message = "Successfully applied the override rules on the resources";
        condition((OVERRIDDEN, TRUE), "OverriddenSucceeded", message)
    };
    let synchronized = match synchronization {
        Synchronization::Failed(Failure::Overriding(reason)) => {
            let message = format!("Failed to apply the override rules on the resources: {reason}");
            return vec![condition((OVERRIDDEN, FALSE), "OverriddenFailed", &message)];
        }
        Synchronization::Failed(Failure::Synchronizing(reason)) => {
            let message = format!("Failed to synchronize the work to the latest: {reason}");
            let failed = condition((WORK_SYNCHRONIZED, FALSE), "SyncWorkFailed", &message);
            return vec![overridden, failed];
        }
        Synchronization::Synchronized | Synchronization::Kept | Synchronization::Written => {
            condition(
                (WORK_SYNCHRONIZED, TRUE),
                "AllWorkSynced",
                "All of the works are synchronized to the latest",
            )
        }
    };
    let mut conditions = vec![overridden, synchronized];
    if is_reported {
        conditions.push(differences(synchronization, works));
    } else {
        let applied = applied(synchronization, works);
        let is_applied = applied.status == TRUE;
        conditions.push(applied);
        conditions.extend(is_applied.then(|| available(works)).flatten());
    }
    let digest = binding.metadata.annotation(OVERRIDES_DIGEST);
    // Works that are kept may have been made by the snapshots before.
    let rendered = digest.filter(|_| *synchronization != Synchronization::Kept);
    conditions
        .extend(rendered.map(|digest| condition((OVERRIDES_RENDERED, TRUE), "Rendered", digest)));
    conditions
}

fn applied(synchronization: &Synchronization, works: &[&Work]) -> Condition {
    match answer(synchronization, works, APPLIED) {
        Answer::Pending => condition(
            (APPLIED, FALSE),
            APPLY_IN_PROGRESS,
            "Resources are being applied",
        ),
        Answer::No(work) => {
            let message = format!("Work object {} has failed to apply", work.metadata.name());
            condition((APPLIED, FALSE), "NotAllWorkHaveBeenApplied", &message)
        }
        Answer::Yes => {
            let message = "All corresponding work objects are applied";
            condition((APPLIED, TRUE), "AllWorkHaveBeenApplied", message)
        }
    }
}

fn differences(synchronization: &Synchronization, works: &[&Work]) -> Condition {
    match answer(synchronization, works, DIFF_REPORTED) {
        Answer::Pending => condition(
            (DIFF_REPORTED, FALSE),
            DIFF_REPORT_IN_PROGRESS,
            "Diff reporting is in progress",
        ),
        Answer::No(work) => {
            let name = work.metadata.name();
            let mut message = format!("Work object {name} has failed to report diff");
            if let Some(failed) = failed(&[work], &[DIFF_REPORTED]).first() {
                message = format!("{message}: {}", failed.condition.message);
            }
            condition(
                (DIFF_REPORTED, FALSE),
                "NotAllWorkHaveDiffReported",
                &message,
            )
        }
        Answer::Yes => {
            let message = "All corresponding work objects have reported diff";
            condition((DIFF_REPORTED, TRUE), "AllWorkHaveDiffReported", message)
        }
    }
}

/// The joint report of the Works of a binding.
enum Answer<'w> {
    /// All say that it is so.
    Yes,
    /// This one says that it is not.
    No(&'w Work),
    /// One has not said anything about its present content.
    Pending,
}

fn answer<'w>(synchronization: &Synchronization, works: &[&'w Work], kind: &str) -> Answer<'w> {
    if *synchronization == Synchronization::Written {
        return Answer::Pending;
    }
    let mut answer = Answer::Yes;
    for work in works {
        match reported(work, kind).map(|condition| &*condition.status) {
            Some(FALSE) => return Answer::No(work),
            Some(TRUE) => {}
            _ => answer = Answer::Pending,
        }
    }
    answer
}

/// Returns the availability that the Works report of which everything is applied; `None` while one says nothing.
fn available(works: &[&Work]) -> Option<Condition> {
    let mut untrackable = None;
    for work in works {
        let condition_of_work = reported(work, AVAILABLE)?;
        if condition_of_work.status != TRUE {
            let message = format!("Work object {} is not yet available", work.metadata.name());
            return Some(condition(
                (AVAILABLE, FALSE),
                "NotAllWorkAreAvailable",
                &message,
            ));
        }
        if condition_of_work.reason == WORK_NOT_TRACKABLE {
            untrackable = untrackable.or(Some(work));
        }
    }
    let Some(work) = untrackable else {
        let message = "All corresponding work objects are available";
        return Some(condition((AVAILABLE, TRUE), "AllWorkAreAvailable", message));
    };
    let name = work.metadata.name();
    let message = format!("The availability of work object {name} is not trackable");
    Some(condition((AVAILABLE, TRUE), UNTRACKABLE, &message))
}

/// Returns the report of a Work about its present content.
fn reported<'w>(work: &'w Work, kind: &str) -> Option<&'w Condition> {
    let condition = find(&work.status.as_ref()?.conditions, kind)?;
    let is_current = condition.observed_generation == work.metadata.generation;
    is_current.then_some(condition)
}
