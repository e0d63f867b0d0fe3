//! The report of a member's agent about a Work.
//!
//! - `report`: the outcome of each manifest.
//! - `manifest`: the conditions of one; `whole`: those of all of them.
//! - `trim`: keeps that small enough to be stored.

mod manifest;
mod report;
#[cfg(test)]
mod tests;
mod trim;
mod whole;

use fleet_api::Work;
use fleet_api::conditions::{APPLIED, AVAILABLE, DIFF_REPORTED, REMOVING, STATUS_TRIMMED};
use fleet_api::work::{WorkResourceIdentifier, WorkStatus};
use jiff::Timestamp;
use objects::Key;
use objects::condition::{TRUE, find};

pub use report::{ManifestReport, ManifestResult};

use super::condition::{condition, put};
use super::manifests::identifier;
use super::strategy::Strategy;
use manifest::of_manifest;
use trim::trim;
use whole::whole;

/// Returns the status of a Work after a pass over its manifests, or `None` if it is up to date.
pub fn work_status(
    work: &Work,
    reports: &[ManifestReport<'_>],
    now: Timestamp,
) -> Option<WorkStatus> {
    let before = work.status.clone().unwrap_or_default();
    let manifests = reports.iter().zip(0..).map(|(report, ordinal)| {
        let identifier = identifier(report.manifest, ordinal, report.resource);
        let old = before.manifest_conditions.iter();
        let mut old = old.filter(|one| is_same_object(&one.identifier, &identifier));
        let old = old.next().cloned().unwrap_or_default();
        of_manifest(work, report, (identifier, &old), now)
    });
    let manifest_conditions: Vec<_> = manifests.collect();
    let mut after = WorkStatus {
        conditions: before.conditions.clone(),
        manifest_conditions,
    };
    let trimmed = trim(work, &mut after);
    let is_pending = reports
        .iter()
        .any(|one| matches!(one.result, ManifestResult::Pending));
    if !is_pending {
        let is_reported = Strategy::of(work.spec.apply_strategy.as_ref()).only_reports();
        let mut new = whole(&after.manifest_conditions, is_reported);
        new.extend(trimmed);
        let ours = [APPLIED, AVAILABLE, DIFF_REPORTED, STATUS_TRIMMED];
        after
            .conditions
            .retain(|old| !ours.contains(&&*old.type_) || find(&new, &old.type_).is_some());
        put(&mut after.conditions, new, (work.metadata.generation, now));
    }
    (after != before).then_some(after)
}

/// The most objects that are named because something holds them.
const MOST_HELD: usize = 10;

/// Returns the status of a Work that gives up these objects, which its member has not deleted yet, each with the finalizers
/// that hold it; `None` if that is told already.
pub fn with_remaining(
    work: &Work,
    remaining: &[(WorkResourceIdentifier, Vec<String>)],
    now: Timestamp,
) -> Option<WorkStatus> {
    let before = work.status.clone().unwrap_or_default();
    let mut after = before.clone();
    let held = remaining
        .iter()
        .filter(|(_, finalizers)| !finalizers.is_empty());
    let held = held.take(MOST_HELD).map(|(object, finalizers)| {
        let key = Key::new(&*object.namespace, &*object.name);
        format!("{} {key} is held by {}", object.kind, finalizers.join(", "))
    });
    let held: Vec<_> = held.collect();
    if held.is_empty() {
        after.conditions.retain(|one| one.type_ != REMOVING);
    } else {
        let removing = condition((REMOVING, TRUE), "HeldByFinalizers", &held.join("; "));
        put(
            &mut after.conditions,
            [removing],
            (work.metadata.generation, now),
        );
    }
    (after != before).then_some(after)
}

/// Returns `true` if the two are of the same object, whatever its place among the manifests.
fn is_same_object(one: &WorkResourceIdentifier, other: &WorkResourceIdentifier) -> bool {
    object(one) == object(other)
}

fn object(identifier: &WorkResourceIdentifier) -> [&str; 6] {
    let WorkResourceIdentifier {
        ordinal: _,
        group,
        version,
        kind,
        resource,
        namespace,
        name,
    } = identifier;
    [name, namespace, kind, group, version, resource]
}
