use std::sync::LazyLock;

use super::*;

fn service() -> Value {
    json!({"metadata": {"name": "a", "finalizers": ["a/b", "c/d"]}, "spec": {
        "selector": {"x": "y"},
        "ports": [{"port": 80, "name": "a", "protocol": "TCP"}, {"port": 81, "name": "b", "protocol": "TCP"}],
    }})
}

fn schema() -> &'static Schema {
    static SCHEMA: LazyLock<Schema> = LazyLock::new(|| Schema::builtin::<Service>().unwrap());
    &SCHEMA
}

fn merged(patch: Value) -> Result<Value, ApiError> {
    patched(&Patch::Strategic(patch), &service(), schema())
}

fn ports(patch: &Value) -> Vec<String> {
    let merged = merged(json!({"spec": patch})).unwrap();
    let ports = merged["spec"]["ports"].as_array().unwrap().iter();
    ports
        .map(|port| {
            format!(
                "{}{}",
                port["port"],
                port["name"].as_str().unwrap_or_default()
            )
        })
        .collect()
}

/// Elements are merged by their key.
#[test]
fn elements_merge_by_key() {
    assert_eq!(
        ports(&json!({"ports": [{"port": 82}, {"port": 80, "name": "new"}]})),
        ["82", "80new", "81b"]
    );
    let merged = merged(json!({"spec": {"ports": [{"port": 80, "name": "new"}]}})).unwrap();
    assert_eq!(
        merged["spec"]["ports"][0],
        json!({"port": 80, "name": "new", "protocol": "TCP"})
    );
}

/// Elements can be deleted and the whole list replaced.
#[test]
fn elements_are_deleted_or_replaced() {
    assert_eq!(
        ports(&json!({"ports": [{"port": 80, "$patch": "delete"}]})),
        ["81b"]
    );
    assert_eq!(
        ports(&json!({"ports": [{"$patch": "replace"}, {"port": 9}]})),
        ["9"]
    );
}

/// An order is followed with and without changes.
#[test]
fn order_is_followed() {
    let order = json!([{"port": 81}, {"port": 80}]);
    assert_eq!(
        ports(&json!({"$setElementOrder/ports": order})),
        ["81b", "80a"]
    );
    let patch =
        json!({"$setElementOrder/ports": [{"port": 81}, {"port": 82}], "ports": [{"port": 82}]});
    assert_eq!(
        ports(&patch),
        ["80a", "81b", "82"],
        "what the client does not know stays where it was"
    );
}

/// Lists of values are united and values deleted.
#[test]
fn value_lists_are_united() {
    for (patch, expected) in [
        (
            json!({"finalizers": ["e/f", "a/b"]}),
            json!(["e/f", "a/b", "c/d"]),
        ),
        (
            json!({"$deleteFromPrimitiveList/finalizers": ["a/b"]}),
            json!(["c/d"]),
        ),
        (
            json!({"$setElementOrder/finalizers": ["c/d", "a/b"]}),
            json!(["c/d", "a/b"]),
        ),
        (json!({"finalizers": null}), Value::Null),
    ] {
        let merged = merged(json!({"metadata": patch})).unwrap();
        assert_eq!(merged["metadata"]["finalizers"], expected, "{patch}");
    }
}

/// A map is merged replaced or emptied.
#[test]
fn map_is_merged_or_replaced() {
    for (patch, expected) in [
        (json!({"q": "r"}), json!({"q": "r", "x": "y"})),
        (json!({"$patch": "replace", "q": "r"}), json!({"q": "r"})),
        (json!({"$patch": "delete"}), json!({})),
        (json!({"$retainKeys": ["q"], "q": "r"}), json!({"q": "r"})),
    ] {
        let merged = merged(json!({"spec": {"selector": patch}})).unwrap();
        assert_eq!(merged["spec"]["selector"], expected, "{patch}");
    }
}

/// Conditions of a node are merged by type.
#[test]
fn node_conditions_merge_by_type() {
    let schema = Schema::builtin::<Node>().unwrap();
    let node =
        json!({"status": {"conditions": [{"type": "Ready", "status": "True", "reason": "R"}]}});
    let patch = json!({"status": {
        "$setElementOrder/conditions": [{"type": "Ready"}, {"type": "Disk"}],
        "conditions": [{"type": "Ready", "status": "False"}, {"type": "Disk", "status": "True"}],
    }});
    let wanted = json!([{"type": "Ready", "status": "False", "reason": "R"}, {"type": "Disk", "status": "True"}]);
    assert_eq!(
        patched(&Patch::Strategic(patch), &node, &schema).unwrap()["status"]["conditions"],
        wanted
    );
}

/// An impossible patch is refused.
#[test]
fn impossible_patch_is_refused() {
    for (patch, code) in [
        (json!([]), StatusCode::BAD_REQUEST),
        (
            json!({"spec": {"$retainKeys": "x"}}),
            StatusCode::BAD_REQUEST,
        ),
        (
            json!({"spec": {"$retainKeys": ["type"], "selector": {}}}),
            StatusCode::BAD_REQUEST,
        ),
        (
            json!({"spec": {"$setElementOrder/ports": 1}}),
            StatusCode::BAD_REQUEST,
        ),
        (
            json!({"metadata": {"$deleteFromPrimitiveList/finalizers": 1}}),
            StatusCode::BAD_REQUEST,
        ),
        (
            json!({"spec": {"$patch": "zzz"}}),
            StatusCode::INTERNAL_SERVER_ERROR,
        ),
        (
            json!({"spec": {"ports": [{"name": "no key"}]}}),
            StatusCode::INTERNAL_SERVER_ERROR,
        ),
    ] {
        assert_eq!(merged(patch.clone()).unwrap_err().code(), code, "{patch}");
    }
}

proptest::proptest! {
    #[test]
    fn any_patch_yields_a_result(object in any_object(), patch in any_json()) {
        _ = patched(&Patch::Strategic(patch), &object, schema());
    }
}
