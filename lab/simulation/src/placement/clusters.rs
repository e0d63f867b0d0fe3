//! The clusters of the fleet: how many there may be, and their names.

/// The number of clusters.
pub(crate) const CLUSTERS: u8 = 3;

/// Returns the name of a cluster.
pub(crate) fn cluster(nth: u8) -> String {
    format!("m{nth}")
}
