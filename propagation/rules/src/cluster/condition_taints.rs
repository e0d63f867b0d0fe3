//! The taints that a `Cluster` has for its conditions.

use karmada_api::Cluster;
use objects::condition_taint::{ConditionTaint, Said, desired_taints};
use serde::Deserialize;
use serde_json::Value;

/// Returns the taints of a `Cluster` with those that it must have for its conditions, and without those of
/// ours that it must not. One whose condition cannot be read stays as it is.
pub(super) fn with_condition_taints(
    taints: &[Value],
    wanted: &[ConditionTaint],
    cluster: &Value,
) -> Vec<Value> {
    let Ok(cluster) = Cluster::deserialize(cluster) else {
        return taints.to_vec();
    };
    desired_taints(taints, wanted, |kind| {
        if cluster.is_unclear(kind) {
            Said::Unclear
        } else {
            cluster.condition(kind).into()
        }
    })
}

#[cfg(test)]
mod tests {
    use karmada_api::condition::DNS_READY;
    use objects::condition_taint::PREFIX;
    use proptest::prelude::*;
    use serde_json::json;

    use super::*;

    const DNS_DEAD: &str = "ServiceDomainNameResolutionReady=False:NoExecute";

    fn taint(text: &str) -> ConditionTaint {
        text.parse().unwrap()
    }

    fn cluster(conditions: &Value) -> Value {
        json!({ "metadata": { "name": "m1" }, "status": { "conditions": conditions } })
    }

    fn dns(status: &Value) -> Value {
        cluster(
            &json!([{ "type": "Ready", "status": "True" }, { "type": DNS_READY, "status": status }]),
        )
    }

    fn dead() -> Value {
        json!({ "key": format!("{PREFIX}{DNS_READY}"), "value": "False", "effect": "NoExecute" })
    }

    /// A cluster has the taint while its condition has the status.
    #[test]
    fn taint_follows_the_condition() {
        let foreign = json!({ "key": "team", "value": "a", "effect": "NoSchedule", "newer": 1 });
        let mut dated = dead();
        dated["timeAdded"] = json!("2026-11-20T08:00:00Z");
        let other = |key: &str, value: &str| {
            let mut other = dead();
            other[key] = json!(value);
            other
        };
        let (alive, silent) = (dns(&json!("True")), cluster(&json!([])));
        let failed = dns(&json!("False"));
        for (sentence, cluster, taints, expected) in [
            ("it has failed", &failed, vec![], vec![dead()]),
            (
                "a date stays",
                &failed,
                vec![dated.clone()],
                vec![dated.clone()],
            ),
            ("it is well", &alive, vec![dated.clone()], vec![]),
            ("it is gone", &silent, vec![dated.clone()], vec![]),
            ("it never failed", &alive, vec![], vec![]),
            (
                "those of others stay in their order",
                &alive,
                vec![foreign.clone(), dead(), json!(7)],
                vec![foreign.clone(), json!(7)],
            ),
            (
                "another effect or value is of another flag, which is gone",
                &failed,
                vec![other("effect", "NoSchedule"), other("value", "True")],
                vec![dead()],
            ),
            (
                "another prefix is not ours",
                &alive,
                vec![other("key", "cluster.karmada.io/dns")],
                vec![other("key", "cluster.karmada.io/dns")],
            ),
        ] {
            let once = with_condition_taints(&taints, &[taint(DNS_DEAD)], cluster);
            assert_eq!(once, expected, "{sentence}");
        }
        let flagless = with_condition_taints(&[dead(), foreign.clone()], &[], &failed);
        assert_eq!(flagless, [foreign]);
    }

    /// A condition that cannot be read changes nothing.
    #[test]
    fn unreadable_condition_changes_nothing() {
        let odd = [
            dns(&json!(7)),
            cluster(&json!(7)),
            cluster(&json!([{ "type": 7 }])),
            json!({ "status": 7 }),
        ];
        for cluster in odd {
            for taints in [vec![], vec![dead()]] {
                let after = with_condition_taints(&taints, &[taint(DNS_DEAD)], &cluster);
                assert_eq!(after, taints, "{cluster}");
            }
        }
    }

    /// A condition may have a taint for each effect and status.
    #[test]
    fn one_condition_many_taints() {
        let wanted = [
            taint("A=False:NoSchedule"),
            taint("A=False:NoExecute"),
            taint("A=Unknown:NoSchedule"),
            taint("A=False:NoExecute"),
        ];
        for (status, expected) in [
            ("False", vec!["False:NoSchedule", "False:NoExecute"]),
            ("Unknown", vec!["Unknown:NoSchedule"]),
            ("True", vec![]),
        ] {
            let cluster = cluster(&json!([{ "type": "A", "status": status }]));
            let taints = with_condition_taints(&[], &wanted, &cluster);
            let taints = taints.iter().map(super::super::taints::text);
            let expected = expected.iter().map(|rest| format!("{PREFIX}A={rest}"));
            assert!(taints.eq(expected), "{status}");
        }
    }

    proptest! {
        #[test]
        fn a_second_look_changes_nothing(
            statuses in prop::collection::vec(("[AB]", "True|False|Unknown"), 0..3),
            wanted in prop::collection::vec("[AB]=(True|False):(NoSchedule|NoExecute)", 0..4),
            present in prop::collection::vec(("[ABC]", "True|False", "NoSchedule|NoExecute"), 0..3),
        ) {
            let conditions: Value = statuses.iter()
                .map(|(kind, status)| json!({ "type": kind, "status": status })).collect();
            let cluster = cluster(&conditions);
            let wanted: Vec<_> = wanted.iter().map(|text| taint(text)).collect();
            let present: Vec<_> = present.iter().map(|(name, value, effect)| {
                json!({ "key": format!("{PREFIX}{name}"), "value": value, "effect": effect })
            }).collect();
            let once = with_condition_taints(&present, &wanted, &cluster);
            prop_assert_eq!(&with_condition_taints(&once, &wanted, &cluster), &once);
        }
    }
}
