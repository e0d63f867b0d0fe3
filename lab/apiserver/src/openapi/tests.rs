use std::sync::Arc;

use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition;
use serde_json::{Value, json};

use super::{document, index};
use crate::{discovery::tests::kind, kinds::Kind, schema::Schema};

fn remedies() -> Kind {
    let schema = json!({ "type": "object", "properties": { "spec": { "type": "object" } } });
    Kind {
        schema: Arc::new(Schema::new(schema).unwrap()),
        has_status: true,
        ..kind("remedy.example.com", "Remedy", "remedies")
    }
}

fn config_maps() -> Kind {
    Kind {
        namespaced: true,
        custom: false,
        ..kind("", "ConfigMap", "configmaps")
    }
}

/// Collects all references in a document.
fn references(value: &Value, found: &mut Vec<String>) {
    match value {
        Value::Object(fields) => {
            for (name, value) in fields {
                match value {
                    Value::String(reference) if name == "$ref" => found.push(reference.clone()),
                    value => references(value, found),
                }
            }
        }
        Value::Array(items) => items.iter().for_each(|item| references(item, found)),
        _ => {}
    }
}

/// The index names each version by its content.
#[test]
fn index_hashes_each_version() {
    let (one, other) = (remedies(), config_maps());
    let before = index(&[&one, &other]);
    let url =
        |index: &Value| index["paths"]["apis/remedy.example.com/v1"]["serverRelativeURL"].clone();
    assert!(
        url(&before)
            .as_str()
            .unwrap()
            .starts_with("/openapi/v3/apis/remedy.example.com/v1?hash=")
    );
    assert!(before["paths"]["api/v1"].is_object());
    assert_eq!(url(&before), url(&index(&[&one])));
    let changed = Kind {
        has_status: false,
        ..one
    };
    assert_ne!(url(&before), url(&index(&[&changed, &other])));
}

/// A patch lists its media types and field validation.
#[test]
fn patch_lists_media_types() {
    for (kind, path, types) in [
        (
            remedies(),
            "/apis/remedy.example.com/v1/remedies/{name}/status",
            3,
        ),
        (
            config_maps(),
            "/api/v1/namespaces/{namespace}/configmaps/{name}",
            4,
        ),
    ] {
        let document = document(&[&kind], &kind.group, "v1").unwrap();
        let patch = &document["paths"][path]["patch"];
        assert_eq!(patch["x-kubernetes-action"], "patch");
        assert_eq!(patch["x-kubernetes-group-version-kind"]["kind"], kind.kind);
        let types_found = patch["requestBody"]["content"].as_object().unwrap();
        assert_eq!(types_found.len(), types, "{types_found:?}");
        let parameters = patch["parameters"].as_array().unwrap().iter();
        let names: Vec<_> = parameters
            .map(|parameter| parameter["name"].as_str().unwrap())
            .collect();
        assert_eq!(
            names,
            ["dryRun", "fieldManager", "fieldValidation", "force"]
        );
    }
}

/// A definition has a field with the name that marks numbers or strings elsewhere; kubectl reads its schema.
#[test]
fn definitions_keep_every_field() {
    let definitions = Kind {
        schema: Arc::new(Schema::builtin::<CustomResourceDefinition>().unwrap()),
        custom: false,
        ..kind(
            "apiextensions.k8s.io",
            "CustomResourceDefinition",
            "customresourcedefinitions",
        )
    };
    let schema = super::schema(&definitions);
    let nested = "/properties/spec/properties/versions/items/properties/schema/properties/openAPIV3Schema/properties";
    let fields = schema.pointer(nested).unwrap();
    assert!(
        fields["x-kubernetes-int-or-string"]["type"].is_string(),
        "{fields}"
    );
    assert!(fields["pattern"]["type"].is_string(), "{fields}");
}

/// Every schema referred to is there.
#[test]
fn every_referenced_schema_exists() {
    let (one, other) = (remedies(), config_maps());
    for (group, name) in [
        ("remedy.example.com", "com.example.remedy.v1.Remedy"),
        ("", "core.v1.ConfigMap"),
    ] {
        let document = document(&[&one, &other], group, "v1").unwrap();
        let schemas = document["components"]["schemas"].as_object().unwrap();
        assert_eq!(
            schemas[name]["x-kubernetes-group-version-kind"][0]["version"],
            "v1"
        );
        assert!(schemas[name]["properties"]["metadata"]["allOf"].is_array());
        let mut found = vec![];
        references(&document, &mut found);
        assert!(!found.is_empty());
        for reference in found {
            let name = reference.strip_prefix("#/components/schemas/").unwrap();
            assert!(schemas.contains_key(name), "{name}");
        }
    }
    assert_eq!(document(&[&one], "remedy.example.com", "v2"), None);
}
