use super::*;

const US: Managers = Managers {
    ours: "us",
    predecessors: &["before"],
};

fn entry(manager: &str, operation: &str, fields: &Value) -> Value {
    json!({ "manager": manager, "operation": operation, "apiVersion": "v1",
        "fieldsType": "FieldsV1", "fieldsV1": fields })
}

fn object(entries: &[Value]) -> Value {
    json!({ "apiVersion": "v1", "metadata": { "resourceVersion": "7", "managedFields": entries } })
}

fn field(name: &str) -> Value {
    json!({ "f:metadata": { "f:labels": { format!("f:{name}"): {} } }, "f:data": { format!("f:{name}"): {} } })
}

/// Returns the entries after a take-over.
fn taken(object: &Value, from: TakeOver) -> Value {
    let patch = US.take_over(object, from, object).unwrap();
    patch.value(["metadata", "managedFields"]).unwrap().clone()
}

/// Updates of a predecessor, and of ours, become fields that we applied; metadata of others is left to them.
#[test]
fn take_over_merges_entries() {
    let mut scale = entry("scaler", "Update", &field("scaled"));
    scale["subresource"] = json!("scale");
    let object = object(&[
        entry("before", "Update", &field("b")),
        entry("us", "Apply", &field("a")),
        entry("other", "Update", &field("o")),
        scale.clone(),
    ]);
    let ours = taken(&object, TakeOver::FromPredecessors);
    let merged = json!({ "f:metadata": { "f:labels": { "f:a": {}, "f:b": {} } }, "f:data": { "f:a": {}, "f:b": {} } });
    let other = entry("other", "Update", &field("o"));
    assert_eq!(ours, json!([other, scale, entry("us", "Apply", &merged)]));
    let mut merged = merged;
    merged["f:data"]["f:o"] = json!({});
    let labels = json!({ "f:metadata": { "f:labels": { "f:o": {} } } });
    let other = entry("other", "Update", &labels);
    let expected = json!([other, scale, entry("us", "Apply", &merged)]);
    assert_eq!(taken(&object, TakeOver::FromAll), expected);
}

/// A container of ours that another has touched goes as a whole, and the other fields of the other stay.
#[test]
fn shared_field_leaves() {
    let element =
        |name: &str, fields: Value| json!({ format!("k:{{\"name\":\"{name}\"}}"): fields });
    let image = json!({ ".": {}, "f:image": {} });
    let ours =
        json!({ "f:list": element("side", image.clone()), "f:data": { "f:a": {}, "f:kept": {} } });
    let mut theirs = json!({ "f:list": element("side", image),
        "f:data": { "f:a": {}, "f:kept": {}, "f:own": {} } });
    let body = json!({ "list": [{ "name": "main" }], "data": { "kept": "x" } });
    assert!(let_go(&mut theirs, &ours, &body));
    assert_eq!(theirs, json!({ "f:data": { "f:kept": {}, "f:own": {} } }));
    assert!(!let_go(&mut theirs, &ours, &body));
    let mut whole = json!({ "f:data": { "f:a": {}, "f:own": {} } });
    assert!(let_go(&mut whole, &ours, &json!({})));
    assert_eq!(whole, json!({ "f:data": { "f:own": {} } }));
}

/// The patch is guarded by the version that was read, and not sent if there is nothing to take.
#[test]
fn take_over_is_guarded() {
    let ours = object(&[entry("us", "Apply", &field("a"))]);
    assert_eq!(US.take_over(&ours, TakeOver::FromAll, &ours), None);
    let theirs = object(&[entry("before", "Update", &field("a"))]);
    let patch = US
        .take_over(&theirs, TakeOver::FromPredecessors, &theirs)
        .unwrap();
    let guard = json!({ "op": "replace", "path": "/metadata/resourceVersion", "value": "7" });
    assert_eq!(json!(patch)[0], guard);
}

/// Of an object from a cache nobody knows who has written it.
#[test]
fn owners_are_told_apart() {
    let applied = entry("us", "Apply", &field("a"));
    let updated = entry("before", "Update", &field("b"));
    let other = entry("other", "Update", &field("o"));
    for (entries, expected) in [
        (vec![applied.clone(), other.clone()], Some(true)),
        (vec![applied.clone(), updated.clone()], Some(false)),
        (vec![other.clone()], Some(false)),
    ] {
        let object = object(&entries);
        assert_eq!(US.have_applied_all(&object), expected, "{object}");
    }
    assert_eq!(US.have_applied_all(&json!({ "metadata": {} })), None);
    let object = object(&[applied, updated, other]);
    let owns = ["a", "b", "o"].map(|name| US.own(&object, &["data", name]));
    assert_eq!(owns, [true, true, false]);
    let shares = ["a", "b", "o"].map(|name| US.share(&object, &["data", name]));
    assert_eq!(shares, [false, false, true]);
}

