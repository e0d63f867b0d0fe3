use serde_json::json;

use super::*;

fn customization(name: &str, kind: &str, scripts: &Value) -> Value {
    let customizations = scripts.as_object().unwrap().iter();
    let customizations: serde_json::Map<_, _> = customizations
        .map(|(field, source)| (field.clone(), json!({ "luaScript": source })))
        .collect();
    json!({
        "metadata": { "name": name, "uid": name, "resourceVersion": "1" },
        "spec": {
            "target": { "apiVersion": "a.io/v1", "kind": kind },
            "customizations": customizations,
        },
    })
}

fn customized(objects: &[Value]) -> Customized {
    let mut customized = Customized::default();
    for object in objects {
        customized.add(object);
    }
    customized
}

fn toy() -> GroupVersionKind {
    GroupVersionKind::new("a.io/v1", "Toy")
}

/// The rules of a webhook are patterns.
#[test]
fn webhooks_match_patterns() {
    let customized = customized(&[
        json!({ "webhooks": [{ "rules": [
            { "apiGroups": ["b.io"], "apiVersions": ["*"], "kinds": ["Car", "Boat"] },
            { "apiGroups": [""], "apiVersions": ["v1"], "kinds": 7 },
        ] }, 7] }),
        json!(null),
        customization("toys", "Toy", &json!({ "retention": "x" })),
    ]);
    for (api_version, kind, expected) in [
        ("b.io/v7", "Boat", true),
        ("b.io/v7", "Toy", false),
        ("a.io/v1", "Toy", false),
        ("v1", "Pod", false),
    ] {
        let kind = GroupVersionKind::new(api_version, kind);
        assert_eq!(customized.has_webhook(&kind), expected, "{kind}");
    }
}

/// Case I66: of two customizations for a kind, each operation goes by the first that has a script for it.
#[test]
fn first_script_by_name_decides() {
    let customized = customized(&[
        customization(
            "b",
            "Toy",
            &json!({ "retention": "b", "replicaResource": "b" }),
        ),
        customization(
            "a",
            "Toy",
            &json!({ "retention": "", "replicaResource": "a" }),
        ),
        customization("c", "Toy", &json!({ "dependencyInterpretation": "c" })),
        customization("d", "Toy", &json!({ "dependencyInterpretation": "d" })),
        customization("e", "Car", &json!({ "healthInterpretation": "e" })),
    ]);
    let source = |operation| {
        let script = customized.script(&toy(), operation);
        script.map(|script| script.source.to_string())
    };
    assert_eq!(source(Operation::Retain).as_deref(), Some("b"));
    assert_eq!(source(Operation::InterpretReplica).as_deref(), Some("a"));
    assert_eq!(source(Operation::InterpretHealth), None);
    let toy = toy();
    let all = customized.scripts_of(&toy, Operation::InterpretDependency);
    let all: Vec<_> = all.map(|script| script.customization.as_str()).collect();
    assert_eq!(all, ["c", "d"]);
}

/// Only kinds whose scripts are others are looked at again.
#[test]
fn changed_sources_are_found() {
    let before = customized(&[
        customization("a", "Toy", &json!({ "retention": "a" })),
        customization("b", "Car", &json!({ "retention": "b" })),
    ]);
    let mut touched = customization("a", "Toy", &json!({ "retention": "a" }));
    touched["metadata"]["resourceVersion"] = json!("2");
    let same = customized(&[
        touched,
        customization("b", "Car", &json!({ "retention": "b" })),
    ]);
    assert!(same.changed_scripts(&before).is_empty());
    let other = customized(&[customization("a", "Toy", &json!({ "retention": "c" }))]);
    let car = GroupVersionKind::new("a.io/v1", "Car");
    assert_eq!(other.changed_scripts(&before), BTreeSet::from([toy(), car]));
}

/// The customization whose script is not asked says which one is.
#[test]
fn conflicts_name_the_first() {
    let customized = customized(&[
        customization(
            "a",
            "Toy",
            &json!({ "retention": "a", "dependencyInterpretation": "a" }),
        ),
        customization(
            "b",
            "Toy",
            &json!({ "retention": "b", "dependencyInterpretation": "b" }),
        ),
    ]);
    assert!(customized.conflicts("a").is_empty());
    let expected = "conflicting with InterpreterOperation(Retain) of existing ResourceInterpreterCustomization(a)";
    assert_eq!(customized.conflicts("b"), [expected]);
}
