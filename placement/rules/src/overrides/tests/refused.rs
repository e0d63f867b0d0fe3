//! The refusals of an override.

use fleet_api::overrides::OverrideSpec;
use fleet_api::{ClusterResourceOverride, ResourceOverride};

use super::*;

fn said(spec: &Value) -> Vec<String> {
    let spec: OverrideSpec = from_value(spec.clone()).unwrap();
    said_of("one", &spec)
}

fn said_of(name: &str, spec: &OverrideSpec) -> Vec<String> {
    let problems = problems(name, spec);
    problems.iter().map(ToString::to_string).collect()
}

fn selecting(selectors: &Value) -> Value {
    let mut spec = everywhere(&set("/data", &json!({})));
    spec["clusterResourceSelectors"] = selectors.clone();
    spec
}

/// Case F61: a selector names one object, and none twice.
#[test]
fn selectors_name_objects() {
    let role = json!({ "group": "g", "version": "v1", "kind": "Role", "name": "a" });
    assert_eq!(said(&selecting(&json!([role]))), [""; 0]);
    let labels = json!({ "matchLabels": { "a": "b" } });
    for (field, value, problem) in [
        ("name", json!(""), "has one that does not select by name"),
        (
            "labelSelector",
            labels,
            "has one that does not select by name",
        ),
        (
            "selectionScope",
            json!("NamespaceOnly"),
            "has a selectionScope, which overrides have no use for",
        ),
    ] {
        let mut selector = role.clone();
        selector[field] = value;
        let problem = format!("spec.clusterResourceSelectors {problem}");
        assert_eq!(said(&selecting(&json!([selector]))), [problem]);
    }
    let twice = said(&selecting(&json!([role, role])));
    assert_eq!(twice, ["spec.clusterResourceSelectors has one twice"]);
    let mut twice = everywhere(&set("/data", &json!({})));
    twice["resourceSelectors"] = json!([role, role]);
    assert_eq!(said(&twice), ["spec.resourceSelectors has one twice"]);
}

/// Case F61: the identity of an object is not changed.
#[test]
fn identity_is_not_changed() {
    for path in [
        "/data",
        "/data/a~1b",
        "/metadata/labels",
        "/metadata/annotations/x.io~1a",
        "/spec/metadata/name",
        "/kinds",
    ] {
        assert_eq!(said(&everywhere(&set(path, &json!({})))), [""; 0], "{path}");
    }
    for path in [
        "/kind",
        "/apiVersion",
        "/status/phase",
        "/metadata",
        "/metadata/name",
        "/metadata/finalizers/0",
    ] {
        let said = said(&everywhere(&set(path, &json!({}))));
        assert_eq!(said.len(), 1, "{path}");
        assert!(said[0].contains("has a path to apiVersion"), "{said:?}");
    }
    for path in ["", "/", "data", "/data//a", "/data/", "/a~2"] {
        let said = said(&everywhere(&set(path, &json!({}))));
        assert_eq!(said.len(), 1, "{path}");
        assert!(said[0].contains("no JSON pointer"), "{said:?}");
    }
}

/// Case F61: a rule says one thing.
#[test]
fn rules_are_consistent() {
    let all = json!({ "clusterSelectorTerms": [] });
    let patches = set("/data", &json!({}));
    let sorter = json!({ "clusterSelectorTerms": [{ "labelSelector": {}, "propertySorter": {} }] });
    let bare = json!({ "clusterSelectorTerms": [{}] });
    for (rule, problem) in [
        (
            json!({ "clusterSelector": all, "overrideType": "Delete", "jsonPatchOverrides": patches }),
            "has a Delete with jsonPatchOverrides",
        ),
        (
            json!({ "clusterSelector": all }),
            "has a JSONPatch without jsonPatchOverrides",
        ),
        (
            json!({ "clusterSelector": sorter, "jsonPatchOverrides": patches }),
            "has a clusterSelector by properties, where only labels select",
        ),
        (
            json!({ "clusterSelector": bare, "jsonPatchOverrides": patches }),
            "has a clusterSelector with a term without labelSelector, which selects no cluster",
        ),
        (
            json!({ "clusterSelector": all,
                "jsonPatchOverrides": [{ "op": "remove", "path": "/data", "value": 1 }] }),
            "has a remove with a value",
        ),
    ] {
        let said = said(&rules(&json!([rule])));
        assert_eq!(said, [format!("spec.policy.overrideRules {problem}")]);
    }
}

/// Case F61: snapshots have the name in a label.
#[test]
fn longest_name_fits_a_label() {
    let spec: OverrideSpec = from_value(everywhere(&set("/data", &json!({})))).unwrap();
    assert_eq!(said_of(&"x".repeat(63), &spec), [""; 0]);
    let text = "metadata.name is longer than 63 characters";
    assert_eq!(said_of(&"x".repeat(64), &spec), [text]);
}

/// Returns an override of a name, an age and of maps with these names.
fn of_maps(name: &str, second: u8, maps: &[&str]) -> ResourceOverride {
    let mut spec = everywhere(&set("/data", &json!({})));
    let selectors = maps
        .iter()
        .map(|name| json!({ "group": "", "version": "v1", "kind": "ConfigMap", "name": name }));
    spec["resourceSelectors"] = selectors.collect();
    let time = format!("2026-11-25T16:46:0{second}Z");
    let metadata = json!({ "name": name, "creationTimestamp": time });
    from_value(json!({ "metadata": metadata, "spec": spec })).unwrap()
}

fn asking(one: &ResourceOverride) -> Claim<'_, ResourceOverride> {
    Claim { one, taken: None }
}

/// Case F61: an object is in one override of each scope, the one that had it first.
#[test]
fn object_is_in_one_override() {
    let (first, second) = (of_maps("b", 1, &["a"]), of_maps("a", 2, &["a"]));
    assert_eq!(refusal(&asking(&first), &[asking(&second)]), None);
    let text = "The override is refused: ConfigMap a is in ResourceOverride b already, and can be in one only";
    let refused = refusal(&asking(&second), &[asking(&first)]);
    assert_eq!(refused.as_deref(), Some(text));
    let bad: ClusterResourceOverride =
        from_value(json!({ "spec": selecting(&json!([{ "kind": "A" }])) })).unwrap();
    let text = "The override is refused: spec.clusterResourceSelectors has one that does not select by name";
    let bad = Claim {
        one: &bad,
        taken: None,
    };
    assert_eq!(refusal(&bad, &[]).as_deref(), Some(text));
}

/// Case F61: an object that an override asks for and has not is free for others: an older one that is edited to have the object of
/// a younger is refused alone, and the younger goes on.
#[test]
fn refused_override_blocks_itself() {
    let (before, older) = (of_maps("b", 1, &["b"]), of_maps("b", 1, &["a", "b"]));
    let younger = of_maps("a", 2, &["a"]);
    let older = Claim {
        one: &older,
        taken: Some(&before.spec),
    };
    let younger = Claim {
        one: &younger,
        taken: Some(&younger.spec),
    };
    let text = "The override is refused: ConfigMap a is in ResourceOverride a already, and can be in one only";
    let both = [older, younger];
    assert_eq!(refusal(&both[0], &both[1..]).as_deref(), Some(text));
    assert_eq!(refusal(&both[1], &both[..1]), None);
    let youngest = of_maps("c", 3, &["c"]);
    assert_eq!(refusal(&asking(&youngest), &both), None);
}