/// Defaults are fields of an update, too: so a kind with a generation is judged by our applied fields alone.
#[test]
fn fields_that_left_are_found() {
    let manifest = json!({ "metadata": { "labels": { "a": "1" } }, "data": { "a": "1" } });
    let more = json!({ "f:data": { "f:a": {}, "f:gone": {} } });
    for (manager, operation, generation, expected) in [
        ("us", "Apply", None, true),
        ("us", "Apply", Some(3), true),
        ("before", "Update", None, true),
        ("before", "Update", Some(3), false),
        ("other", "Update", None, false),
    ] {
        let mut object = object(&[entry(manager, operation, &more)]);
        object["metadata"]["generation"] = json!(generation);
        if generation.is_none() {
            object["metadata"]
                .as_object_mut()
                .unwrap()
                .remove("generation");
        }
        let found = US.own_more_than(&object, &manifest);
        assert_eq!(found, expected, "{manager} {operation} {generation:?}");
    }
    let object = object(&[entry("us", "Apply", &field("a"))]);
    assert!(!US.own_more_than(&object, &manifest));
}

/// Defaults are among the fields of an update of ours; of others only fields outside of metadata and status count.
#[test]
fn fields_beyond_a_body_are_found() {
    let body = json!({ "metadata": { "labels": { "a": "1" } }, "data": { "a": "1" } });
    let aside = json!({ "f:metadata": { "f:labels": { "f:b": {} } }, "f:status": { "f:b": {} } });
    let mut scale = entry("other", "Update", &field("b"));
    scale["subresource"] = json!("scale");
    for (entry, of_ours, of_others) in [
        (entry("us", "Update", &field("a")), false, false),
        (entry("before", "Update", &field("b")), true, false),
        (entry("other", "Update", &field("a")), false, false),
        (entry("other", "Update", &field("b")), false, true),
        (entry("other", "Update", &aside), false, false),
        (scale, false, false),
    ] {
        let object = object(&[entry]);
        assert_eq!(US.have_more_than(&object, &body), of_ours, "{object}");
        assert_eq!(
            US.others_have_more_than(&object, &body),
            of_others,
            "{object}"
        );
    }
}

/// All but the metadata of others becomes ours by an update, and then is not gathered again.
#[test]
fn content_is_gathered() {
    let theirs = object(&[
        entry("us", "Apply", &field("a")),
        entry("before", "Update", &field("b")),
        entry("other", "Update", &field("o")),
    ]);
    assert_eq!(
        writers(&theirs).collect::<Vec<_>>(),
        ["us", "before", "other"]
    );
    assert!(US.are_with_others(writers(&theirs)));
    assert_eq!(US.have_updated_all(&theirs), Some(false));
    let mut gathered = theirs.clone();
    gathered["metadata"]["managedFields"] = US.gathered(&theirs).unwrap();
    let fields = json!({
        "f:metadata": { "f:labels": { "f:a": {}, "f:b": {} } },
        "f:data": { "f:a": {}, "f:b": {}, "f:o": {} },
    });
    let labels = json!({ "f:metadata": { "f:labels": { "f:o": {} } } });
    let expected = json!([
        entry("other", "Update", &labels),
        entry("us", "Update", &fields)
    ]);
    assert_eq!(gathered["metadata"]["managedFields"], expected);
    assert_eq!(writers(&gathered).collect::<Vec<_>>(), ["us"]);
    assert_eq!(US.gathered(&gathered), None);
    assert_eq!(US.gathered(&json!({ "metadata": {} })), None);
}

/// Fields that others wrote in another version are gathered, too, if the object has all of them as it is served: or a list that is as
/// wanted would look like theirs for ever.
#[test]
fn other_versions_are_gathered() {
    let mut theirs = entry("other", "Update", &json!({ "f:spec": { "f:list": {} } }));
    theirs["apiVersion"] = json!("v2");
    let mut object = object(&[theirs]);
    assert_eq!(US.gathered(&object), None);
    object["spec"] = json!({ "list": [1] });
    let ours = entry("us", "Update", &json!({ "f:spec": { "f:list": {} } }));
    assert_eq!(US.gathered(&object), Some(json!([ours])));
}

