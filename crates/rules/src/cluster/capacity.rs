//! What a `Cluster` says of its capacity.

use k8s_openapi::apimachinery::pkg::api::resource::Quantity;
use karmada_api::cluster_view::{Quantities, ResourceSummary};
use objects::amounts::Amounts;

use crate::usage::ClusterUsage;

/// Returns the capacity of a cluster, of which this is in use.
pub fn summary(usage: &ClusterUsage) -> ResourceSummary {
    ResourceSummary {
        allocatable: quantities(&usage.allocatable),
        allocating: quantities(&usage.allocating),
        allocated: quantities(&usage.allocated),
        ..ResourceSummary::default()
    }
}

fn quantities(amounts: &Amounts) -> Quantities {
    let texts = amounts.texts().into_iter();
    texts.map(|(name, text)| (name, Quantity(text))).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// An empty cluster has no capacity.
    #[test]
    fn empty_cluster_has_no_capacity() {
        let empty = summary(&ClusterUsage::default());
        assert_eq!(empty, ResourceSummary::default());
    }
}
