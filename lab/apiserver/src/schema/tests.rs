use std::sync::{Arc, LazyLock};

use k8s_openapi::api::apps::v1::Deployment;
use k8s_openapi::api::coordination::v1::Lease;
use k8s_openapi::api::core::v1::{ConfigMap, Node as ClusterNode, Service};
use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition;
use proptest::prelude::*;
use serde_json::{Value, json};

use super::{List, Merge, Schema};

/// Returns a schema that uses every feature. The expected values of the tests were obtained from
/// kube-apiserver 1.36 with it.
pub(crate) fn widget() -> Arc<Schema> {
    static WIDGET: LazyLock<Arc<Schema>> =
        LazyLock::new(|| Arc::new(Schema::new(widget_document()).unwrap()));
    Arc::clone(&WIDGET)
}

fn widget_document() -> Value {
    let ports = json!({
        "type": "array", "maxItems": 4,
        "x-kubernetes-list-type": "map", "x-kubernetes-list-map-keys": ["port", "protocol"],
        "items": {"type": "object", "required": ["port"], "properties": {
            "port": {"type": "integer"}, "protocol": {"type": "string", "default": "TCP"},
            "name": {"type": "string"},
            "extra": {"type": "object", "properties": {"a": {"type": "string"}, "b": {"type": "string"}}},
        }},
    });
    let choice = json!({"a": {"type": "string"}, "b": {"type": "string"}});
    let choices = json!([{"required": ["a"]}, {"required": ["b"]}]);
    let spec = json!({"type": "object", "properties": {
        "size": {"type": "integer", "default": 3, "minimum": 1, "maximum": 10},
        "mode": {"type": "string", "enum": ["A", "B"]},
        "text": {"type": "string", "pattern": "^[a-z]+$", "minLength": 2, "maxLength": 5},
        "ports": ports,
        "tags": {"type": "array", "x-kubernetes-list-type": "set", "items": {"type": "string"}},
        "atoms": {"type": "array", "minItems": 1, "items": {"type": "object", "properties": {
            "name": {"type": "string"}, "v": {"type": "integer", "default": 7}}}},
        "nested": {"type": "object", "default": {"x": 1}, "required": ["x"], "properties": {
            "x": {"type": "integer"}, "y": {"type": "integer", "default": 2}}},
        "table": {"type": "object", "additionalProperties": {"type": "object", "properties": {
            "v": {"type": "integer", "default": 5}, "w": {"type": "string"}}}},
        "labels": {"type": "object", "maxProperties": 3, "additionalProperties": {"type": "string"}},
        "raw": {"type": "object", "x-kubernetes-preserve-unknown-fields": true, "properties": {
            "known": {"type": "object", "properties": {"k": {"type": "string"}}}}},
        "either": {"x-kubernetes-int-or-string": true},
        "maybe": {"type": "string", "nullable": true},
        "maybeDefault": {"type": "string", "nullable": true, "default": "d"},
        "template": {"type": "object", "x-kubernetes-embedded-resource": true,
            "x-kubernetes-preserve-unknown-fields": true},
        "when": {"type": "string", "format": "date-time"},
        "lasts": {"type": "string", "format": "duration"},
        "network": {"type": "string", "format": "cidr"},
        "odd": {"type": "string", "format": "no-such-format"},
        "one": {"type": "object", "properties": choice, "oneOf": choices},
        "any": {"type": "object", "properties": choice, "anyOf": choices},
        "above": {"type": "number", "minimum": 0, "exclusiveMinimum": true},
        "must": {"type": "object", "required": ["q"], "properties": {"q": {"type": "string"}}},
        "whole": {"type": "object", "x-kubernetes-map-type": "atomic", "additionalProperties": {"type": "string"}},
    }});
    let status = json!({"type": "object", "properties": {
        "phase": {"type": "string"},
        "conditions": {"type": "array", "x-kubernetes-list-type": "map", "x-kubernetes-list-map-keys": ["type"],
            "items": {"type": "object", "required": ["type"], "properties": {
                "type": {"type": "string"}, "status": {"type": "string"}}}},
    }});
    json!({"type": "object", "properties": {
        "apiVersion": {"type": "string"}, "kind": {"type": "string"}, "metadata": {"type": "object"},
        "spec": spec, "status": status,
    }})
}

