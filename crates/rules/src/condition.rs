//! Patches of one element in a list of conditions that several clients write.
//!
//! The list is atomic for the API server: a plain write of it erases what others have written since it
//! was read. A replacement therefore tests that its element is unchanged and touches no other; an
//! insertion, which must send the whole list, carries the resourceVersion at which it was read.

use serde_json::{Value, json};

/// A patch that brings one condition into a list.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ConditionPatch {
    /// A JSON patch (RFC 6902): `test` that the element at `index` is `old`, then `replace` it.
    Replace {
        /// The element's index in the list.
        index: usize,
        /// The whole element as the server stores it.
        old: Value,
        /// The new element.
        new: Value,
    },
    /// A merge patch (RFC 7396) with the resourceVersion at which the list was read.
    Insert {
        /// The whole list, with the new element last.
        list: Vec<Value>,
    },
}

/// The body of a request that patches an object's status.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum PatchBody {
    /// The operations of a JSON patch (RFC 6902).
    Json(Value),
    /// A merge patch (RFC 7396).
    Merge(Value),
}

impl ConditionPatch {
    /// Returns the body of the patch of `status.conditions`. It fails if its base has changed since it
    /// was read at `resource_version`: a failed `test` is 422 Invalid, a stale resourceVersion 409
    /// Conflict.
    pub fn body(&self, resource_version: Option<&str>) -> PatchBody {
        match self {
            // The `test` guards the one element; a change of any other must not fail the patch.
            Self::Replace { index, old, new } => {
                let path = format!("/status/conditions/{index}");
                PatchBody::Json(json!([
                    { "op": "test", "path": path, "value": old },
                    { "op": "replace", "path": path, "value": new },
                ]))
            }
            // The whole list is sent, so it must be the one that was read.
            Self::Insert { list } => PatchBody::Merge(json!({
                "metadata": { "resourceVersion": resource_version },
                "status": { "conditions": list },
            })),
        }
    }
}

/// Returns the patch that puts `new` in place of the first element of its type, or at the end.
///
/// The elements are raw JSON: the `test` compares with what the server stores, down to fractions of a
/// second, which a typed condition loses.
pub fn upsert(list: &[Value], new: Value) -> ConditionPatch {
    let same_type = |element: &&Value| element.get("type") == new.get("type");
    match list.iter().zip(0..).find(|(element, _)| same_type(element)) {
        Some((old, index)) => ConditionPatch::Replace {
            index,
            old: old.clone(),
            new,
        },
        None => ConditionPatch::Insert {
            list: list.iter().cloned().chain([new]).collect(),
        },
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use serde_json::json;

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

    #[test]
    fn a_condition_replaces_the_first_of_its_type_or_is_added() {
        let ready = condition("Ready", "cluster is healthy");
        let old = condition("DNS", "old");
        let new = condition("DNS", "new");
        let odd = json!({ "neither": "type nor status" });
        let cases = [
            (
                "an empty list gets its first element",
                vec![],
                ConditionPatch::Insert {
                    list: vec![new.clone()],
                },
            ),
            (
                "an element of no other type is added last",
                vec![ready.clone(), odd.clone()],
                ConditionPatch::Insert {
                    list: vec![ready.clone(), odd.clone(), new.clone()],
                },
            ),
            (
                "an element of its type is replaced in its place, fractions of seconds and all",
                vec![odd, ready.clone(), old.clone()],
                ConditionPatch::Replace {
                    index: 2,
                    old: old.clone(),
                    new: new.clone(),
                },
            ),
            (
                "of two elements of its type the first is replaced",
                vec![old.clone(), ready, condition("DNS", "double")],
                ConditionPatch::Replace {
                    index: 0,
                    old,
                    new: new.clone(),
                },
            ),
        ];
        for (sentence, list, patch) in cases {
            assert_eq!(upsert(&list, new.clone()), patch, "{sentence}");
        }
    }

    /// Applies a patch as an API server does.
    fn apply(list: &[Value], patch: &ConditionPatch) -> Vec<Value> {
        let mut object = json!({ "status": { "conditions": list } });
        match patch.body(Some("1")) {
            PatchBody::Json(operations) => {
                let operations: json_patch::Patch = serde_json::from_value(operations).unwrap();
                json_patch::patch(&mut object, &operations).unwrap();
            }
            PatchBody::Merge(merge) => {
                assert_eq!(merge["metadata"]["resourceVersion"], "1");
                json_patch::merge(&mut object, &merge);
            }
        }
        object["status"]["conditions"].as_array().unwrap().clone()
    }

    fn lists() -> impl Strategy<Value = Vec<Value>> {
        let element = ("[A-D]", "[a-z]{0,3}").prop_map(|(kind, text)| condition(&kind, &text));
        prop::collection::vec(element, 0..6)
    }

    proptest! {
        #[test]
        fn the_elements_of_other_types_survive_in_their_order(list in lists(), kind in "[A-D]") {
            let new = condition(&kind, "new");
            let foreign = |list: &[Value]| -> Vec<Value> {
                list.iter().filter(|element| element["type"] != kind.as_str()).cloned().collect()
            };
            let after = apply(&list, &upsert(&list, new));
            prop_assert_eq!(foreign(&after), foreign(&list));
        }

        #[test]
        fn the_first_of_its_type_is_the_new_one_afterwards(list in lists(), kind in "[A-D]") {
            let new = condition(&kind, "new");
            let after = apply(&list, &upsert(&list, new.clone()));
            prop_assert_eq!(after.iter().find(|element| element["type"] == kind.as_str()), Some(&new));
        }

        #[test]
        fn a_second_upsert_replaces_what_the_first_wrote(list in lists(), kind in "[A-D]") {
            let new = condition(&kind, "new");
            let once = apply(&list, &upsert(&list, new.clone()));
            let again = upsert(&once, new.clone());
            let replaces_itself = matches!(&again, ConditionPatch::Replace { old, .. } if *old == new);
            prop_assert!(replaces_itself);
            prop_assert_eq!(apply(&once, &again), once);
        }
    }
}
