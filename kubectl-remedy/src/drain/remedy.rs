//! The Remedy that takes the traffic of a cluster away which is drained.

use jiff::Timestamp;
use karmada_api::Remedy;
use karmada_api::remedy::DRAIN;
use kube::ResourceExt;

use crate::block::blocking;

/// Returns the Remedy's name.
pub(super) fn name(cluster: &str) -> String {
    format!("drain-{cluster}")
}

/// Returns that Remedy.
pub(super) fn remedy(cluster: &str, end: Timestamp, reason: Option<&str>) -> Remedy {
    let mut remedy = blocking(&name(cluster), cluster, end, reason);
    let annotations = remedy.annotations_mut();
    annotations.insert(DRAIN.to_owned(), cluster.to_owned());
    remedy
}