fn causes(spec: &Value) -> Vec<(&'static str, String, String)> {
    let object = json!({"apiVersion": "test.io/v1", "kind": "Widget", "spec": spec});
    widget()
        .validate(&object)
        .into_iter()
        .map(|cause| (cause.reason, cause.field, cause.message))
        .collect()
}

#[track_caller]
fn assert_cause(spec: &Value, reason: &str, field: &str, message: &str) {
    let found = causes(spec);
    let wanted = found
        .iter()
        .any(|cause| (cause.0, &*cause.1, &*cause.2) == (reason, field, message));
    assert!(wanted, "{found:#?}");
}

/// Each broken constraint is worded as by kube-apiserver.
#[test]
fn broken_constraints_have_kubes_words() {
    let invalid = "FieldValueInvalid";
    let mistyped = "FieldValueTypeInvalid";
    assert_cause(
        &json!({"size": "x"}),
        mistyped,
        "spec.size",
        "Invalid value: \"string\": spec.size in body must be of type integer: \"string\"",
    );
    assert_cause(
        &json!({"mode": "C"}),
        "FieldValueNotSupported",
        "spec.mode",
        "Unsupported value: \"C\": supported values: \"A\", \"B\"",
    );
    assert_cause(
        &json!({"must": {}}),
        "FieldValueRequired",
        "spec.must.q",
        "Required value",
    );
    assert_cause(
        &json!({"ports": [{"name": "a"}]}),
        "FieldValueRequired",
        "spec.ports[0].port",
        "Required value",
    );
    assert_cause(
        &json!({"size": 0}),
        invalid,
        "spec.size",
        "Invalid value: 0: spec.size in body should be greater than or equal to 1",
    );
    assert_cause(
        &json!({"above": 0}),
        invalid,
        "spec.above",
        "Invalid value: 0: spec.above in body should be greater than 0",
    );
}

/// Each broken size and format is worded as by kube-apiserver.
#[test]
fn sizes_and_formats_are_checked() {
    let invalid = "FieldValueInvalid";
    let mistyped = "FieldValueTypeInvalid";
    assert_cause(
        &json!({"text": "ABC"}),
        invalid,
        "spec.text",
        "Invalid value: \"ABC\": spec.text in body should match '^[a-z]+$'",
    );
    assert_cause(
        &json!({"text": "abcdefgh"}),
        "FieldValueTooLong",
        "spec.text",
        "Too long: may not be more than 5 bytes",
    );
    assert_cause(
        &json!({"labels": {"a": "", "b": "", "c": "", "d": ""}}),
        "FieldValueTooMany",
        "spec.labels",
        "Too many: 4: must have at most 3 items",
    );
    assert_cause(
        &json!({"atoms": []}),
        invalid,
        "spec.atoms",
        "Invalid value: 0: spec.atoms in body should have at least 1 items",
    );
    assert_cause(
        &json!({"when": "yesterday"}),
        mistyped,
        "spec.when",
        "Invalid value: \"yesterday\": spec.when in body must be of type date-time: \"yesterday\"",
    );
    assert_cause(
        &json!({"either": true}),
        mistyped,
        "spec.either",
        "Invalid value: \"boolean\": spec.either in body must be of type integer,string: \"boolean\"",
    );
    assert_cause(
        &json!({"one": {"a": "", "b": ""}}),
        invalid,
        "<nil>",
        "Invalid value: \"\": \"spec.one\" must validate one and only one schema (oneOf). Found 2 valid alternatives",
    );
    assert_cause(
        &json!({"any": {}}),
        "FieldValueRequired",
        "spec.any.a",
        "Required value",
    );
    assert_cause(
        &json!({"template": {}}),
        "FieldValueRequired",
        "spec.template.kind",
        "Required value",
    );
}

/// An element that occurs twice is reported once.
#[test]
fn duplicate_element_is_reported_once() {
    let ports = json!([{"port": 1, "protocol": "TCP"}, {"port": 1, "protocol": "UDP"}, {"port": 1, "protocol": "TCP"}]);
    let message = "Duplicate value: {\"port\":1,\"protocol\":\"TCP\"}";
    assert_eq!(
        causes(&json!({"ports": ports})),
        [(
            "FieldValueDuplicate",
            "spec.ports[2]".to_owned(),
            message.to_owned()
        )]
    );
    let fields: Vec<String> = causes(&json!({"tags": ["a", "b", "a", "a"]}))
        .into_iter()
        .map(|cause| cause.1)
        .collect();
    assert_eq!(fields, ["spec.tags[2]"]);
}

