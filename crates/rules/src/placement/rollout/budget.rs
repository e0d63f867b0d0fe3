//! How many clusters of a placement may be without it at a time, and how many more than wanted may have it.

use k8s_openapi::apimachinery::pkg::util::intstr::IntOrString;
use karmada_api::fleet::ClusterResourcePlacement;

use super::candidate::Candidate;

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
    pub(super) fn of(placement: &ClusterResourcePlacement, bindings: &[Candidate<'_>]) -> Self {
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

/// Returns a number, or a part of all, rounded up.
fn of_all(bound: Option<&IntOrString>, all: usize) -> usize {
    let percent = match bound {
        Some(IntOrString::Int(number)) => return usize::try_from(*number).unwrap_or_default(),
        Some(IntOrString::String(text)) => {
            text.strip_suffix('%').and_then(|text| text.parse().ok())
        }
        None => None,
    };
    let percent: usize = percent.unwrap_or(DEFAULT_PERCENT);
    all.saturating_mul(percent).div_ceil(100)
}
