//! A binding in a rollout.

use fleet_api::Binding;
use fleet_api::binding::BindingState;
use objects::Metadata;

use super::facts::RolloutFacts;
use super::report::{Report, Rules};
use crate::eligible::Reach;

/// A binding, and the facts that decide about it.
#[derive(Debug)]
pub(super) struct Candidate<'a> {
    pub(super) binding: &'a Binding,
    /// Whether its cluster can be reached; `None` if that is gone.
    pub(super) reach: Option<Reach>,
    pub(super) report: Report,
    /// True if the cluster has, or is to have, another snapshot than the latest, other overrides, or another effect of these.
    pub(super) is_stale: bool,
}

impl<'a> Candidate<'a> {
    pub(super) fn of(binding: &'a Binding, facts: &RolloutFacts<'_>, rules: &Rules) -> Self {
        let cluster = &*binding.spec.target_cluster;
        let reach = if facts.clusters.is_empty() {
            Some(Reach::Reachable)
        } else {
            facts.clusters.get(cluster).copied()
        };
        Self {
            binding,
            reach,
            report: Report::of(binding, rules),
            is_stale: binding.spec.resource_snapshot_name != facts.snapshot
                || facts.overrides.are_stale(binding),
        }
    }

    pub(super) fn name(&self) -> &'a str {
        self.binding.metadata.name()
    }

    pub(super) fn is(&self, state: BindingState) -> bool {
        self.binding.spec.state == state && !self.binding.metadata.is_deleting()
    }

    pub(super) fn is_wanted(&self) -> bool {
        self.is(BindingState::Scheduled) || self.is(BindingState::Bound)
    }

    pub(super) fn is_reachable(&self) -> bool {
        self.reach == Some(Reach::Reachable)
    }

    pub(super) fn is_ready(&self) -> bool {
        self.report.is_ready()
            && self.is_reachable()
            && (self.is(BindingState::Bound) || self.is(BindingState::Unscheduled))
    }

    /// Returns `true` if the cluster has, or may have, something of the placement.
    pub(super) fn is_present(&self) -> bool {
        self.binding.spec.state != BindingState::Scheduled && self.is_reachable()
    }
}
