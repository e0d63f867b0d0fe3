use std::sync::Arc;

use proptest::prelude::*;

use super::*;

/// The managed fields of one object, as an API maintains them.
struct Api {
    schema: Arc<Schema>,
    object: Option<Value>,
}

impl Api {
    fn widgets() -> Self {
        Self {
            schema: widget(),
            object: None,
        }
    }

    fn store(&mut self, mut object: Value, manager: &str, subresource: Option<&str>) {
        self.schema.prune(&mut object);
        self.schema.default(&mut object);
        record(
            self.object.as_ref(),
            &mut object,
            &self.schema,
            Writer {
                manager,
                subresource,
                time: TIME,
            },
        );
        self.object = Some(object);
    }

    fn create(&mut self, manager: &str, spec: &Value) {
        self.store(json!({"apiVersion": "test.io/v1", "kind": "Widget", "metadata": {"name": "a"}, "spec": spec}), manager, None);
    }

    fn merge(&mut self, manager: &str, patch: Value) {
        let object = patched(
            &Patch::Merge(patch),
            self.object.as_ref().unwrap(),
            &self.schema,
        )
        .unwrap();
        self.store(object, manager, None);
    }

    fn try_apply(
        &mut self,
        manager: &str,
        body: &Value,
        force: bool,
        subresource: Option<&str>,
    ) -> Result<(), ApiError> {
        let mut configuration =
            json!({"apiVersion": "test.io/v1", "kind": "Widget", "metadata": {"name": "a"}});
        json_patch::merge(&mut configuration, body);
        let patch = Patch::Apply {
            configuration,
            manager: manager.to_owned(),
            force,
        };
        let mut object = patch.apply(self.object.as_ref(), &self.schema, subresource, TIME)?;
        self.schema.default(&mut object);
        self.object = Some(object);
        Ok(())
    }

    fn apply(&mut self, manager: &str, spec: &Value) {
        self.try_apply(manager, &json!({"spec": spec}), false, None)
            .unwrap();
    }

    fn spec(&self, field: &str) -> &Value {
        self.object
            .as_ref()
            .unwrap()
            .pointer(&format!("/spec/{field}"))
            .unwrap_or(&Value::Null)
    }

    /// Returns manager, operation and subresource of each entry, with its fields.
    fn managers(&self) -> Vec<(String, Value)> {
        let entries = &self.object.as_ref().unwrap()["metadata"]["managedFields"];
        let entries = entries.as_array().into_iter().flatten();
        entries
            .map(|entry| {
                let [manager, operation, subresource] = ["manager", "operation", "subresource"]
                    .map(|name| entry[name].as_str().unwrap_or_default());
                let name = format!("{manager} {operation} {subresource}");
                (name.trim_end().to_owned(), entry["fieldsV1"].clone())
            })
            .collect()
    }
}

fn named(name: &str, fields: Value) -> (String, Value) {
    (name.to_owned(), fields)
}

/// A create owns the fields that it sent, and those that were defaulted.
#[test]
fn create_owns_sent_and_defaulted() {
    let mut api = Api::widgets();
    api.create(
        "c",
        &json!({"ports": [{"port": 1, "name": "a"}], "tags": ["a"], "raw": {"a": {"b": [1]}}}),
    );
    let fields = json!({"f:spec": {
        ".": {}, "f:size": {}, "f:maybeDefault": {}, "f:nested": {".": {}, "f:x": {}, "f:y": {}},
        "f:ports": {".": {}, "k:{\"port\":1,\"protocol\":\"TCP\"}":
            {".": {}, "f:port": {}, "f:protocol": {}, "f:name": {}}},
        "f:tags": {".": {}, "v:\"a\"": {}}, "f:raw": {".": {}, "f:a": {".": {}, "f:b": {}}},
    }});
    assert_eq!(api.managers(), [named("c Update", fields)]);
    let entry = &api.object.unwrap()["metadata"]["managedFields"][0];
    assert_eq!(
        (&entry["time"], &entry["apiVersion"], &entry["fieldsType"]),
        (&json!(TIME), &json!("test.io/v1"), &json!("FieldsV1"))
    );
}