/// A valid object has no causes.
#[test]
fn valid_object_has_no_causes() {
    for spec in [
        json!({"size": 10, "mode": "A", "text": "abc", "ports": [{"port": 1}, {"port": 2}], "tags": ["a"]}),
        json!({"either": 1, "maybe": null, "one": {"a": ""}, "above": 0.5, "odd": "anything"}),
        json!({"either": "1", "raw": {"x": [null]}, "when": "2020-01-01T00:00:00Z", "lasts": "1h3.5m"}),
        json!({"network": "10.0.0.0/8", "template": {"apiVersion": "v1", "kind": "X", "free": 1}}),
    ] {
        assert_eq!(causes(&spec), [], "{spec}");
    }
}

/// Metadata is checked regardless of the schema.
#[test]
fn metadata_is_always_checked() {
    let object =
        json!({"metadata": {"labels": {"a": 1}, "finalizers": "x"}, "spec": {"size": "x"}});
    let unreadable: Vec<String> = widget()
        .unreadable(&object)
        .into_iter()
        .map(|cause| cause.field)
        .collect();
    assert_eq!(unreadable, ["metadata.finalizers", "metadata.labels.a"]);
}

/// Unknown fields go and are named.
#[test]
fn unknown_fields_are_pruned() {
    let mut object = json!({
        "apiVersion": "test.io/v1", "kind": "Widget", "metadata": {"name": "a", "bad": 1}, "top": 1,
        "spec": {
            "foo": 1, "ports": [{"port": 1, "bar": 2}], "table": {"a": {"z": 1}},
            "raw": {"q": [1, {"a": null}], "known": {"k": "1", "u": 2}},
            "template": {"apiVersion": "v1", "kind": "X", "metadata": {"name": "a", "bad": 1}, "free": 1},
        },
    });
    let unknown = [
        "metadata.bad",
        "spec.foo",
        "spec.ports[0].bar",
        "spec.raw.known.u",
        "spec.table.a.z",
        "spec.template.metadata.bad",
        "top",
    ];
    assert_eq!(widget().prune(&mut object), unknown);
    let wanted = json!({
        "apiVersion": "test.io/v1", "kind": "Widget", "metadata": {"name": "a"},
        "spec": {
            "ports": [{"port": 1}], "table": {"a": {}}, "raw": {"q": [1, {"a": null}], "known": {"k": "1"}},
            "template": {"apiVersion": "v1", "kind": "X", "metadata": {"name": "a"}, "free": 1},
        },
    });
    assert_eq!(object, wanted);
}

/// Defaults reach into lists and maps and replace nulls.
#[test]
fn defaults_reach_lists_and_maps() {
    let mut object = json!({"spec": {
        "size": null, "mode": null, "maybe": null, "maybeDefault": null, "nested": null, "labels": null,
        "atoms": [{"name": "x"}, {"v": 1}], "table": {"a": {}, "b": null}, "raw": {"n": null},
    }});
    widget().default(&mut object);
    let wanted = json!({"spec": {
        "size": 3, "maybe": null, "maybeDefault": null, "nested": {"x": 1, "y": 2},
        "atoms": [{"name": "x", "v": 7}, {"v": 1}], "table": {"a": {"v": 5}}, "raw": {"n": null},
    }});
    assert_eq!(object, wanted);
}

#[test]
fn whole_numbers_lose_their_fraction() {
    let mut object = json!({"spec": {"size": 4.0, "above": 0.5}});
    widget().default(&mut object);
    assert_eq!(object["spec"]["size"].to_string(), "4");
    assert_eq!(object["spec"]["above"].to_string(), "0.5");
}

