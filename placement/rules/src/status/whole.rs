//! Where a placement stands in all of its clusters.

use fleet_api::conditions::{NO_OVERRIDE, of_placement};
use objects::Scope;
use objects::condition::{Condition, FALSE, TRUE, find};

use super::cluster::{ClusterProgress, FOR_GOOD};
use super::step::Step;
use crate::condition::condition;

/// Returns the conditions of a placement of a scope after the first, up to the first step that is not done everywhere. Without a
/// cluster there is none.
pub(super) fn conditions(scope: Scope, clusters: &[&ClusterProgress]) -> Vec<Condition> {
    let mut conditions = Vec::new();
    let steps = clusters.first().map_or(&[][..], |progress| progress.steps);
    for step in steps {
        let condition = whole(scope, step, clusters);
        let is_done = condition.status == TRUE;
        conditions.push(condition);
        if !is_done {
            break;
        }
    }
    conditions
}

/// Returns the condition of a step: nobody knows as long as one cluster does not.
fn whole(scope: Scope, step: &Step, clusters: &[&ClusterProgress]) -> Condition {
    let mut said = clusters
        .iter()
        .filter_map(|progress| find(&progress.reached, step.kind));
    let failed = said.clone().filter(|one| one.status == FALSE).count();
    let done = said.clone().filter(|one| one.status == TRUE).count();
    // Where clusters take other steps, while the strategy changes, nothing is said of this one.
    let unknown = clusters.len() - failed - done;
    let (status, words, clusters) = if unknown > 0 {
        ("Unknown", step.unknown, unknown)
    } else if failed > 0 {
        (FALSE, step.not, failed)
    } else {
        (TRUE, step.done, done)
    };
    let mut failures = said.clone().filter(|one| one.status == FALSE);
    let is_for_good = status == FALSE && failures.any(|one| one.message.ends_with(FOR_GOOD));
    let is_plain = said.all(|one| one.reason == NO_OVERRIDE);
    let (reason, mut message) = if status == TRUE && is_plain {
        let message = "No override rules are configured for the selected resources";
        (NO_OVERRIDE, message.to_owned())
    } else {
        (words.reason, words.message(clusters))
    };
    if is_for_good {
        message.push_str(FOR_GOOD);
    }
    let kind = of_placement(scope, step.kind);
    condition((&kind, status), reason, &message)
}
