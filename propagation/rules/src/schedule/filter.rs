//! The clusters on which a template may run.

use std::collections::BTreeMap;

use k8s_openapi::api::core::v1::Taint;
use karmada_api::ClusterView;
use karmada_api::placement::SpreadConstraint;
use objects::Metadata;
use objects::taint::{show, untolerated};

use super::facts::Facts;
use super::failure::Unfit;
use super::tiers::Tiers;

/// Returns the clusters that fit, of which there is at least one.
pub(super) fn fitting<'a>(
    facts: Facts<'a>,
    tiers: Tiers<'_>,
) -> Result<Vec<&'a ClusterView>, Unfit> {
    let clusters = facts.fleet.clusters;
    let mut fitting = Vec::new();
    let mut reasons = BTreeMap::new();
    for cluster in clusters {
        match misfit(facts, tiers, cluster) {
            None => fitting.push(*cluster),
            Some(reason) => *reasons.entry(reason).or_default() += 1,
        }
    }
    if fitting.is_empty() {
        let clusters = clusters.len();
        return Err(Unfit { clusters, reasons });
    }
    Ok(fitting)
}

/// Returns the reason why the cluster does not fit, or `None` if it does.
pub(super) fn misfit(facts: Facts<'_>, tiers: Tiers<'_>, cluster: &ClusterView) -> Option<String> {
    let (binding, placement) = (facts.binding, facts.placement);
    let name = cluster.metadata.name();
    if cluster.metadata.is_deleting() {
        return Some("cluster(s) were being deleted".to_owned());
    }
    // A running workload is not moved by a kind that vanished for a moment, nor by a new taint.
    if !binding.has_target(name) {
        let resource = &binding.spec.resource;
        if !cluster.serves(&resource.api_version, &resource.kind) {
            return Some("cluster(s) did not have the API resource".to_owned());
        }
        if let Some(taint) = closing_taint(facts, cluster) {
            let taint = show(taint);
            return Some(format!("cluster(s) had untolerated taint {{{taint}}}"));
        }
    }
    if tiers.tier(cluster).is_none() {
        return Some(
            "cluster(s) did not match the placement cluster affinity constraint".to_owned(),
        );
    }
    if let Some(field) = missing_field(cluster, &placement.spread_constraints) {
        return Some(format!("cluster(s) did not have {field} property"));
    }
    let mut tasks = binding.spec.graceful_eviction_tasks.iter().flatten();
    if tasks.any(|task| task.from_cluster == name) {
        return Some("cluster(s) is in the process of eviction".to_owned());
    }
    // Who came first stays, whoever comes into the group.
    let affinity_groups = facts.pass.affinity_groups;
    let affinity_groups = affinity_groups.filter(|_| !binding.has_target(name));
    affinity_groups?.refusal(name).map(str::to_owned)
}

/// Returns the taint for which nothing more comes to a cluster.
pub(super) fn closing_taint<'a>(facts: Facts<'_>, cluster: &'a ClusterView) -> Option<&'a Taint> {
    let tolerations = &facts.placement.cluster_tolerations;
    untolerated(&cluster.spec.taints, tolerations, facts.pass.now)
}

/// Returns the field that a constraint spreads by and the cluster does not have.
fn missing_field(cluster: &ClusterView, constraints: &[SpreadConstraint]) -> Option<&'static str> {
    let spec = &cluster.spec;
    constraints.iter().find_map(|constraint| {
        match constraint.spread_by_field.as_deref().unwrap_or_default() {
            "provider" if spec.provider.is_empty() => Some("provider"),
            "region" if spec.region.is_empty() => Some("region"),
            "zone" if spec.zones.is_empty() => Some("zones"),
            _ => None,
        }
    })
}

#[cfg(test)]
mod tests;