/// An unusable schema is reported with its location.
#[test]
fn unusable_schema_names_its_location() {
    for (spec, why) in [
        (
            json!({}),
            "openAPIV3Schema.properties[spec].type: must not be empty",
        ),
        (json!({"$ref": "#/x"}), "references are not allowed"),
        (
            json!({"type": "array", "x-kubernetes-list-type": "map"}),
            "list-map-keys",
        ),
        (json!({"type": "string", "pattern": "("}), "pattern"),
    ] {
        let schema = json!({"type": "object", "properties": {"spec": spec}});
        let refused = Schema::new(schema).unwrap_err();
        assert!(refused.contains(why), "{refused}");
    }
    let mut deep = json!({"type": "object"});
    for _ in 0..200 {
        deep = json!({"type": "object", "properties": {"x": deep}});
    }
    assert!(Schema::new(deep).unwrap_err().contains("too deeply"));
}

/// The schemas of our own custom resources can be used.
#[test]
fn own_crds_compile() {
    for name in [
        "manifests/fleet/networking.karmada.io_multiclusteringresses",
        "manifests/fleet/remedy.karmada.io_remedies",
        "manifests/fleet/cluster.karmada.io_clusters",
        "manifests/fleet/work.karmada.io_resourcebindings",
    ] {
        let path = format!("{}/../../{name}.yaml", env!("CARGO_MANIFEST_DIR"));
        let crd: Value = serde_saphyr::from_str(&std::fs::read_to_string(path).unwrap()).unwrap();
        for version in crd["spec"]["versions"].as_array().unwrap() {
            Schema::new(version["schema"]["openAPIV3Schema"].clone()).unwrap();
        }
    }
}

/// Built-in kinds have facts that their Rust types lack.
#[test]
fn builtin_kinds_have_extra_facts() {
    let schema = Schema::builtin::<Service>().unwrap();
    let ports = &schema.root().properties["spec"].properties["ports"];
    assert_eq!(
        ports.list,
        List::Map(vec!["port".to_owned(), "protocol".to_owned()])
    );
    assert_eq!(ports.merge, Merge::ByKey("port".to_owned()));
    assert!(schema.root().properties["spec"].properties["selector"].atomic);
    assert_eq!(
        schema.empty(),
        json!({"spec": {}, "status": {"loadBalancer": {}}})
    );

    let mut service = json!({"spec": {"ports": [{"port": 80}], "selector": {}, "externalIPs": []}});
    schema.default(&mut service);
    let wanted = json!({"spec": {"ports": [{"port": 80, "protocol": "TCP"}]}, "status": {"loadBalancer": {}}});
    assert_eq!(service, wanted);
}

/// The containers of a deployment are known by their names.
#[test]
fn containers_are_keyed_by_name() {
    let schema = Schema::builtin::<Deployment>().unwrap();
    let template = &schema.root().properties["spec"].properties["template"];
    let containers = &template.properties["spec"].properties["containers"];
    assert_eq!(containers.list, List::Map(vec!["name".to_owned()]));
    let container = containers.items.as_deref().unwrap();
    assert_eq!(
        container.properties["env"].merge,
        Merge::ByKey("name".to_owned())
    );
}

/// A node without a status is valid.
#[test]
fn node_needs_no_status() {
    let schema = Schema::builtin::<ClusterNode>().unwrap();
    let mut node = json!({"metadata": {"name": "a"}});
    schema.default(&mut node);
    assert_eq!(schema.validate(&node), []);
}

/// A value that does not fit the type in Go is unreadable.
#[test]
fn wrong_go_types_are_unreadable() {
    let schema = Schema::builtin::<Lease>().unwrap();
    for spec in [
        json!({"leaseDurationSeconds": "x"}),
        json!({"leaseDurationSeconds": 3_000_000_000_i64}),
        json!({"renewTime": "2020-01-01T00:00:01Z"}),
    ] {
        assert_eq!(schema.unreadable(&json!({"spec": spec})).len(), 1, "{spec}");
    }
    let spec = json!({"leaseDurationSeconds": 1, "renewTime": "2020-01-01T00:00:01.000000Z"});
    assert_eq!(schema.unreadable(&json!({"spec": spec})), []);
    assert_eq!(
        Schema::builtin::<ConfigMap>()
            .unwrap()
            .unreadable(&json!({"data": {"a": 1}}))
            .len(),
        1
    );
}