/// A create of a built-in kind does not own its structs.
#[test]
fn builtin_create_owns_no_structs() {
    let mut api = Api {
        schema: Arc::new(Schema::builtin::<Service>().unwrap()),
        object: None,
    };
    api.store(json!({"apiVersion": "v1", "kind": "Service", "metadata": {"labels": {"a": "b"}}, "spec": {"selector": {"x": "y"}}}), "c", None);
    let fields =
        json!({"f:metadata": {"f:labels": {".": {}, "f:a": {}}}, "f:spec": {"f:selector": {}}});
    assert_eq!(api.managers(), [named("c Update", fields)]);
}

/// An update takes the fields that it changes, and no others.
#[test]
fn update_owns_its_changes() {
    let mut api = Api::widgets();
    api.create("c", &json!({"mode": "A", "text": "abc"}));
    api.merge("u", json!({"spec": {"mode": "B"}}));
    api.merge("nothing", json!({"spec": {"mode": "B"}}));
    assert_eq!(api.managers().len(), 2);
    assert_eq!(
        api.managers()[1],
        named("u Update", json!({"f:spec": {"f:mode": {}}}))
    );
    assert_eq!(api.managers()[0].1["f:spec"].get("f:mode"), None);
    api.merge("u", json!({"spec": {"mode": null}}));
    assert_eq!(
        api.managers().len(),
        1,
        "a manager without fields is forgotten"
    );
}

#[test]
fn status_has_own_managers() {
    let mut api = Api::widgets();
    api.create("c", &json!({"mode": "A"}));
    let mut object = api.object.clone().unwrap();
    object["status"] = json!({"phase": "X"});
    api.store(object, "c", Some("status"));
    assert_eq!(
        api.managers()[1],
        named(
            "c Update status",
            json!({"f:status": {".": {}, "f:phase": {}}})
        )
    );
    api.try_apply(
        "s",
        &json!({"spec": {"size": 9}, "status": {"conditions": [{"type": "A"}]}}),
        false,
        Some("status"),
    )
    .unwrap();
    assert_eq!(
        api.spec("size"),
        3,
        "an apply of the status leaves the spec alone"
    );
    let fields =
        json!({"f:status": {"f:conditions": {"k:{\"type\":\"A\"}": {".": {}, "f:type": {}}}}});
    assert_eq!(api.managers()[0], named("s Apply status", fields));
}

/// Managers are forgotten on request and not found again by updates.
#[test]
fn managers_are_forgotten_on_request() {
    let mut api = Api::widgets();
    api.create("c", &json!({"mode": "A"}));
    api.merge("u", json!({"metadata": {"managedFields": [{}]}}));
    assert_eq!(api.managers(), []);
    api.merge("u", json!({"spec": {"mode": "B"}}));
    assert_eq!(api.managers(), []);
    api.apply("a", &json!({"mode": "B"}));
    let names: Vec<String> = api.managers().into_iter().map(|(name, _)| name).collect();
    assert_eq!(names, ["a Apply", "before-first-apply Update"]);
}

/// An empty list forgets the managers of built-in kinds only.
#[test]
fn empty_list_forgets_builtin_managers() {
    let config_map = Arc::new(Schema::builtin::<ConfigMap>().unwrap());
    for (schema, left) in [(config_map, 0), (widget(), 1)] {
        let mut api = Api {
            schema,
            object: None,
        };
        api.create("c", &json!({"mode": "A"}));
        api.merge("l", json!({"metadata": {"labels": {"a": "b"}}}));
        let before = api.managers().len();
        api.merge("u", json!({"metadata": {"managedFields": []}}));
        assert_eq!(api.managers().len(), before * left);
    }
}

/// Only so many updaters are remembered.
#[test]
fn oldest_updaters_are_merged() {
    let mut api = Api::widgets();
    api.create("m", &json!({}));
    for index in 0..13 {
        api.merge(
            &format!("m{index}"),
            json!({"spec": {"raw": {format!("k{index}"): 1}}}),
        );
    }
    let names: Vec<String> = api.managers().into_iter().map(|(name, _)| name).collect();
    assert_eq!(names.len(), 10);
    assert!(
        names.contains(&"ancient-changes Update".to_owned())
            && names.contains(&"m12 Update".to_owned()),
        "{names:?}"
    );
}

