//! The taints that a cluster must have for its health, and the times of all.

use std::time::Duration;

use jiff::Timestamp;
use k8s_openapi::api::core::v1::Taint;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;
use karmada_api::condition::TRUE;
use objects::taint::{NO_EXECUTE, NO_SCHEDULE, show};
use serde::Deserialize;
use serde_json::{Value, json};

/// The key of the taint of a cluster whose API is not ready.
pub const NOT_READY: &str = "cluster.karmada.io/not-ready";
/// The key of the taint of a cluster of which nothing is known.
pub const UNREACHABLE: &str = "cluster.karmada.io/unreachable";

/// A cluster that is not ready.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Unready {
    /// The time for which it has not been.
    pub lasts: Duration,
    /// The time after which workloads are to leave it; `None`: they stay.
    pub evict_after: Option<Duration>,
}

/// Returns the taints of a cluster as they should be: `taints` with those of its health, and with the
/// times from which tolerations count. `ready` is the status of its condition `Ready`.
///
/// Taints are raw, so that no field of another writer's is lost.
pub(super) fn tainted(
    taints: &[Value],
    ready: Option<&str>,
    unready: Unready,
    now: Timestamp,
) -> Vec<Value> {
    let key = match ready {
        Some(TRUE) => None,
        Some("Unknown") => Some(UNREACHABLE),
        _ => Some(NOT_READY),
    };
    let mut desired = taints.to_vec();
    desired.retain(|taint| !is_ours(taint) || key.is_some_and(|key| taint["key"] == key));
    if let Some(key) = key {
        let evicts = unready
            .evict_after
            .is_some_and(|after| unready.lasts >= after);
        let effects = [Some(NO_SCHEDULE), evicts.then_some(NO_EXECUTE)];
        for effect in effects.into_iter().flatten() {
            let mut present = desired.iter();
            if !present.any(|taint| taint["key"] == key && taint["effect"] == effect) {
                desired.push(json!({ "key": key, "effect": effect }));
            }
        }
    }
    for taint in &mut desired {
        if taint["effect"] == NO_EXECUTE
            && taint["timeAdded"].is_null()
            && let Some(fields) = taint.as_object_mut()
        {
            fields.insert("timeAdded".to_owned(), json!(Time(now)));
        }
    }
    desired
}

fn is_ours(taint: &Value) -> bool {
    taint["key"] == NOT_READY || taint["key"] == UNREACHABLE
}

/// Returns a raw taint as kubectl shows it.
pub(super) fn text(taint: &Value) -> String {
    show(&Taint::deserialize(taint).unwrap_or_default())
}

#[cfg(test)]
mod tests {
    use karmada_api::condition::FALSE;

    use super::*;

    const NOW: &str = "2026-11-20T08:00:00Z";
    const BEFORE: &str = "2026-11-20T07:00:00Z";

    fn after(seconds: u64, evict_after: Option<u64>) -> Unready {
        Unready {
            lasts: Duration::from_secs(seconds),
            evict_after: evict_after.map(Duration::from_secs),
        }
    }

    type Case = (
        &'static str,
        Vec<Value>,
        Option<&'static str>,
        Unready,
        Vec<Value>,
    );

    #[track_caller]
    fn expect(table: impl IntoIterator<Item = Case>) {
        let now: Timestamp = "2026-11-20T08:00:00.7Z".parse().unwrap();
        for (sentence, taints, ready, unready, expected) in table {
            let once = tainted(&taints, ready, unready, now);
            assert_eq!(once, expected, "{sentence}");
            assert_eq!(tainted(&once, ready, unready, now), once, "{sentence}");
        }
    }

    fn not_ready() -> Value {
        json!({ "key": NOT_READY, "effect": NO_SCHEDULE })
    }

    fn evicting(key: &str, time: &str) -> Value {
        json!({ "key": key, "effect": NO_EXECUTE, "timeAdded": time })
    }

    /// Taints follow the health and leave those of others.
    #[test]
    fn foreign_taints_stay() {
        let foreign = json!({ "key": "team", "value": "a", "effect": "NoSchedule", "newer": 1 });
        let unreachable = json!({ "key": UNREACHABLE, "effect": NO_SCHEDULE });
        let drain = json!({ "key": "drain", "effect": NO_EXECUTE });
        let odd = vec![json!(7), json!({})];
        let none = after(0, None);
        expect([
            ("a ready cluster has none", vec![], Some(TRUE), none, vec![]),
            (
                "without a verdict it is not ready",
                vec![foreign.clone()],
                None,
                none,
                vec![foreign.clone(), not_ready()],
            ),
            (
                "a taint that is there is not added",
                vec![not_ready(), foreign.clone()],
                Some(FALSE),
                after(900, None),
                vec![not_ready(), foreign.clone()],
            ),
            (
                "a cluster of which nothing is known is unreachable",
                vec![not_ready()],
                Some("Unknown"),
                none,
                vec![unreachable],
            ),
            (
                "all of ours go once it is ready",
                vec![not_ready(), foreign.clone(), evicting(NOT_READY, BEFORE)],
                Some(TRUE),
                after(0, Some(60)),
                vec![foreign],
            ),
            (
                "a taint of a user's gets the time from which tolerations count",
                vec![drain],
                Some(TRUE),
                none,
                vec![evicting("drain", NOW)],
            ),
            ("odd ones stay", odd.clone(), Some(TRUE), none, odd),
        ]);
    }

    /// Workloads are to leave a cluster that has not been ready for long enough.
    #[test]
    fn long_unready_evicts_workloads() {
        let evicted = vec![not_ready(), evicting(NOT_READY, BEFORE)];
        let table = [
            ("too early", vec![not_ready()], 59, vec![not_ready()]),
            (
                "now",
                vec![not_ready()],
                60,
                vec![not_ready(), evicting(NOT_READY, NOW)],
            ),
            ("the time stays", evicted.clone(), 61, evicted.clone()),
            // The count begins anew with the process.
            ("a restart takes nothing back", evicted.clone(), 0, evicted),
        ];
        expect(table.map(|(sentence, taints, seconds, expected)| {
            let unready = after(seconds, Some(60));
            (sentence, taints, Some(FALSE), unready, expected)
        }));
    }

    /// A taint reads as in kubectl.
    #[test]
    fn taint_reads_as_kubectl() {
        assert_eq!(
            text(&json!({ "key": "a", "effect": "NoSchedule" })),
            "a:NoSchedule"
        );
        assert_eq!(
            text(&json!({ "key": "a", "value": "b", "effect": "NoExecute" })),
            "a=b:NoExecute"
        );
    }
}
