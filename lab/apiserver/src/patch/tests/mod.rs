mod managed;
mod strategic;

use http::StatusCode;
use k8s_openapi::api::core::v1::{ConfigMap, Node, Service};
use serde_json::{Value, json};

use super::{Patch, Writer, manager_of, record};
use crate::error::ApiError;
use crate::schema::Schema;
use crate::schema::tests::{any_json, any_object, widget};

const TIME: &str = "2030-01-01T00:00:00Z";

fn patched(patch: &Patch, object: &Value, schema: &Schema) -> Result<Value, ApiError> {
    patch.apply(Some(object), schema, None, TIME)
}

fn json_patch(operations: Value) -> Patch {
    let operations: json_patch::Patch = serde_json::from_value(operations).unwrap();
    Patch::Json(operations.into())
}

fn json_patched(operations: Value, object: &Value) -> Result<Value, ApiError> {
    patched(&json_patch(operations), object, &widget())
}

/// A merge patch merges objects and replaces lists.
#[test]
fn merge_patch_replaces_lists() {
    let object = json!({"spec": {"tags": ["a"], "labels": {"a": "1", "b": "2"}}});
    let patch = json!({"spec": {"tags": ["b"], "labels": {"a": null, "c": "3"}}});
    let wanted = json!({"spec": {"tags": ["b"], "labels": {"b": "2", "c": "3"}}});
    assert_eq!(
        patched(&Patch::Merge(patch), &object, &widget()).unwrap(),
        wanted
    );
    let error = patched(&Patch::Merge(json!([])), &object, &widget()).unwrap_err();
    assert_eq!(error.code(), StatusCode::BAD_REQUEST);
}

/// A JSON patch that does not fit is invalid.
#[test]
fn unfitting_json_patch_is_invalid() {
    let object = json!({"spec": {"size": 1, "tags": ["a"]}});
    for operation in [
        json!({"op": "test", "path": "/spec/size", "value": 2}),
        json!({"op": "remove", "path": "/spec/text"}),
        json!({"op": "add", "path": "/spec/labels/a", "value": "b"}),
        json!({"op": "replace", "path": "/spec/tags/9", "value": "c"}),
        json!({"op": "move", "from": "/spec", "path": "/spec/tags/0"}),
    ] {
        let error = json_patched(json!([operation]), &object).unwrap_err();
        assert_eq!(
            error.code(),
            StatusCode::UNPROCESSABLE_ENTITY,
            "{operation}"
        );
        assert_eq!(error.status()["reason"], "Invalid");
    }
}

/// A JSON patch treats absent fields as kube-apiserver does.
#[test]
fn absent_fields_patch_as_kube() {
    let object = json!({"spec": {"size": 1}});
    let replaced = json_patched(
        json!([{"op": "replace", "path": "/spec/mode", "value": "A"}]),
        &object,
    )
    .unwrap();
    assert_eq!(replaced, json!({"spec": {"size": 1, "mode": "A"}}));
    assert_eq!(
        json_patched(
            json!([{"op": "test", "path": "/spec/mode", "value": null}]),
            &object
        )
        .unwrap(),
        object
    );
}

/// Operations of a JSON patch see those before them.
#[test]
fn operations_see_earlier_ones() {
    let operations = json!([
        {"op": "add", "path": "/spec/a~1b", "value": 1}, {"op": "test", "path": "/spec/a~1b", "value": 1},
        {"op": "remove", "path": "/spec/a~1b"},
    ]);
    let object = json!({"spec": {}});
    assert_eq!(json_patched(operations, &object).unwrap(), object);
}
