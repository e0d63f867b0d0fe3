use proptest::prelude::*;
use serde_json::from_value;

use super::*;

fn condition(kind: &str, message: &str) -> Value {
    json!({
        "type": kind,
        "status": "True",
        "reason": "Some",
        "message": message,
        "lastTransitionTime": "2026-11-20T08:00:00.123456Z",
    })
}

/// A condition replaces the first of its type, or is added last; the others go back as they were.
#[test]
fn first_of_type_is_replaced() {
    let ready = condition("Ready", "cluster is <healthy> & well");
    let old = condition("DNS", "old");
    let new = condition("DNS", "new");
    let double = condition("DNS", "double");
    let odd = json!({ "neither": "type nor status" });
    let cases = [
        ("an empty list gets its first element", vec![], vec![&new]),
        (
            "an element of no other type is added last",
            vec![&ready, &odd],
            vec![&ready, &odd, &new],
        ),
        (
            "an element of its type is replaced in its place",
            vec![&odd, &ready, &old],
            vec![&odd, &ready, &new],
        ),
        (
            "of two elements of its type the first is replaced",
            vec![&old, &ready, &double],
            vec![&new, &ready, &double],
        ),
    ];
    for (sentence, list, expected) in cases {
        let list: Vec<_> = list.into_iter().cloned().collect();
        let expected = json!({
            "metadata": { "resourceVersion": "1" },
            "status": { "conditions": expected },
        });
        let patch = upsert_patch(&list, new.clone(), Some("1"));
        assert_eq!(patch, expected, "{sentence}");
    }
}

fn lists() -> impl Strategy<Value = Vec<Value>> {
    let element = ("[A-D]", "[a-z]{0,3}").prop_map(|(kind, text)| condition(&kind, &text));
    prop::collection::vec(element, 0..6)
}

/// Returns the conditions after `upsert_patch`.
fn upserted(list: &[Value], new: Value) -> Vec<Value> {
    let patch = upsert_patch(list, new, Some("1"));
    patch["status"]["conditions"].as_array().unwrap().clone()
}

proptest! {
    /// The elements of other types survive in their order.
    #[test]
    fn other_types_survive(list in lists(), kind in "[A-D]") {
        let new = condition(&kind, "new");
        let foreign = |list: &[Value]| -> Vec<Value> {
            list.iter().filter(|element| element["type"] != kind.as_str()).cloned().collect()
        };
        let after = upserted(&list, new);
        prop_assert_eq!(foreign(&after), foreign(&list));
    }

    /// The first of its type is the new one afterwards.
    #[test]
    fn new_one_is_found(list in lists(), kind in "[A-D]") {
        let new = condition(&kind, "new");
        let after = upserted(&list, new.clone());
        prop_assert_eq!(find(&after, &kind), Some(&new));
    }

    /// A second upsert replaces the condition of the first.
    #[test]
    fn upserts_are_idempotent(list in lists(), kind in "[A-D]") {
        let new = condition(&kind, "new");
        let once = upserted(&list, new.clone());
        prop_assert_eq!(upserted(&once, new), once);
    }

    /// The list and its JSON patch agree.
    #[test]
    fn ways_to_upsert_agree(list in lists(), kind in "[A-D]") {
        let new = condition(&kind, "new");
        let mut patch = JsonPatch::default();
        patch.conditions(Some(&list), std::slice::from_ref(&new));
        let mut object = json!({ "status": { "conditions": list } });
        json_patch::patch(&mut object, patch.operations()).unwrap();
        prop_assert_eq!(&object["status"]["conditions"], &json!(upserted(&list, new)));
    }
}

/// Without a list, it is made once for all conditions.
#[test]
fn absent_list_is_made() {
    let new = [condition("A", ""), condition("B", "")];
    let mut patch = JsonPatch::default();
    patch.conditions(None, &new[..0]);
    assert!(patch.is_empty());
    patch.conditions(None, &new);
    let mut object = json!({ "status": {} });
    json_patch::patch(&mut object, patch.operations()).unwrap();
    assert_eq!(object["status"]["conditions"], json!(new));
}

/// The time is that of the last change of the status, in whole seconds, and now if nobody left one.
#[test]
fn time_follows_status() {
    let now: Timestamp = "2026-11-20T08:00:00.5Z".parse().unwrap();
    let before = json!("2026-11-19T08:00:00Z");
    for (old, status, expected) in [
        (None, "True", "2026-11-20T08:00:00Z"),
        (
            Some(("True", before.clone())),
            "True",
            "2026-11-19T08:00:00Z",
        ),
        (
            Some(("False", before.clone())),
            "True",
            "2026-11-20T08:00:00Z",
        ),
        (Some(("True", Value::Null)), "True", "2026-11-20T08:00:00Z"),
        (
            Some(("True", json!("yesterday"))),
            "True",
            "2026-11-20T08:00:00Z",
        ),
    ] {
        let old = old.map(|(status, time)| json!({ "status": status, "lastTransitionTime": time }));
        let time = transition(old.as_ref(), status, now);
        assert_eq!(json!(time), expected, "{old:?}");
    }
    let typed: Condition = from_value(json!({ "type": "A", "status": "True",
        "lastTransitionTime": before, "reason": "", "message": "" }))
    .unwrap();
    assert_eq!(json!(transition(Some(&typed), "True", now)), before);
}

/// A condition is read whatever its other fields are.
#[test]
fn odd_fields_are_absent() {
    assert!(from_value::<Condition>(json!({ "type": 7 })).is_err());
    for nothing in [json!({}), json!({ "type": null })] {
        assert_eq!(
            from_value::<Condition>(nothing).unwrap(),
            Condition::default()
        );
    }
    let bare: Condition = from_value(json!({ "type": "A" })).unwrap();
    let empty = Condition {
        type_: "A".to_owned(),
        ..Condition::default()
    };
    assert_eq!(bare, empty);
    for odd in [Value::Null, json!(7), json!([]), json!({})] {
        let condition: Condition = from_value(json!({
            "type": "A", "status": "True", "reason": odd, "message": odd,
            "lastTransitionTime": odd, "observedGeneration": [odd],
        }))
        .unwrap();
        let status = "True".to_owned();
        assert_eq!(
            condition,
            Condition {
                status,
                ..empty.clone()
            }
        );
    }
}

/// A status that is no text is unclear, and an absent one empty.
#[test]
fn odd_status_is_unclear() {
    for (status, is_unclear) in [
        (json!(7), true),
        (json!(["True"]), true),
        (Value::Null, false),
        (json!(""), false),
    ] {
        let condition: Condition = from_value(json!({ "type": "A", "status": status })).unwrap();
        assert_eq!(condition.status, "");
        assert_eq!(condition.unclear, is_unclear, "{status}");
    }
}

/// A condition goes, and the others stay as they were, fractions of a second included.
#[test]
fn others_stay_without_one() {
    let (ready, dns, odd) = (
        condition("Ready", "well"),
        condition("DNS", "old"),
        json!({ "neither": "type nor status" }),
    );
    let list = [ready.clone(), dns, odd.clone()];
    let patch = retain_patch(&list, |one| one.kind() != "DNS", Some("7"));
    let expected = json!({
        "metadata": { "resourceVersion": "7" },
        "status": { "conditions": [ready, odd] },
    });
    assert_eq!(patch, expected);
}
