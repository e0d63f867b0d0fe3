//! Failing open: the clusters that serve a backend Service when every one of its clusters is blocked or has no endpoints that take
//! requests.

use std::collections::BTreeSet;

use k8s_openapi::api::discovery::v1::{EndpointConditions, EndpointSlice};

use super::admission::Admission;
use super::choice::WhenAllBlocked;
use super::desired::{Backend, ClusterEndpoints, Desired, ServedClusters, excluded, is_routable};
use super::facts::ClusterFacts;
use crate::cached::Cached;

/// A cluster that may serve a Service.
pub trait Candidate {
    /// Returns the cluster's name.
    fn cluster(&self) -> &str;
    /// Returns the cluster's claim to requests for the Service.
    fn admission(&self) -> Admission;
    /// Returns `true` if the Service runs there, or may.
    fn is_located(&self) -> bool;
    /// Returns `true` if an endpoint there is known that takes requests.
    fn takes_requests(&self) -> bool;
}

/// Returns the blocked clusters that serve a Service all the same, since no other of its `candidates` does. `is_unread` is
/// set if slices cannot be read: they may have the endpoints of an admitted cluster.
pub fn readmitted(
    candidates: &[impl Candidate],
    is_unread: bool,
    facts: &impl ClusterFacts,
) -> BTreeSet<String> {
    let mut readmitted = barred(candidates, is_unread);
    readmitted.retain(|cluster| is_readmissible(cluster, facts));
    readmitted
}

/// Returns the blocked clusters that would serve a Service, while no other of its `candidates` does.
fn barred(candidates: &[impl Candidate], is_unread: bool) -> BTreeSet<String> {
    let mut served = candidates.iter().filter(|c| c.admission().is_served());
    let is_served = candidates.iter().any(|c| c.admission().is_served());
    if is_served && (is_unread || served.any(Candidate::takes_requests)) {
        return BTreeSet::new();
    }
    let blocked = candidates.iter().filter(|candidate| {
        candidate.admission() == Admission::Blocked
            && candidate.is_located()
            // Beside an admitted cluster, one without endpoints would change nothing.
            && (!is_served || candidate.takes_requests())
    });
    blocked.map(|c| c.cluster().to_owned()).collect()
}

impl Desired {
    /// Readmits, for each backend that no cluster serves, the blocked clusters that may serve it.
    pub(super) fn readmit(&mut self, facts: &impl ClusterFacts) {
        if self.when_all_blocked == WhenAllBlocked::FailClosed {
            return;
        }
        let is_unread = !self.unread_slices.is_empty();
        for backend in &mut self.backends {
            for cluster in readmitted(&backend.clusters, is_unread, facts) {
                backend.readmit(&cluster);
            }
        }
    }
}

/// Returns those of the clusters that a load balancer holds endpoints of that must lose them, although
/// its ingress cannot be read. Failing open works on the endpoints that are held, as no more is known of the Services.
pub(super) fn cut(
    held: ServedClusters,
    when_all_blocked: WhenAllBlocked,
    facts: &impl ClusterFacts,
) -> ServedClusters {
    let cut = held.into_iter().filter_map(|(service, clusters)| {
        let mut cut = excluded(clusters.clone(), &[], facts);
        if when_all_blocked == WhenAllBlocked::FailOpen && cut == clusters {
            cut.retain(|cluster| !is_readmissible(cluster, facts));
        }
        (!cut.is_empty()).then_some((service, cut))
    });
    cut.collect()
}

/// Returns `true` if `cluster` may serve although it is blocked: a condition did that, and no person.
fn is_readmissible(cluster: &str, facts: &impl ClusterFacts) -> bool {
    // An unreadable cluster may be about to leave, and one that leaves is admitted nowhere.
    let stays = match facts.cluster(cluster) {
        Cached::Present(object) => {
            Admission::of(object) == Admission::Blocked
                && object.metadata.deletion_timestamp.is_none()
        }
        Cached::Absent | Cached::Unread => false,
    };
    stays && !facts.is_blocked_manually(cluster)
}

impl ClusterEndpoints {
    /// Returns `true` if Karmada has collected an endpoint there that takes requests.
    pub fn takes_requests(&self) -> bool {
        self.slices.iter().any(|slice| has_taker(slice))
    }
}

impl Candidate for ClusterEndpoints {
    fn cluster(&self) -> &str {
        &self.cluster
    }

    fn admission(&self) -> Admission {
        self.admission
    }

    fn is_located(&self) -> bool {
        self.is_located
    }

    fn takes_requests(&self) -> bool {
        self.takes_requests()
    }
}

/// Returns `true` if requests can be sent to an endpoint of the slice that takes them.
pub fn has_taker(slice: &EndpointSlice) -> bool {
    let mut endpoints = slice.endpoints.iter().flatten();
    is_routable(slice)
        && endpoints.any(|endpoint| endpoint.conditions.as_ref().is_none_or(takes_requests))
}

/// Returns `true` if an endpoint takes requests: it is ready, or, as in a rolling update, the last of a pod that ends and
/// serves until then. Proxies of Kubernetes fall back to these (KEP-1669).
pub(super) fn takes_requests(conditions: &EndpointConditions) -> bool {
    let ends = conditions.terminating == Some(true) && conditions.serving == Some(true);
    // Unknown is to be taken for ready (Kubernetes API reference, EndpointConditions).
    conditions.ready != Some(false) || ends
}

impl Backend {
    /// Returns the blocked clusters that would serve this Service, while no other cluster does.
    /// `is_unread` is set if slices of the namespace cannot be read.
    pub(super) fn barred(&self, is_unread: bool) -> BTreeSet<String> {
        barred(&self.clusters, is_unread)
    }

    fn readmit(&mut self, name: &str) {
        for cluster in self.clusters.iter_mut().filter(|c| c.cluster == name) {
            cluster.admission = Admission::Readmitted;
        }
    }

    /// Returns `true` if a cluster may serve this Service.
    pub fn is_served(&self) -> bool {
        self.clusters.iter().any(|c| c.admission.is_served())
    }

    /// Returns the names of the clusters that run this Service and have this admission.
    pub(super) fn clusters_with(&self, admission: Admission) -> Vec<String> {
        let clusters = self.clusters.iter();
        let clusters = clusters.filter(|c| c.is_located && c.admission == admission);
        clusters.map(|c| c.cluster.clone()).collect()
    }
}

#[cfg(test)]
mod tests;
