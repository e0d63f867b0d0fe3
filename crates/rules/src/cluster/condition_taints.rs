//! The taints that clusters have for their conditions.

use std::fmt;
use std::str::FromStr;

use karmada_api::condition::{FALSE, TRUE};
use karmada_api::{Cluster, Condition};
use serde::Deserialize;
use serde_json::{Value, json};

use super::taints::{NO_EXECUTE, NO_SCHEDULE};
use objects::qualified_name::is_name;

/// The beginning of the keys of these taints. Every taint with such a key is ours.
const PREFIX: &str = "cluster.karmada-rs.io/";

/// A taint for a condition, written `TYPE=STATUS:EFFECT`: a cluster has the taint
/// `cluster.karmada-rs.io/TYPE=STATUS:EFFECT` while its condition `TYPE` is `STATUS`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ConditionTaint {
    condition: String,
    status: String,
    effect: String,
}

/// What a cluster says of one of its conditions.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Said<'a> {
    /// Its status; `None` without the condition.
    Status(Option<&'a str>),
    /// Something that cannot be read.
    Unclear,
}

impl<'a> From<Option<&'a Condition>> for Said<'a> {
    fn from(condition: Option<&'a Condition>) -> Self {
        match condition {
            Some(condition) if condition.unclear => Self::Unclear,
            _ => Self::Status(condition.map(|condition| &*condition.status)),
        }
    }
}

/// The error for a text that is no [`ConditionTaint`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct InvalidConditionTaint;

impl fmt::Display for InvalidConditionTaint {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(
            "must be TYPE=STATUS:EFFECT such as ServiceDomainNameResolutionReady=False:NoExecute: a condition without a domain, True, False or Unknown, and NoSchedule or NoExecute",
        )
    }
}

impl std::error::Error for InvalidConditionTaint {}

impl FromStr for ConditionTaint {
    type Err = InvalidConditionTaint;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let (condition, rest) = text.split_once('=').ok_or(InvalidConditionTaint)?;
        let (status, effect) = rest.split_once(':').ok_or(InvalidConditionTaint)?;
        if is_name(condition)
            && [TRUE, FALSE, "Unknown"].contains(&status)
            && [NO_SCHEDULE, NO_EXECUTE].contains(&effect)
        {
            Ok(Self {
                condition: condition.to_owned(),
                status: status.to_owned(),
                effect: effect.to_owned(),
            })
        } else {
            Err(InvalidConditionTaint)
        }
    }
}

impl ConditionTaint {
    /// Returns what the taint does.
    pub fn effect(&self) -> &str {
        &self.effect
    }

    fn key(&self) -> String {
        format!("{PREFIX}{}", self.condition)
    }

    /// Returns `true` if `taint` is this one, whenever it was added.
    fn is(&self, taint: &Value) -> bool {
        taint["key"] == self.key()
            && taint["value"] == self.status
            && taint["effect"] == self.effect
    }

    /// Returns `true` if the cluster is to have it, and `None` if the condition cannot be read.
    fn holds(&self, said: Said<'_>) -> Option<bool> {
        match said {
            Said::Status(status) => Some(status == Some(&*self.status)),
            Said::Unclear => None,
        }
    }
}

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

/// Returns the taints of a cluster of any kind likewise; `said` is what it says of the condition of a type.
pub(crate) fn desired_taints<'a>(
    taints: &[Value],
    wanted: &[ConditionTaint],
    said: impl Fn(&str) -> Said<'a>,
) -> Vec<Value> {
    let holds = |wanted: &ConditionTaint| wanted.holds(said(&wanted.condition));
    let is_ours = |taint: &Value| {
        let key = taint["key"].as_str();
        key.is_some_and(|key| key.starts_with(PREFIX))
    };
    let stays = |taint: &Value| {
        let mut same = wanted.iter().filter(|wanted| wanted.is(taint));
        same.any(|wanted| holds(wanted).unwrap_or(true))
    };
    let mut desired: Vec<_> = taints
        .iter()
        .filter(|taint| !is_ours(taint) || stays(taint))
        .cloned()
        .collect();
    for wanted in wanted {
        if holds(wanted) == Some(true) && !desired.iter().any(|taint| wanted.is(taint)) {
            desired.push(json!({
                "key": wanted.key(), "value": wanted.status, "effect": wanted.effect,
            }));
        }
    }
    desired
}

#[cfg(test)]
mod tests {
    use karmada_api::condition::DNS_READY;
    use proptest::prelude::*;

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
        let none = || vec![];
        for (sentence, cluster, taints, expected) in [
            ("it has failed", &failed, none(), vec![dead()]),
            (
                "a date stays",
                &failed,
                vec![dated.clone()],
                vec![dated.clone()],
            ),
            ("it is well", &alive, vec![dated.clone()], none()),
            ("it is gone", &silent, vec![dated.clone()], none()),
            ("it never failed", &alive, none(), none()),
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
        let of = |status: &str| {
            let cluster = cluster(&json!([{ "type": "A", "status": status }]));
            let taints = with_condition_taints(&[], &wanted, &cluster);
            taints
                .iter()
                .map(super::super::taints::text)
                .collect::<Vec<_>>()
        };
        let key = |rest: &str| format!("{PREFIX}A={rest}");
        assert_eq!(
            of("False"),
            [key("False:NoSchedule"), key("False:NoExecute")]
        );
        assert_eq!(of("Unknown"), [key("Unknown:NoSchedule")]);
        assert!(of("True").is_empty());
    }

    /// A text that is no such taint is refused.
    #[test]
    fn bad_taint_is_refused() {
        for text in [
            "",
            "A",
            "A=False",
            "A:NoExecute",
            "=False:NoExecute",
            "A=No:NoExecute",
            "A=False:",
            "A=False:PreferNoSchedule",
            "example.com/A=False:NoExecute",
            "A B=False:NoExecute",
        ] {
            assert_eq!(
                text.parse::<ConditionTaint>(),
                Err(InvalidConditionTaint),
                "{text}"
            );
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
