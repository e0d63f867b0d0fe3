//! The rules of a field beside its type.

use serde_json::{Value, json};

/// A field of a schema, and its rules beside its type. `[]` are the elements of a list.
pub(super) type Amendment = (String, Value);

pub(super) fn at(path: &str, amendment: Value) -> Amendment {
    (path.to_owned(), amendment)
}

/// Returns the schema with the amendments of its fields.
pub(super) fn amended(mut schema: Value, amendments: &[Amendment]) -> Value {
    for (path, amendment) in amendments {
        let mut field = &mut schema;
        for name in path.split('.').filter(|name| !name.is_empty()) {
            let (name, is_list) = match name.strip_suffix("[]") {
                Some(name) => (name, true),
                None => (name, false),
            };
            field = &mut field["properties"][name];
            if is_list {
                field = &mut field["items"];
            }
        }
        for (key, value) in amendment.as_object().into_iter().flatten() {
            field[key] = value.clone();
        }
    }
    schema
}

pub(super) fn rules(rules: &[(&str, &str)]) -> Value {
    let rules = rules
        .iter()
        .map(|(rule, message)| json!({ "rule": rule, "message": message }));
    json!({ "x-kubernetes-validations": rules.collect::<Vec<_>>() })
}

/// Returns a definition whose objects have names of at most this length.
pub(super) fn with_names_up_to(longest: usize, mut definition: Value) -> Value {
    let rule = format!("size(self.metadata.name) < {}", longest + 1);
    let message = format!("metadata.name max length is {longest}");
    let length = rules(&[(&rule, &message)]);
    let versions = definition["spec"]["versions"].as_array_mut();
    for version in versions.into_iter().flatten() {
        let root = &mut version["schema"]["openAPIV3Schema"];
        *root = amended(root.take(), &[at("", length.clone())]);
    }
    definition
}

pub(super) fn immutable(schema: Value) -> Value {
    amended(
        schema,
        &[at("", rules(&[("self == oldSelf", "spec is immutable")]))],
    )
}

pub(super) fn one_of(values: &[&str]) -> Value {
    json!({ "enum": values })
}

/// Returns the schema of a text that is the first of these if it is absent.
pub(super) fn first_of(values: &[&str]) -> Value {
    json!({ "enum": values, "default": values.first() })
}

/// Returns the schema of the scope of a selector, in KubeFleet's order: errors list it so.
pub(super) fn selection_scope() -> Value {
    let mut scope = one_of(&[
        "NamespaceOnly",
        "NamespaceWithResources",
        "NamespaceWithResourceSelectors",
    ]);
    scope["default"] = "NamespaceWithResources".into();
    scope
}

/// Returns the rules of an apply strategy at a path.
pub(super) fn apply_strategy(path: &str) -> Vec<Amendment> {
    let types = ["ClientSideApply", "ServerSideApply", "ReportDiff"];
    let fields = [
        ("type", first_of(&types)),
        (
            "comparisonOption",
            first_of(&["PartialComparison", "FullComparison"]),
        ),
        ("whenToApply", first_of(&["Always", "IfNotDrifted"])),
        ("whenToTakeOver", first_of(&["Always", "IfNoDiff", "Never"])),
    ];
    let amendments = fields.map(|(field, amendment)| (format!("{path}.{field}"), amendment));
    amendments.into()
}
