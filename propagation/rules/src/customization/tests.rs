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

/// Returns a configuration of one webhook for kinds of `b.io`.
fn hook(configuration: &str, name: &str, operations: &[&str]) -> Value {
    json!({ "metadata": { "name": configuration }, "webhooks": [{ "name": name, "rules": [
        { "operations": operations, "apiGroups": ["b.io"], "apiVersions": ["*"], "kinds": ["Car", "Boat"] },
        { "operations": ["*"], "apiGroups": [""], "apiVersions": ["v1"], "kinds": 7 },
    ] }, 7] })
}

/// Returns who decides an operation: the name of a webhook, or of a customization.
fn decider(customized: &Customized, kind: (&str, &str), operation: Operation) -> Option<String> {
    let kind = GroupVersionKind::new(kind.0, kind.1);
    customized
        .interpreter(&kind, operation)
        .map(|interpreter| match interpreter {
            Interpreter::Script(script) => script.customization.clone(),
            Interpreter::Webhook(webhook) => webhook.name.clone(),
        })
}

/// Case I79: the rules of a webhook are patterns of operations and kinds.
#[test]
fn webhooks_match_patterns() {
    let customized = customized(&[
        hook("c", "w", &["Retain", "InterpretHealth"]),
        json!(null),
        customization("toys", "Toy", &json!({ "retention": "x" })),
    ]);
    let ours = Some("c/w".to_owned());
    for (kind, operation, expected) in [
        (("b.io/v7", "Boat"), Operation::Retain, ours.clone()),
        (("b.io/v1", "Car"), Operation::InterpretHealth, ours),
        (("b.io/v7", "Boat"), Operation::InterpretReplica, None),
        (("b.io/v7", "Toy"), Operation::Retain, None),
        (("c.io/v7", "Boat"), Operation::Retain, None),
        (("v1", "Pod"), Operation::Retain, None),
    ] {
        assert_eq!(decider(&customized, kind, operation), expected, "{kind:?}");
    }
}

/// Case I65: a script comes before a webhook, for its operation alone.
#[test]
fn scripts_come_before_webhooks() {
    let all = json!({ "metadata": { "name": "c" }, "webhooks": [{ "name": "w", "rules": [
        { "operations": ["*"], "apiGroups": ["*"], "apiVersions": ["*"], "kinds": ["*"] },
    ] }] });
    let customized = customized(&[
        all,
        customization("toys", "Toy", &json!({ "retention": "x" })),
    ]);
    let of_toys = |operation| decider(&customized, ("a.io/v1", "Toy"), operation).unwrap();
    assert_eq!(of_toys(Operation::Retain), "toys");
    assert_eq!(of_toys(Operation::InterpretStatus), "c/w");
}

/// Case I82: of two webhooks the first by the names of its configuration and its own is asked, and no other.
#[test]
fn first_webhook_by_name_decides() {
    let customized = customized(&[
        hook("b", "a", &["*"]),
        hook("a", "z", &["Retain"]),
        hook("a-b", "a", &["*"]),
    ]);
    let of_cars = |operation| decider(&customized, ("b.io/v1", "Car"), operation).unwrap();
    // As texts: a hyphen is before a slash.
    assert_eq!(of_cars(Operation::Retain), "a-b/a");
    assert_eq!(of_cars(Operation::InterpretHealth), "a-b/a");
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
        let interpreter = customized.interpreter(&toy(), operation);
        interpreter.map(|interpreter| match interpreter {
            Interpreter::Script(script) => script.source.to_string(),
            Interpreter::Webhook(webhook) => webhook.name.clone(),
        })
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
    assert!(same.changes(&before).is_empty());
    let other = customized(&[customization("a", "Toy", &json!({ "retention": "c" }))]);
    let changes = other.changes(&before);
    for (kind, is_concerned) in [("Toy", true), ("Car", true), ("Boat", false)] {
        let kind = GroupVersionKind::new("a.io/v1", kind);
        assert_eq!(changes.concern(&kind), is_concerned, "{kind}");
    }
}

/// A webhook that is another concerns the kinds that it interprets, or did.
#[test]
fn changed_webhooks_are_found() {
    let before = customized(&[hook("a", "w", &["*"])]);
    let mut touched = hook("a", "w", &["*"]);
    touched["metadata"]["resourceVersion"] = json!("2");
    assert!(customized(&[touched]).changes(&before).is_empty());
    let car = GroupVersionKind::new("b.io/v1", "Car");
    let mut trusted = hook("a", "w", &["*"]);
    trusted["webhooks"][0]["clientConfig"] = json!({ "caBundle": "Y2E=" });
    for other in [customized(&[]), customized(&[trusted])] {
        assert!(other.changes(&before).concern(&car));
        assert!(before.changes(&other).concern(&car));
        assert!(!other.changes(&before).concern(&toy()));
    }
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