/// An apply creates and again changes nothing.
#[test]
fn repeated_apply_changes_nothing() {
    let mut api = Api::widgets();
    let spec = json!({"size": 1, "ports": [{"port": 1, "name": "x"}], "tags": ["b", "a"], "labels": {"k": "v"}, "table": {"e": {}}});
    api.apply("a", &spec.clone());
    let fields = json!({"f:spec": {
        "f:size": {}, "f:labels": {"f:k": {}}, "f:table": {"f:e": {}}, "f:tags": {"v:\"a\"": {}, "v:\"b\"": {}},
        "f:ports": {"k:{\"port\":1,\"protocol\":\"TCP\"}": {".": {}, "f:port": {}, "f:name": {}}},
    }});
    assert_eq!(api.managers(), [named("a Apply", fields)]);
    let before = api.object.clone();
    api.apply("a", &spec);
    assert_eq!(api.object, before);
}

/// A field of another manager is a conflict unless forced.
#[test]
fn foreign_field_conflicts_unless_forced() {
    let mut api = Api::widgets();
    api.create("c", &json!({"size": 1, "mode": "A"}));
    let error = api
        .try_apply("b", &json!({"spec": {"size": 2}}), false, None)
        .unwrap_err();
    let status = error.status();
    assert_eq!(
        (error.code(), &status["reason"]),
        (StatusCode::CONFLICT, &json!("Conflict"))
    );
    assert_eq!(
        status["message"],
        "Apply failed with 1 conflict: conflict with \"c\" using test.io/v1: .spec.size"
    );
    let cause = json!({"reason": "FieldManagerConflict", "message": "conflict with \"c\" using test.io/v1", "field": ".spec.size"});
    assert_eq!(status["details"]["causes"], json!([cause]));

    let error = api
        .try_apply("b", &json!({"spec": {"size": 2, "mode": "B"}}), false, None)
        .unwrap_err();
    let message = "Apply failed with 2 conflicts: conflicts with \"c\" using test.io/v1:\n- .spec.mode\n- .spec.size";
    assert_eq!(error.status()["message"], message);

    api.try_apply("b", &json!({"spec": {"size": 2}}), true, None)
        .unwrap();
    assert_eq!(api.spec("size"), 2);
    assert_eq!(
        api.managers()[0],
        named("b Apply", json!({"f:spec": {"f:size": {}}}))
    );
    assert_eq!(api.managers()[1].1["f:spec"].get("f:size"), None);
}

#[test]
fn the_same_value_is_shared() {
    let mut api = Api::widgets();
    api.apply("a", &json!({"size": 1, "mode": "A"}));
    api.apply("b", &json!({"size": 1}));
    api.apply("a", &json!({"mode": "A"}));
    assert_eq!(api.spec("size"), 1, "b still wants it");
    api.apply("b", &json!({}));
    assert_eq!(
        api.spec("size"),
        3,
        "nobody wants it, so the default is back"
    );
}

/// A field that is applied no more goes if nobody else owns it.
#[test]
fn unapplied_sole_field_goes() {
    let mut api = Api::widgets();
    api.apply("a", &json!({"ports": [{"port": 1}, {"port": 2, "extra": {"a": "1"}}], "labels": {"x": "1", "y": "2"}, "whole": {"a": "b"}}));
    api.merge("u", json!({"spec": {"labels": {"z": "3"}}}));
    api.apply("b", &json!({"ports": [{"port": 2, "extra": {"b": "2"}}]}));
    api.apply("a", &json!({"labels": {"x": "1"}}));
    assert_eq!(api.spec("labels"), &json!({"x": "1", "z": "3"}));
    assert_eq!(
        api.spec("ports"),
        &json!([{"port": 2, "protocol": "TCP", "extra": {"b": "2"}}])
    );
    assert_eq!(api.spec("whole"), &Value::Null);
}

/// Elements are in the order of the apply and others stay where they were.
#[test]
fn elements_follow_applied_order() {
    let mut api = Api::widgets();
    api.create("c", &json!({"tags": ["a", "b", "c"]}));
    api.apply("m", &json!({"tags": ["c", "x", "a"]}));
    assert_eq!(api.spec("tags"), &json!(["b", "c", "x", "a"]));
    api.apply("m", &json!({"tags": ["x"]}));
    assert_eq!(
        api.spec("tags"),
        &json!(["b", "c", "x", "a"]),
        "the create owns them, too"
    );
    api.apply("n", &json!({"tags": ["z", "b", "y"]}));
    assert_eq!(api.spec("tags"), &json!(["z", "b", "c", "x", "a", "y"]));
}

