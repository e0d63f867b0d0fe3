//! The clusters on which a template may run.

use std::collections::BTreeMap;
use std::fmt;

use jiff::Timestamp;
use k8s_openapi::api::core::v1::{Taint, Toleration};
use karmada_api::ClusterView;
use karmada_api::placement::{ClusterSelector, SpreadConstraint};

use super::decide::Cycle;
use super::evict::tolerated_until;
use super::selects;

/// The reasons why no cluster fits, with the number of clusters of each.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Unfit {
    clusters: usize,
    reasons: BTreeMap<String, usize>,
}

/// Returns the clusters that fit, of which there is at least one.
pub(super) fn fitting<'a>(
    cycle: Cycle<'a>,
    affinity: Option<&ClusterSelector>,
) -> Result<Vec<&'a ClusterView>, Unfit> {
    let clusters = cycle.fleet.clusters;
    let mut fitting = Vec::new();
    let mut reasons = BTreeMap::new();
    for cluster in clusters {
        match misfit(cycle, affinity, cluster) {
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
fn misfit(
    cycle: Cycle<'_>,
    affinity: Option<&ClusterSelector>,
    cluster: &ClusterView,
) -> Option<String> {
    let (spec, placement) = (cycle.binding.spec, cycle.placement);
    let name = cluster.metadata.name.as_deref().unwrap_or_default();
    if cluster.metadata.deletion_timestamp.is_some() {
        return Some("cluster(s) were being deleted".to_owned());
    }
    // What runs already is not moved by a kind that vanished for a moment, nor by a new taint.
    let is_target = spec
        .clusters
        .iter()
        .flatten()
        .any(|target| target.name == name);
    if !is_target {
        let resource = &spec.resource;
        if !cluster.serves(&resource.api_version, &resource.kind) {
            return Some("cluster(s) did not have the API resource".to_owned());
        }
        let tolerations = &placement.cluster_tolerations;
        if let Some(taint) = untolerated(cluster, tolerations, cycle.pass.now) {
            return Some(format!(
                "cluster(s) had untolerated taint {{{}}}",
                show(taint)
            ));
        }
    }
    if affinity.is_some_and(|affinity| !selects(affinity, cluster)) {
        return Some(
            "cluster(s) did not match the placement cluster affinity constraint".to_owned(),
        );
    }
    if let Some(field) = missing_field(cluster, &placement.spread_constraints) {
        return Some(format!("cluster(s) did not have {field} property"));
    }
    let mut tasks = spec.graceful_eviction_tasks.iter().flatten();
    tasks
        .any(|task| task.from_cluster == name)
        .then(|| "cluster(s) is in the process of eviction".to_owned())
}

/// Returns a taint that keeps new workloads away and is not tolerated, or not any longer: what has left a cluster
/// when its time was over would only have to leave it again.
fn untolerated<'a>(
    cluster: &'a ClusterView,
    tolerations: &[Toleration],
    now: Timestamp,
) -> Option<&'a Taint> {
    let is_tolerated = |taint: &Taint| {
        let mut tolerations = tolerations.iter();
        tolerations.any(|toleration| tolerates(toleration, taint))
    };
    cluster
        .spec
        .taints
        .iter()
        .find(|taint| match &*taint.effect {
            "NoSchedule" => !is_tolerated(taint),
            "NoExecute" => tolerated_until(taint, tolerations).is_some_and(|until| until <= now),
            _ => false,
        })
}

/// Returns `true` if the toleration is of the taint, as kube-scheduler compares them.
pub(super) fn tolerates(toleration: &Toleration, taint: &Taint) -> bool {
    let is_any_or = |field: Option<&str>, value: &str| {
        let field = field.unwrap_or_default();
        field.is_empty() || field == value
    };
    is_any_or(toleration.effect.as_deref(), &taint.effect)
        && is_any_or(toleration.key.as_deref(), &taint.key)
        && match toleration.operator.as_deref().unwrap_or_default() {
            "" | "Equal" => {
                toleration.value.as_deref().unwrap_or_default()
                    == taint.value.as_deref().unwrap_or_default()
            }
            "Exists" => true,
            _ => false,
        }
}

/// Returns the taint as kubectl shows it.
pub(super) fn show(taint: &Taint) -> String {
    let value = taint.value.as_deref().unwrap_or_default();
    let equals = if value.is_empty() { "" } else { "=" };
    format!("{}{equals}{value}:{}", taint.key, taint.effect)
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

impl fmt::Display for Unfit {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "0/{} clusters are available", self.clusters)?;
        // Karmada sorts the texts with their numbers.
        let mut reasons: Vec<String> = self
            .reasons
            .iter()
            .map(|(reason, clusters)| format!("{clusters} {reason}"))
            .collect();
        reasons.sort_unstable();
        write!(f, ": {}.", reasons.join(", "))
    }
}

#[cfg(test)]
mod tests;