/// A definition that contains itself ends.
#[test]
fn recursive_definition_ends() {
    let schema = Schema::builtin::<CustomResourceDefinition>().unwrap();
    let mut crd = json!({"spec": {"versions": [{"name": "v1", "schema": {"openAPIV3Schema": {
        "type": "object", "properties": {"a": {"type": "object", "properties": {"b": {"default": [1]}}}}}}}]}});
    let before = crd.clone();
    assert_eq!(schema.prune(&mut crd), Vec::<String>::new());
    assert_eq!(crd, before);
}

/// An empty list breaks a rule about emptiness.
#[test]
fn empty_list_breaks_emptiness_rule() {
    let names = json!({ "type": "array", "items": { "type": "string" } });
    let schema = Schema::new(json!({ "type": "object", "properties": { "spec": {
        "type": "object", "properties": {
            "list": {
                "type": "array", "items": { "type": "string" },
                "x-kubernetes-validations": [{ "rule": "size(self) > 0", "message": "leave it out" }],
            },
            "affinity": {
                "type": "object", "properties": { "names": names },
                "x-kubernetes-validations": [{ "rule": "has(self.names) && size(self.names) > 0" }],
            },
        },
    } } }))
    .unwrap();
    let broken = |spec: Value| -> Vec<(String, String)> {
        let causes = schema.validate(&json!({ "spec": spec })).into_iter();
        causes.map(|cause| (cause.field, cause.message)).collect()
    };
    assert_eq!(broken(json!({})), []);
    assert_eq!(
        broken(json!({ "list": ["a"], "affinity": { "names": ["a"] } })),
        []
    );
    let list = (
        "spec.list".to_owned(),
        "Invalid value: leave it out".to_owned(),
    );
    assert_eq!(broken(json!({ "list": [] })), [list]);
    for affinity in [json!({}), json!({ "names": [] })] {
        let broken = broken(json!({ "affinity": affinity }));
        assert_eq!(broken.len(), 1);
        assert_eq!(broken[0].0, "spec.affinity");
    }
}

/// Generates JSON, some of whose fields are those of a widget.
pub(crate) fn any_json() -> impl Strategy<Value = Value> {
    let leaf = prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::from),
        (-5_i64..15).prop_map(Value::from),
        prop_oneof!["[A-B]", "[a-z]{1,3}", ".{0,3}"].prop_map(Value::from),
    ];
    let name = prop_oneof![
        prop::sample::select(vec![
            "apiVersion",
            "kind",
            "metadata",
            "labels",
            "finalizers",
            "spec",
            "status",
            "size",
            "mode",
            "ports",
            "port",
            "protocol",
            "name",
            "extra",
            "a",
            "b",
            "tags",
            "atoms",
            "v",
            "nested",
            "x",
            "y",
            "table",
            "raw",
            "known",
            "either",
            "maybe",
            "maybeDefault",
            "template",
            "whole",
            "conditions",
            "type",
        ])
        .prop_map(str::to_owned),
        "[a-z]{1,2}",
    ];
    leaf.prop_recursive(6, 64, 6, move |inner| {
        prop_oneof![
            prop::collection::vec(inner.clone(), 0..4).prop_map(Value::from),
            prop::collection::btree_map(name.clone(), inner, 0..6)
                .prop_map(|fields| Value::Object(fields.into_iter().collect())),
        ]
    })
}

/// Generates an object with any `spec` and `status`.
pub(crate) fn any_object() -> impl Strategy<Value = Value> {
    (any_json(), any_json(), any_json()).prop_map(
        |(metadata, spec, status)| json!({"apiVersion": "test.io/v1", "kind": "Widget", "metadata": metadata, "spec": spec, "status": status}),
    )
}

proptest! {
    #[test]
    fn pruning_twice_prunes_nothing_more(mut object in any_object()) {
        let schema = widget();
        schema.prune(&mut object);
        let once = object.clone();
        prop_assert_eq!(schema.prune(&mut object), Vec::<String>::new());
        prop_assert_eq!(object, once);
    }

    #[test]
    fn defaulting_twice_changes_nothing_more(mut object in any_object()) {
        let schema = widget();
        schema.default(&mut object);
        let once = object.clone();
        schema.default(&mut object);
        prop_assert_eq!(object, once);
    }

    #[test]
    fn anything_can_be_validated(object in any_json()) {
        widget().validate(&object);
    }
}
