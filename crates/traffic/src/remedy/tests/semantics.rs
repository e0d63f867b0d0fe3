//! The effect of every combination of a remedy's fields and annotations, against an oracle in plain JSON.

use karmada_api::remedy::{EXPIRES_AT, OBSERVE_ONLY};

use super::*;

/// The time of the table, between the two expiries.
const AT: &str = "2026-11-20T08:00:00Z";
const PAST: &str = "2026-11-20T07:59:59Z";
const FUTURE: &str = "2026-11-20T09:00:01+01:00";

fn affinities() -> Vec<(Value, bool)> {
    let named = |names: Value| json!({ "clusterNames": names });
    vec![
        (Value::Null, true),
        (json!({}), false),
        (named(json!([])), false),
        (named(json!(["member1"])), true),
        (named(json!(["member0", "member1", "member1"])), true),
        (named(json!(["unknown"])), false),
    ]
}

/// Lists of matches around one requirement, and whether it decides; otherwise whether the list matches.
fn matches(required: &Value) -> Vec<(Value, Result<(), bool>)> {
    let other = json!({ "clusterConditionMatch": {
        "conditionType": "Other", "operator": "NotEqual", "conditionStatus": "True" } });
    vec![
        (Value::Null, Err(true)),
        (json!([]), Err(false)),
        (json!([{}]), Err(false)),
        (json!([{ "clusterConditionMatch": null }, {}]), Err(false)),
        (json!([required]), Ok(())),
        (json!([other, required]), Ok(())),
        (json!([{}, required, other]), Ok(())),
    ]
}

/// Every combination of fields and annotations has its documented effect.
#[test]
fn semantics_match_the_documentation() {
    let mut tried = 0;
    for operator in ["Equal", "NotEqual"] {
        for required in ["True", "False", "Unknown"] {
            for status in [None, Some("True"), Some("False"), Some("Unknown")] {
                let equal = status == Some(required);
                let is_met = status.is_some() && equal == (operator == "Equal");
                for (list, decides) in matches(&when(operator, required)) {
                    let matched = decides.map_or_else(|matched| matched, |()| is_met);
                    for (affinity, covered) in affinities() {
                        tried += annotated(&affinity, &list, status, covered && matched);
                    }
                }
            }
        }
    }
    assert_eq!(tried, 2 * 3 * 4 * 7 * 6 * ANNOTATED);
}

/// The number of combinations of actions and annotations.
const ANNOTATED: usize = 4 * 5 * 4;

/// Tries every combination of actions and annotations of a remedy that `applies` to the cluster or not.
fn annotated(affinity: &Value, matches: &Value, status: Option<&str>, applies: bool) -> usize {
    let mut tried = 0;
    for actions in [
        Value::Null,
        json!([]),
        json!([TRAFFIC_CONTROL]),
        json!(["Unknown", TRAFFIC_CONTROL]),
    ] {
        let named = actions.as_array().cloned().unwrap_or_default();
        for observe_only in [None, Some("false"), Some("true"), Some("True"), Some("")] {
            for expires_at in [None, Some(FUTURE), Some("tomorrow"), Some(PAST)] {
                let mut remedy = remedy(
                    "r",
                    json!({ "clusterAffinity": affinity, "decisionMatches": matches, "actions": actions }),
                );
                let annotations = [(OBSERVE_ONLY, observe_only), (EXPIRES_AT, expires_at)];
                let set = annotations.iter().filter_map(|(name, value)| {
                    value.map(|value| ((*name).to_owned(), value.to_owned()))
                });
                remedy.metadata.annotations = Some(set.collect());
                let in_force = applies && expires_at != Some(PAST);
                let row = Row {
                    acts: in_force && matches!(observe_only, None | Some("false")),
                    observes: in_force && observe_only == Some("true"),
                    holds: in_force && matches!(observe_only, Some("True" | "")),
                    actions: &named,
                };
                check(&remedy, status, &row);
                tried += 1;
            }
        }
    }
    tried
}

/// The effect that a remedy must have on a cluster.
#[derive(Debug)]
struct Row<'a> {
    acts: bool,
    observes: bool,
    holds: bool,
    actions: &'a [Value],
}

fn check(remedy: &Remedy, status: Option<&str>, row: &Row<'_>) {
    let conditions: Vec<_> = status.iter().map(|status| (DNS_READY, *status)).collect();
    let now: Timestamp = AT.parse().unwrap();
    let covers = covers(remedy, "member1");
    for before in [None, Some(&[TRAFFIC_CONTROL][..])] {
        let cluster = cluster("member1", &conditions, before);
        let covering = covers.then_some(remedy);
        let mut must: Vec<&str> = row.actions.iter().filter_map(Value::as_str).collect();
        if !row.acts {
            must.retain(|action| row.holds && before.is_some_and(|before| before.contains(action)));
        }
        must.sort_unstable();
        let plan = plan(&cluster, covering, now, FREE);
        let is = if plan.writes.is_empty() {
            cluster.remedy_actions().to_vec()
        } else {
            written(plan)
        };
        assert_eq!(is, must, "{remedy:?} {status:?} {before:?} {row:?}");
        let observations = observed(&cluster, covering, now).len();
        let must = usize::from(row.observes && !row.actions.is_empty());
        assert_eq!(observations, must, "{remedy:?} {status:?}");
        let claim = Claim::of(&cluster, covering, now);
        let blocks = row.actions.iter().any(|action| action == TRAFFIC_CONTROL);
        let by_person = row.acts && blocks && remedy.spec.decision_matches.is_none();
        let must = match (by_person, before.is_some(), row.acts && blocks) {
            (true, ..) | (_, false, false) => Claim::None,
            (_, true, _) => Claim::Held,
            (_, false, true) => Claim::Wanted,
        };
        assert_eq!(claim, must, "{remedy:?} {status:?} {before:?}");
        assert_eq!(
            cause(remedy, &cluster, now).is_some(),
            row.acts,
            "{remedy:?} {status:?}"
        );
    }
}

fn expiry(text: &str) -> Expiry {
    let mut remedy = remedy("r", json!({}));
    let annotation = (EXPIRES_AT.to_owned(), text.to_owned());
    remedy.metadata.annotations = Some([annotation].into());
    Expiry::of(&remedy)
}

/// An expiry is read in any zone and never without one.
#[test]
fn expiry_needs_a_zone() {
    let end = Expiry::At(AT.parse().unwrap());
    for text in [
        AT,
        " 2026-11-20T08:00:00Z\n",
        "2026-11-20T09:00:00+01:00",
        "2026-11-20T08:00:00.000Z",
    ] {
        assert_eq!(expiry(text), end, "{text:?}");
    }
    for text in [
        "",
        "2026-11-20T08:00:00",
        "2026-11-20",
        "08:00",
        "in an hour",
        "2026-13-20T08:00:00Z",
    ] {
        assert_eq!(expiry(text), Expiry::Unreadable, "{text:?}");
    }
    assert_eq!(Expiry::of(&remedy("r", json!({}))), Expiry::Never);
}