/// A configuration that cannot be owned is refused, as by kube-apiserver.
#[test]
fn unownable_apply_is_refused() {
    let mut api = Api::widgets();
    api.apply("a", &json!({"size": 1}));
    for (spec, why) in [
        (json!({"foo": 1}), ".spec.foo: field not declared in schema"),
        (
            json!({"ports": [{"port": 1}, {"port": 1}]}),
            ".spec.ports: duplicate entries for key [port=1,protocol=\"TCP\"]",
        ),
        (
            json!({"tags": ["a", "a"]}),
            ".spec.tags: duplicate entries for key [=\"a\"]",
        ),
    ] {
        let error = api
            .try_apply("a", &json!({"spec": spec}), false, None)
            .unwrap_err();
        assert_eq!(error.code(), StatusCode::INTERNAL_SERVER_ERROR);
        let wanted =
            format!("failed to create typed patch object (/a; test.io/v1, Kind=Widget): {why}");
        assert_eq!(error.status()["message"], wanted);
    }
    let error = api
        .try_apply(
            "a",
            &json!({"metadata": {"managedFields": []}}),
            false,
            None,
        )
        .unwrap_err();
    assert_eq!(
        (error.code(), error.to_string()),
        (
            StatusCode::BAD_REQUEST,
            "metadata.managedFields must be nil".to_owned()
        )
    );
}

/// Kubectl takes over from its own client-side apply.
#[test]
fn kubectl_migrates_client_side_apply() {
    let mut api = Api {
        schema: Arc::new(Schema::builtin::<ConfigMap>().unwrap()),
        object: None,
    };
    let annotation = "kubectl.kubernetes.io/last-applied-configuration";
    let applied = json!({"apiVersion": "v1", "kind": "ConfigMap", "data": {"a": "1"}}).to_string();
    api.store(json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "a", "annotations": {annotation: applied}}, "data": {"a": "1", "b": "2"}}), "kubectl-client-side-apply", None);
    let [foreign, own] =
        ["b", "a"].map(|key| json!({"apiVersion": "v1", "kind": "ConfigMap", "data": {key: "3"}}));
    let error = api.try_apply("kubectl", &foreign, false, None).unwrap_err();
    assert_eq!(error.code(), StatusCode::CONFLICT);
    api.try_apply("kubectl", &own, false, None).unwrap();
    let object = api.object.unwrap();
    assert_eq!(object["data"], json!({"a": "3", "b": "2"}));
    assert!(
        object["metadata"]["annotations"][annotation]
            .as_str()
            .unwrap()
            .contains("\"a\":\"3\"")
    );
}

/// A writer without a name is named by its user agent.
#[test]
fn unnamed_writer_has_user_agent() {
    assert_eq!(manager_of(Some("m"), Some("agent/1.0")), "m");
    assert_eq!(manager_of(None, Some("kubectl/v1.36 (linux)")), "kubectl");
    assert_eq!(manager_of(Some(""), Some("a\u{7}b")), "ab");
    assert_eq!(manager_of(None, None), "unknown");
    assert_eq!(manager_of(None, Some(&"é".repeat(100))).len(), 128);
}

proptest! {
    #[test]
    fn applying_twice_changes_nothing_more(live in any_object(), spec in any_json(), force: bool) {
        let mut api = Api::widgets();
        api.store(live, "c", None);
        let body = json!({"spec": spec});
        if api.try_apply("a", &body.clone(), force, None).is_ok() {
            let once = api.object.clone();
            // An object without managers counts as never applied: its present fields get the owner
            // `before-first-apply`.
            prop_assume!(once.as_ref().is_some_and(|object| !object["metadata"]["managedFields"].is_null()));
            api.try_apply("a", &body, force, None).unwrap();
            prop_assert_eq!(api.object, once);
        }
    }

    /// Merging the difference makes the other.
    #[test]
    fn merging_difference_restores(left in any_object(), right in any_object()) {
        let patch = Patch::Json(json_patch::diff(&left, &right).into());
        prop_assert_eq!(patched(&patch, &left, &widget()).unwrap(), right);
    }

    #[test]
    fn anything_can_be_recorded(live in any_object(), mut object in any_json()) {
        record(Some(&live), &mut object, &widget(), Writer { manager: "m", subresource: None, time: TIME });
    }
}
