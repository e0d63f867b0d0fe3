//! Taints, which keep a workload away or drive it out, and the tolerations of them: of nodes in Kubernetes, and of
//! clusters in fleets.

use jiff::{SignedDuration, Timestamp};
use k8s_openapi::api::core::v1::{Taint, Toleration};

/// The effect of a taint that keeps new workloads away.
pub const NO_SCHEDULE: &str = "NoSchedule";
/// The effect of a taint that drives workloads out, too.
pub const NO_EXECUTE: &str = "NoExecute";

/// Returns a taint that keeps new workloads away and is not tolerated, or not any longer: a workload that has left
/// when its time was over would only have to leave it again.
pub fn untolerated<'a>(
    taints: &'a [Taint],
    tolerations: &[Toleration],
    now: Timestamp,
) -> Option<&'a Taint> {
    taints.iter().find(|taint| match &*taint.effect {
        NO_SCHEDULE => !tolerations.iter().any(|one| tolerates(one, taint)),
        NO_EXECUTE => tolerated_until(taint, tolerations).is_some_and(|until| until <= now),
        _ => false,
    })
}

/// Returns the taint for which a workload has to leave first, and the time at which it has to.
pub fn first_untolerated<'a>(
    taints: impl IntoIterator<Item = &'a Taint>,
    tolerations: &[Toleration],
) -> Option<(&'a Taint, Timestamp)> {
    taints
        .into_iter()
        .filter(|taint| taint.effect == NO_EXECUTE)
        .filter_map(|taint| Some((taint, tolerated_until(taint, tolerations)?)))
        .min_by_key(|(_, at)| *at)
}

/// Returns the time until which the taint is tolerated: the earliest of all tolerations of it, and `None` for ever, or
/// as long as it has no date.
fn tolerated_until(taint: &Taint, tolerations: &[Toleration]) -> Option<Timestamp> {
    let mut used = tolerations
        .iter()
        .filter(|toleration| tolerates(toleration, taint))
        .peekable();
    if used.peek().is_none() {
        return Some(Timestamp::UNIX_EPOCH);
    }
    let seconds = used
        .filter_map(|toleration| toleration.toleration_seconds)
        .min()?;
    // Who keeps the taints dates a new one in a moment; the time of toleration begins then.
    let added = taint.time_added.as_ref()?.0;
    let until = added.saturating_add(SignedDuration::from_secs(seconds.max(0)));
    Some(until.unwrap_or(Timestamp::MAX))
}

/// Returns `true` if the toleration is of the taint, as kube-scheduler compares them.
pub fn tolerates(toleration: &Toleration, taint: &Taint) -> bool {
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
pub fn show(taint: &Taint) -> String {
    let value = taint.value.as_deref().unwrap_or_default();
    let equals = if value.is_empty() { "" } else { "=" };
    format!("{}{equals}{value}:{}", taint.key, taint.effect)
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, from_value, json};

    use super::*;

    fn taint() -> Taint {
        let time = "2026-11-22T08:00:00Z";
        let taint =
            json!({ "key": "dns", "value": "down", "effect": "NoExecute", "timeAdded": time });
        from_value(taint).unwrap()
    }

    /// A toleration is of a taint if key, value and effect are its, or are not named.
    #[test]
    fn tolerations_match_as_in_kubernetes() {
        for (toleration, expected) in [
            (json!({ "key": "dns", "value": "down" }), true),
            (
                json!({ "key": "dns", "operator": "Equal", "value": "down", "effect": "" }),
                true,
            ),
            (json!({ "key": "dns" }), false),
            (json!({ "key": "dns", "operator": "Exists" }), true),
            (json!({ "key": "api", "operator": "Exists" }), false),
            (json!({ "operator": "Exists" }), true),
            (
                json!({ "operator": "Exists", "effect": "NoSchedule" }),
                false,
            ),
            (
                json!({ "key": "dns", "operator": "Like", "value": "down" }),
                false,
            ),
        ] {
            let parsed: Toleration = from_value(toleration.clone()).unwrap();
            assert_eq!(tolerates(&parsed, &taint()), expected, "{toleration}");
        }
    }

    /// The shortest of the tolerations counts, from the time at which the taint was added.
    #[test]
    fn shortest_toleration_counts() {
        let until = |seconds: &[Value]| {
            let all = seconds.iter().map(|seconds| {
                let toleration = json!({ "operator": "Exists", "tolerationSeconds": seconds });
                from_value(toleration).unwrap()
            });
            tolerated_until(&taint(), &all.collect::<Vec<_>>())
        };
        assert_eq!(until(&[]), Some(Timestamp::UNIX_EPOCH));
        assert_eq!(until(&[json!(null)]), None);
        let shortest = [json!(120), json!(60), json!(null)];
        for (seconds, expected) in [
            (&shortest[..], "2026-11-22T08:01:00Z"),
            (&[json!(-5)], "2026-11-22T08:00:00Z"),
        ] {
            assert_eq!(until(seconds), Some(expected.parse().unwrap()));
        }
    }
}
