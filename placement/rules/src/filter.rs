//! The clusters that a policy allows, when a placement has none there yet.

use std::fmt;

use fleet_api::MemberCluster;
use fleet_api::conditions::NAMESPACES_COLLECTED;
use fleet_api::policy::{ClusterAffinity, ClusterSelectorTerm, PlacementPolicy};
use k8s_openapi::api::core::v1::{Taint, Toleration};
use objects::condition::{TRUE, find};
use objects::selector::selects;
use objects::taint::tolerates;

use super::eligible::Obstacle;
use super::property::meets;

/// The reason why a placement may not go to a cluster.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum Unfit {
    /// Nothing may.
    Ineligible(Obstacle),
    /// It meets none of the required terms.
    Affinity,
    /// It does not have the namespace of the placement.
    NoNamespace,
    /// Its agent tells of namespaces, and has not done so yet.
    UnknownNamespaces,
    /// It has a taint that is not tolerated.
    Tainted(Taint),
    /// Its domain has too many already.
    Spread {
        /// The key of the topology.
        key: String,
        /// By how many clusters the domains may differ.
        max_skew: i64,
    },
}

impl fmt::Display for Unfit {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Ineligible(obstacle) => write!(f, "{obstacle}"),
            Self::Affinity => f.write_str(
                "cluster does not match with any of the required cluster affinity terms",
            ),
            Self::NoNamespace => f.write_str("target namespace does not exist on cluster"),
            Self::UnknownNamespaces => {
                f.write_str("cluster has no namespace information available")
            }
            Self::Tainted(taint) => {
                let value = taint.value.as_deref().unwrap_or_default();
                let Taint { key, effect, .. } = taint;
                write!(
                    f,
                    "taint &{{Key:{key} Value:{value} Effect:{effect}}} cannot be tolerated"
                )
            }
            Self::Spread { key, max_skew } => write!(
                f,
                "violated doNotSchedule topology spread constraint {key:?} (max skew {max_skew})"
            ),
        }
    }
}

/// The demands of a placement on each cluster by itself.
#[derive(Debug)]
pub(super) struct Filter<'p> {
    /// Its namespace; empty if it has none.
    namespace: &'p str,
    required: Option<&'p [ClusterSelectorTerm]>,
    tolerations: Vec<Toleration>,
}

impl<'p> Filter<'p> {
    /// Returns the filter of a policy, that of a placement in a namespace, which is empty if it has none.
    pub(super) fn of(policy: &'p PlacementPolicy, namespace: &'p str) -> Self {
        let required = affinity(policy).and_then(|affinity| affinity.required.as_ref());
        Self {
            namespace,
            required: required.map(|required| &*required.cluster_selector_terms),
            tolerations: policy.tolerations.iter().map(Toleration::from).collect(),
        }
    }

    /// Returns the reason why the policy does not allow the cluster, or `None` if it does.
    pub(super) fn unfit(&self, cluster: &MemberCluster) -> Option<Unfit> {
        if !self.meets_required(cluster) {
            return Some(Unfit::Affinity);
        }
        if let Some(unfit) = namespace_unfit(self.namespace, cluster) {
            return Some(unfit);
        }
        let mut taints = cluster.spec.taints.iter();
        let untolerated = taints.find(|taint| {
            taint.effect == "NoSchedule"
                && !self.tolerations.iter().any(|one| tolerates(one, taint))
        });
        untolerated.cloned().map(Unfit::Tainted)
    }

    /// Returns `true` if the cluster meets one of the required terms, or none is required.
    pub(super) fn meets_required(&self, cluster: &MemberCluster) -> bool {
        // No term asks for nothing.
        let required = self.required.filter(|terms| !terms.is_empty());
        required.is_none_or(|terms| terms.iter().any(|term| matches(term, cluster)))
    }
}

/// Returns why objects of a namespace, which is empty for a placement without one, cannot be in a cluster, if its agent tells
/// of namespaces. One that has too many tells only of the first.
pub(super) fn namespace_unfit(namespace: &str, cluster: &MemberCluster) -> Option<Unfit> {
    let status = cluster.status.as_ref()?;
    let collected = find(&status.conditions, NAMESPACES_COLLECTED)?;
    if namespace.is_empty() {
        return None;
    }
    match &status.namespaces {
        None => Some(Unfit::UnknownNamespaces),
        Some(namespaces) if namespaces.contains_key(namespace) => None,
        Some(_) => (collected.status == TRUE).then_some(Unfit::NoNamespace),
    }
}

/// Returns the requirements and preferences of a policy.
pub(super) fn affinity(policy: &PlacementPolicy) -> Option<&ClusterAffinity> {
    policy.affinity.as_ref()?.cluster_affinity.as_ref()
}

/// Returns `true` if the cluster meets every part of the term.
pub(super) fn matches(term: &ClusterSelectorTerm, cluster: &MemberCluster) -> bool {
    let labels = term.label_selector.as_ref();
    let properties = term.property_selector.iter();
    let mut requirements = properties.flat_map(|selector| &selector.match_expressions);
    labels.is_none_or(|labels| selects(labels, &cluster.metadata))
        && requirements.all(|requirement| meets(cluster, requirement))
}
