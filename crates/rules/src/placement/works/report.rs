//! What a binding says of its Works.

use jiff::Timestamp;
use karmada_api::Condition;
use karmada_api::condition::{FALSE, TRUE};
use karmada_api::fleet::binding::BindingStatus;
use karmada_api::fleet::conditions::{
    APPLIED, APPLY_IN_PROGRESS, AVAILABLE, DIFF_REPORTED, NO_OVERRIDE, OVERRIDDEN,
    OVERRIDES_RENDERED, UNTRACKABLE, WORK_NOT_TRACKABLE, WORK_SYNCHRONIZED,
};
use karmada_api::fleet::names::OVERRIDES_DIGEST;
use karmada_api::fleet::placement::{FailedPlacement, ResourceIdentifier};
use karmada_api::fleet::work::WorkResourceIdentifier;
use karmada_api::fleet::{ClusterResourceBinding, Work};
use objects::Metadata;
use objects::condition::find;

use super::facts::Failure;
use crate::placement::condition::{condition, put};
use crate::placement::envelope::envelope_of;
use crate::placement::overrides::listed;

/// Whether the Works of a binding are what its cluster should have.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Synchronization<'a> {
    /// They are.
    Synchronized,
    /// They are, as far as the rollout has got.
    Kept,
    /// They were written now, and nobody has answered.
    Written,
    /// They are not.
    Failed(&'a Failure),
}

/// The most objects of which a binding says that they are not as they shall be.
const MOST_FAILED: usize = 100;

/// Returns the status of a binding after a look at its Works, or `None` if it is up to date. What others say of the
/// binding stays.
pub fn report(
    binding: &ClusterResourceBinding,
    synchronization: Synchronization<'_>,
    works: &[&Work],
    now: Timestamp,
) -> Option<BindingStatus> {
    let before = binding.status.clone().unwrap_or_default();
    let mut after = before.clone();
    let new = conditions(binding, synchronization, works);
    let says = |kind: &str| new.iter().any(|condition| condition.type_ == kind);
    let ours = [
        OVERRIDDEN,
        WORK_SYNCHRONIZED,
        APPLIED,
        AVAILABLE,
        DIFF_REPORTED,
    ];
    after
        .conditions
        .retain(|one| !ours.contains(&&*one.type_) || says(&one.type_));
    let is_failure = |kind: &str| {
        let condition = find(&new, kind);
        condition.is_some_and(|one| one.status == FALSE && one.reason != APPLY_IN_PROGRESS)
    };
    after.failed_placements = if is_failure(APPLIED) {
        failed(works, APPLIED)
    } else if is_failure(AVAILABLE) {
        failed(works, AVAILABLE)
    } else {
        Vec::new()
    };
    put(
        &mut after.conditions,
        new,
        (binding.metadata.generation, now),
    );
    (after != before).then_some(after)
}

fn conditions(
    binding: &ClusterResourceBinding,
    synchronization: Synchronization<'_>,
    works: &[&Work],
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
    let applied = applied(synchronization, works);
    let is_applied = applied.status == TRUE;
    let mut conditions = vec![overridden, synchronized, applied];
    conditions.extend(is_applied.then(|| available(works)).flatten());
    let digest = binding.metadata.annotation(OVERRIDES_DIGEST);
    // What is kept may have been made by those before.
    let rendered = digest.filter(|_| synchronization != Synchronization::Kept);
    conditions
        .extend(rendered.map(|digest| condition((OVERRIDES_RENDERED, TRUE), "Rendered", digest)));
    conditions
}

fn applied(synchronization: Synchronization<'_>, works: &[&Work]) -> Condition {
    let refused = works
        .iter()
        .find(|work| reported(work, APPLIED).is_some_and(|one| one.status == FALSE));
    let is_answered = |work: &&Work| reported(work, APPLIED).is_some_and(|one| one.status == TRUE);
    if synchronization == Synchronization::Written {
        in_progress()
    } else if let Some(work) = refused {
        let message = format!("Work object {} has failed to apply", work.metadata.name());
        condition((APPLIED, FALSE), "NotAllWorkHaveBeenApplied", &message)
    } else if works.iter().all(is_answered) {
        let message = "All corresponding work objects are applied";
        condition((APPLIED, TRUE), "AllWorkHaveBeenApplied", message)
    } else {
        in_progress()
    }
}

fn in_progress() -> Condition {
    condition(
        (APPLIED, FALSE),
        APPLY_IN_PROGRESS,
        "Resources are being applied",
    )
}

/// Returns what the Works of which everything is applied say of its availability; `None` while one says nothing.
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

/// Returns what a Work says of its present content.
fn reported<'w>(work: &'w Work, kind: &str) -> Option<&'w Condition> {
    let condition = find(&work.status.as_ref()?.conditions, kind)?;
    let is_current = condition.observed_generation == work.metadata.generation;
    is_current.then_some(condition)
}

/// Returns the objects of which a condition is not True.
fn failed(works: &[&Work], kind: &str) -> Vec<FailedPlacement> {
    let manifests = works.iter().flat_map(|work| {
        let manifests = work.status.iter();
        let manifests = manifests.flat_map(|status| &status.manifest_conditions);
        manifests.map(|manifest| (*work, manifest))
    });
    let failed = manifests.filter_map(|(work, manifest)| {
        let condition = find(&manifest.conditions, kind).filter(|one| one.status == FALSE)?;
        Some(FailedPlacement {
            identifier: ResourceIdentifier {
                envelope: envelope_of(work),
                ..identifier(&manifest.identifier)
            },
            condition: condition.clone(),
        })
    });
    failed.take(MOST_FAILED).collect()
}

fn identifier(manifest: &WorkResourceIdentifier) -> ResourceIdentifier {
    ResourceIdentifier {
        group: manifest.group.clone(),
        version: manifest.version.clone(),
        kind: manifest.kind.clone(),
        name: manifest.name.clone(),
        namespace: manifest.namespace.clone(),
        envelope: None,
    }
}
