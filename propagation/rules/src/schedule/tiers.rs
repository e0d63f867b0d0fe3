//! The tiers of clusters of one affinity: its own clusters, and those into which it overflows.

use karmada_api::ClusterView;
use karmada_api::placement::{ClusterAffinityTerm, ClusterSelector, OverflowAffinity};

use super::cluster_selector::selects;

/// The clusters of one affinity, in tiers of which each is used for the replicas that those before lack room for.
#[derive(Clone, Copy, Debug)]
pub(super) struct Tiers<'a> {
    /// The first tier; `None` selects every cluster.
    first: Option<&'a ClusterSelector>,
    overflow: &'a [OverflowAffinity],
}

impl<'a> Tiers<'a> {
    /// Returns the only tier of an affinity without a name; `None` selects every cluster.
    pub(super) fn only(affinity: Option<&'a ClusterSelector>) -> Self {
        Self {
            first: affinity,
            overflow: &[],
        }
    }

    /// Returns the tiers of a group.
    pub(super) fn of(group: &'a ClusterAffinityTerm) -> Self {
        Self {
            first: Some(&group.affinity),
            overflow: &group.overflow_affinities,
        }
    }

    /// Returns the first tier alone.
    pub(super) fn first(self) -> Self {
        Self::only(self.first)
    }

    /// Returns `true` if there is more than one tier.
    pub(super) fn overflows(self) -> bool {
        !self.overflow.is_empty()
    }

    /// Returns the number of the first tier that selects the cluster, and `None` if none does.
    pub(super) fn tier(self, cluster: &ClusterView) -> Option<usize> {
        if self.first.is_none_or(|first| selects(first, cluster)) {
            return Some(0);
        }
        let mut overflow = self.overflow.iter();
        let found = overflow.position(|tier| selects(&tier.affinity, cluster));
        found.map(|index| index + 1)
    }
}
