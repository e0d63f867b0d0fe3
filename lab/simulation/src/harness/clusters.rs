//! The clusters of every world: few, so that random changes often concern the same.

/// The number of clusters.
pub(crate) const CLUSTERS: u8 = 3;

/// Returns the name of a cluster.
pub(crate) fn name(nth: u8) -> String {
    format!("m{nth}")
}

/// Returns the names of all clusters.
pub(crate) fn all() -> impl Iterator<Item = String> {
    (0..CLUSTERS).map(name)
}

/// Returns the names of the clusters whose bits are set.
pub(crate) fn names(bits: u8) -> Vec<String> {
    let set = (0..CLUSTERS).filter(|nth| bits & (1 << nth) != 0);
    set.map(name).collect()
}
