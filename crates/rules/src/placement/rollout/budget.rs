//! How many clusters of a placement may be without it at a time, and how many more than wanted may have it.

use fleet_api::Placement;
use k8s_openapi::apimachinery::pkg::util::intstr::IntOrString;

use super::candidate::Candidate;
use crate::strategy::{part_of, percentage_of};

/// The budget of one step.
#[derive(Clone, Copy, Debug)]
pub(super) struct Budget {
    wanted: usize,
    max_surge: usize,
    /// The least number of clusters that must be ready.
    floor: usize,
    ready: usize,
}

impl Budget {
    /// Returns the budget of a placement that has these bindings.
    pub(super) fn of(placement: &Placement, bindings: &[Candidate<'_>]) -> Self {
        let wanted = bindings
            .iter()
            .filter(|one| one.is_wanted() && one.is_reachable());
        let wanted = wanted.count();
        let update = placement
            .spec
            .strategy
            .rolling_update
            .clone()
            .unwrap_or_default();
        let max_unavailable = of_all(update.max_unavailable.as_ref(), wanted);
        Self {
            wanted,
            max_surge: of_all(update.max_surge.as_ref(), wanted),
            floor: wanted.saturating_sub(max_unavailable),
            ready: bindings.iter().filter(|one| one.is_ready()).count(),
        }
    }

    /// Returns `true` if enough are ready for now.
    pub(super) fn is_kept(&self) -> bool {
        self.ready >= self.floor
    }

    /// Takes one of those that are ready, if enough are left then.
    pub(super) fn take_one(&mut self) -> bool {
        let may = self.ready > self.floor;
        if may {
            self.ready -= 1;
        }
        may
    }

    /// Returns the most clusters that may have the placement.
    pub(super) fn ceiling(&self) -> usize {
        self.wanted.saturating_add(self.max_surge)
    }
}

/// The part of a hundred where a placement does not say.
const DEFAULT_PERCENT: usize = 25;

/// Returns the number of clusters that a bound means.
fn of_all(bound: Option<&IntOrString>, all: usize) -> usize {
    let number = bound.and_then(|bound| part_of(bound, all));
    number.unwrap_or_else(|| percentage_of(all, DEFAULT_PERCENT))
}
