//! Which clusters of a placement get its latest snapshot and overrides now, and which of those that it left may lose it.
//!
//! One call gives the writes of one step; the reports on them lead to the next. A pure function of the bindings, the
//! reports on each, and the budget that the placement allows.
//!
//! - `facts`: the facts that decide about a step; `report`: the report on one binding; `candidate`: the two together.
//! - `budget`: how many may be without at a time.
//! - `writes`: the writes to a binding.

mod budget;
mod candidate;
mod facts;
mod report;
#[cfg(test)]
mod tests;
mod writes;

use std::collections::BTreeSet;

use fleet_api::Binding;
use fleet_api::binding::BindingState;
use objects::Metadata;
use objects::write::{Plan, Write};

pub use facts::RolloutFacts;
pub(super) use report::is_rendered;
pub(super) use writes::{Latest, delete, give, write_conditions};

use budget::Budget;
use candidate::Candidate;
use report::Rules;
use writes::RolloutState;

/// Plans a step of a rollout.
pub fn plan(facts: &RolloutFacts<'_>) -> Plan {
    let rules = Rules::of(facts);
    let bindings: Vec<_> = facts
        .bindings
        .iter()
        .map(|binding| Candidate::of(binding, facts, &rules))
        .collect();
    let mut step = Step {
        facts,
        budget: Budget::of(facts.placement, &bindings),
        given: BTreeSet::new(),
        deleted: Vec::new(),
    };
    step.remove(&bindings);
    step.update(&bindings);
    step.bind(&bindings);
    let wake_at = bindings.iter().filter_map(|one| one.report.changes_at());
    Plan {
        wake_at: wake_at.min(),
        writes: step.writes(&bindings, &rules),
        events: Vec::new(),
    }
}

/// A step as it is being planned.
struct Step<'f, 'a> {
    facts: &'f RolloutFacts<'a>,
    budget: Budget,
    /// The bindings that get the latest.
    given: BTreeSet<&'f str>,
    deleted: Vec<&'f Binding>,
}

impl<'f> Step<'f, '_> {
    /// Removes the placement from clusters that it left.
    fn remove(&mut self, bindings: &[Candidate<'f>]) {
        let none_is_wanted = !bindings.iter().any(Candidate::is_wanted);
        for one in bindings
            .iter()
            .filter(|one| one.is(BindingState::Unscheduled))
        {
            // In a cluster that is gone, or where it never served, nothing is lost.
            let is_lost = one.reach.is_none() || one.report.has_nothing_to_lose();
            let may_go =
                none_is_wanted || is_lost || (one.is_reachable() && self.budget.take_one());
            if may_go {
                self.deleted.push(one.binding);
            }
        }
    }

    /// Gives the latest to clusters that have something older.
    fn update(&mut self, bindings: &[Candidate<'f>]) {
        let stale = bindings
            .iter()
            .filter(|one| one.is(BindingState::Bound) && one.is_stale && one.is_reachable());
        for one in stale {
            let may_change = if one.report.has_nothing_to_lose() {
                true
            } else if one.is_ready() {
                self.budget.take_one()
            } else if one.report.is_settling() {
                // Between two changes of objects that nobody can track there are its seconds.
                false
            } else {
                // It may well serve, though nobody has said so yet.
                self.budget.is_kept()
            };
            if may_change {
                self.given.insert(one.name());
            }
        }
    }

    /// Gives the latest to clusters that have nothing.
    fn bind(&mut self, bindings: &[Candidate<'f>]) {
        let present = bindings.iter().filter(|one| one.is_present()).count();
        let room = self.budget.ceiling().saturating_sub(present);
        let leaving = bindings
            .iter()
            .filter(|one| one.binding.metadata.is_deleting());
        let leaving: BTreeSet<_> = leaving
            .map(|one| &*one.binding.spec.target_cluster)
            .collect();
        let scheduled = bindings.iter().filter(|one| {
            let cluster = &*one.binding.spec.target_cluster;
            one.is(BindingState::Scheduled) && one.is_reachable() && !leaving.contains(cluster)
        });
        let bound = scheduled.take(room).map(Candidate::name);
        self.given.extend(bound);
    }

    fn writes(self, bindings: &[Candidate<'f>], rules: &Rules) -> Vec<Write> {
        let Self {
            facts,
            given,
            deleted,
            ..
        } = self;
        let mut writes: Vec<_> = deleted.iter().map(|binding| delete(binding)).collect();
        for one in bindings {
            let mut deleted = deleted.iter();
            let is_deleted = deleted.any(|binding| binding.metadata.name() == one.name());
            if is_deleted || one.binding.metadata.is_deleting() {
                continue;
            }
            let latest = given.contains(one.name()).then(|| Latest {
                snapshot: facts.snapshot,
                overrides: facts.overrides.applicable(one.binding),
                digest: facts.overrides.digest(one.binding),
            });
            let strategy = &rules.apply_strategy;
            if latest.is_some() || one.binding.spec.apply_strategy.as_ref() != Some(strategy) {
                writes.push(give(one.binding, latest, strategy));
                // The next step says that it has started: then the generation is known.
                continue;
            }
            if !one.is(BindingState::Unscheduled) {
                let state = RolloutState {
                    is_held: one.is(BindingState::Scheduled) || one.is_stale,
                    has_served: one.is_ready() || one.report.is_settling(),
                    is_first: report::has_nothing(one.binding),
                };
                writes.extend(writes::started(one.binding, state, facts.now));
            }
        }
        writes
    }
}