/// Returns the entry of a manager that owns a field of the spec as a whole.
fn owner(manager: &str, field: &str) -> Value {
    let fields = json!({ "f:spec": { format!("f:{field}"): {} } });
    entry(manager, "Update", &fields)
}

/// Case P110: who owns alone a field that was ours as a whole has changed it, in whichever version, unless it is as the body has
/// it. A field that is ours, too, may have defaults within.
#[test]
fn replaced_lists_are_found() {
    let body = json!({ "spec": { "list": [{ "a": 1 }], "map": {}, "number": 1 } });
    let replaced = |entries: &[Value], change: &Value| {
        let mut object = object(entries);
        object["spec"] = body["spec"].clone();
        json_patch::merge(&mut object["spec"], change);
        US.others_have_replaced(&object, &body)
    };
    let (wider, none) = (json!({ "list": [{ "a": 1, "b": {} }] }), json!({}));
    assert!(replaced(&[owner("other", "list")], &wider));
    assert!(!replaced(&[owner("other", "list")], &none));
    let both = ["us", "other"].map(|manager| owner(manager, "list"));
    assert!(!replaced(&both, &wider));
    assert!(!replaced(&[owner("before", "list")], &wider));
    let map = json!({ "map": { "a": 1 } });
    assert!(replaced(&[owner("other", "map")], &map));
    // One of these is compared by itself.
    let number = json!({ "number": 2 });
    assert!(!replaced(&[owner("other", "number")], &number));
    let mut other = owner("other", "list");
    other["apiVersion"] = json!("v2");
    assert!(replaced(&[other], &wider));
}

/// Case P110: another may own a field that a predecessor took over, with defaults within: that is no change of ours, unless it came
/// after.
#[test]
fn earlier_lists_are_no_changes() {
    let body = json!({ "spec": { "list": [{ "a": 1 }] } });
    for (manager, time, is_replaced) in [
        ("before", "2026-11-30T08:00:00Z", false),
        ("before", "2026-11-30T08:00:01Z", true),
        ("us", "2026-11-30T08:00:00Z", true),
    ] {
        let mut before = entry(manager, "Update", &json!({ "f:metadata": {} }));
        before["time"] = json!("2026-11-30T08:00:01Z");
        let mut theirs = entry("other", "Update", &json!({ "f:spec": { "f:list": {} } }));
        theirs["time"] = json!(time);
        let mut object = object(&[theirs, before]);
        object["spec"] = json!({ "list": [{ "a": 1, "b": 2 }] });
        let found = US.others_have_replaced(&object, &body);
        assert_eq!(found, is_replaced, "{manager} {time}");
    }
}

/// Case F103: a field in the place of one of ours is taken; one that others have added beside
/// it is not.
#[test]
fn displaced_parts_are_taken() {
    let theirs = json!({ "f:spec": {
        "f:replicas": {},
        "f:containers": { "k:{\"name\":\"other\"}": { ".": {}, "f:name": {} } },
        "f:volumes": { "k:{\"name\":\"cache\"}": { "f:configMap": {} } },
        "f:livenessProbe": { "f:exec": {} },
    } });
    let body = json!({ "spec": {
        "containers": [{ "name": "web" }],
        "volumes": [{ "name": "cache", "emptyDir": {} }],
        "livenessProbe": { "httpGet": {}, "periodSeconds": 5 },
    } });
    let by_hand = json!({
        "replicas": 3,
        "containers": [{ "name": "other" }],
        "volumes": [{ "name": "cache", "configMap": {} }],
        "livenessProbe": { "exec": {}, "periodSeconds": 5 },
    });
    let added = json!({
        "replicas": 3,
        "containers": [{ "name": "other" }, { "name": "web" }],
        "volumes": [{ "name": "cache", "emptyDir": {}, "configMap": {} }],
        "livenessProbe": { "exec": {}, "httpGet": {}, "periodSeconds": 5 },
    });
    for (spec, is_taken) in [(by_hand, true), (added, false)] {
        let mut object = object(&[entry("kubectl", "Update", &theirs)]);
        object["spec"] = spec;
        let patch = US.take_over(&object, TakeOver::Displaced, &body);
        let mut expected = theirs.clone();
        expected["f:spec"]
            .as_object_mut()
            .unwrap()
            .remove("f:replicas");
        let fields = patch.map(|patch| {
            let entries = patch.value(["metadata", "managedFields"]).unwrap();
            entries[1]["fieldsV1"].clone()
        });
        assert_eq!(fields, is_taken.then_some(expected));
    }
}
