//! The taints that keep a workload away from a cluster, or drive it out.

use jiff::{SignedDuration, Timestamp};
use k8s_openapi::api::core::v1::{Taint, Toleration};
use karmada_api::ClusterView;

/// Returns a taint that keeps new workloads away and is not tolerated, or not any longer: what has left a cluster
/// when its time was over would only have to leave it again.
pub(super) fn untolerated<'a>(
    cluster: &'a ClusterView,
    tolerations: &[Toleration],
    now: Timestamp,
) -> Option<&'a Taint> {
    let mut taints = cluster.spec.taints.iter();
    taints.find(|taint| match &*taint.effect {
        "NoSchedule" => !tolerations.iter().any(|one| tolerates(one, taint)),
        "NoExecute" => tolerated_until(taint, tolerations).is_some_and(|until| until <= now),
        _ => false,
    })
}

/// Returns the taint for which a workload has to leave the cluster first, and the time at which it has to.
pub(super) fn first_untolerated<'a>(
    cluster: &'a ClusterView,
    tolerations: &[Toleration],
) -> Option<(&'a Taint, Timestamp)> {
    let taints = cluster.spec.taints.iter();
    taints
        .filter(|taint| taint.effect == "NoExecute")
        .filter_map(|taint| Some((taint, tolerated_until(taint, tolerations)?)))
        .min_by_key(|(_, at)| *at)
}

/// Returns the time until which the taint is tolerated: the earliest of all tolerations of it, and `None` for
/// ever.
fn tolerated_until(taint: &Taint, tolerations: &[Toleration]) -> Option<Timestamp> {
    let mut used = tolerations
        .iter()
        .filter(|toleration| tolerates(toleration, taint))
        .peekable();
    if used.peek().is_none() {
        return Some(Timestamp::UNIX_EPOCH);
    }
    // A taint of unknown age counts as an old one.
    let added = taint.time_added.as_ref();
    let added = added.map_or(Timestamp::UNIX_EPOCH, |time| time.0);
    let seconds = used
        .filter_map(|toleration| toleration.toleration_seconds)
        .min()?;
    let until = added.saturating_add(SignedDuration::from_secs(seconds.max(0)));
    Some(until.unwrap_or(Timestamp::MAX))
}

/// Returns `true` if the toleration is of the taint, as kube-scheduler compares them.
fn tolerates(toleration: &Toleration, taint: &Taint) -> bool {
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

fn is_any_or(field: Option<&str>, value: &str) -> bool {
    let field = field.unwrap_or_default();
    field.is_empty() || field == value
}

/// Returns the taint as kubectl shows it.
pub(super) fn show(taint: &Taint) -> String {
    let value = taint.value.as_deref().unwrap_or_default();
    let equals = if value.is_empty() { "" } else { "=" };
    format!("{}{equals}{value}:{}", taint.key, taint.effect)
}
