use serde_json::from_value;

use super::*;
use crate::works::keep_facts;

fn deployment() -> Value {
    json!({
        "apiVersion": "apps/v1",
        "kind": "Deployment",
        "metadata": {
            "name": "web", "namespace": "shop",
            "labels": { "app": "web" }, "annotations": { "a": "1" },
        },
        "spec": { "replicas": 2, "template": { "spec": {
            "initContainers": [{ "name": "init", "image": "r.example.com/init:1" }],
            "containers": [
                { "name": "web", "image": "r.example.com:5000/shop/web:1.4", "command": ["run", "x"] },
                { "name": "side", "image": "side" },
            ],
        } } },
    })
}

fn cluster(name: &str) -> ClusterView {
    from_value(json!({ "metadata": { "name": name } })).unwrap()
}

fn policy(namespace: &str, name: &str, spec: Value) -> OverridePolicy {
    let mut policy = OverridePolicy {
        spec: from_value(spec).unwrap(),
        ..OverridePolicy::default()
    };
    policy.metadata.namespace = Some(namespace.to_owned());
    policy.metadata.name = Some(name.to_owned());
    policy
}

fn overridden(overriders: &Value) -> Result<Value, String> {
    let mut manifest = deployment();
    apply_overriders(overriders, &mut manifest).map(|()| manifest)
}

fn image_override(component: &str, operator: &str, value: &str) -> Value {
    let image = json!({ "component": component, "operator": operator, "value": value });
    json!({ "imageOverrider": [image] })
}

/// Images are changed part by part.
#[test]
fn image_parts_are_changed() {
    let cases = [
        "Registry replace m.io > m.io/shop/web:1.4 m.io/side",
        "Registry add .x > r.example.com:5000.x/shop/web:1.4 .x/side",
        "Registry remove - > shop/web:1.4 side",
        "Repository replace a/b > r.example.com:5000/a/b:1.4 a/b",
        "Repository add -x > r.example.com:5000/shop/web-x:1.4 side-x",
        "Tag replace 2 > r.example.com:5000/shop/web:2 side:2",
        "Tag add -x > r.example.com:5000/shop/web:1.4-x side",
        "Tag add sha256:0 > r.example.com:5000/shop/web:1.4 side",
        "Tag remove - > r.example.com:5000/shop/web side",
        "Tag replace sha256:e3b0c44298fc1c149afbf4c8996fb924 > r.example.com:5000/shop/web@sha256:e3b0c44298fc1c149afbf4c8996fb924 side@sha256:e3b0c44298fc1c149afbf4c8996fb924",
    ];
    for case in cases {
        let words: Vec<&str> = case.split(' ').collect();
        let [component, operator, value, _, web, side] = words[..] else {
            panic!("{case}");
        };
        let changed = overridden(&image_override(component, operator, value)).unwrap();
        let spec = &changed["spec"]["template"]["spec"];
        assert_eq!(spec["containers"][0]["image"], web, "{case}");
        assert_eq!(spec["containers"][1]["image"], side, "{case}");
        assert_eq!(spec["initContainers"][0]["image"], "r.example.com/init:1");
    }
}

fn registry_at(path: &str) -> Value {
    json!({ "imageOverrider": [{
        "predicate": { "path": path },
        "component": "Registry", "operator": "replace", "value": "m.io",
    }] })
}

/// An image at a path is changed alone.
#[test]
fn image_at_path_is_changed() {
    let path = "/spec/template/spec/initContainers/0/image";
    let changed = overridden(&registry_at(path)).unwrap();
    let spec = &changed["spec"]["template"]["spec"];
    assert_eq!(spec["initContainers"][0]["image"], "m.io/init:1");
    assert_eq!(spec["containers"][1]["image"], "side");
    assert!(overridden(&registry_at("/spec/replicas")).is_err());
    assert!(overridden(&registry_at("/spec/none")).is_err());
}

fn words(field: &str, container: &str, operator: &str, value: &[&str]) -> Value {
    let overrider = json!({ "containerName": container, "operator": operator, "value": value });
    json!({ field: [overrider] })
}

fn containers(overriders: &Value) -> Value {
    let changed = overridden(overriders).unwrap();
    changed["spec"]["template"]["spec"]["containers"].clone()
}

/// Commands and arguments are added to and removed from one container.
#[test]
fn commands_change_one_container() {
    let added = containers(&words("commandOverrider", "web", "add", &["y"]));
    assert_eq!(added[0]["command"], json!(["run", "x", "y"]));
    assert_eq!(added[1].get("command"), None);
    let removed = containers(&words("commandOverrider", "web", "remove", &["x", "z"]));
    assert_eq!(removed[0]["command"], json!(["run"]));
    let new = containers(&words("argsOverrider", "side", "add", &["--v"]));
    assert_eq!(new[1]["args"], json!(["--v"]));
    let nothing = containers(&words("argsOverrider", "side", "remove", &["--v"]));
    assert_eq!(nothing[1]["args"], json!([]));
}

/// Kinds of other groups that have the name of a workload are workloads: a mirror of images is for Kruise's, too.
#[test]
fn other_groups_are_overridden() {
    for (api_version, kind) in [
        ("apps.kruise.io/v1beta1", "StatefulSet"),
        ("apps.kruise.io/v1alpha1", "DaemonSet"),
    ] {
        let mut manifest = deployment();
        manifest["apiVersion"] = api_version.into();
        manifest["kind"] = kind.into();
        let overrider = from_value(json!({
            "component": "Registry", "operator": "replace", "value": "m.io",
        }));
        operators::image(&overrider.unwrap(), &mut manifest).unwrap();
        let image = &manifest["spec"]["template"]["spec"]["containers"][0]["image"];
        assert_eq!(image, "m.io/shop/web:1.4", "{kind}");
    }
}

fn annotations_after(operator: &str) -> Value {
    let overrider = json!({ "operator": operator, "value": { "a": "2", "b": "2" } });
    let changed = overridden(&json!({ "annotationsOverrider": [overrider] })).unwrap();
    changed["metadata"]["annotations"].clone()
}

/// Labels and annotations that are not there are left so.
#[test]
fn absent_labels_stay_absent() {
    assert_eq!(annotations_after("add"), json!({ "a": "2", "b": "2" }));
    assert_eq!(annotations_after("replace"), json!({ "a": "2" }));
    assert_eq!(annotations_after("remove"), json!({}));
    let label = json!({ "labelsOverrider": [{ "operator": "add", "value": { "x/y": "1" } }] });
    let changed = overridden(&label).unwrap();
    assert_eq!(
        changed["metadata"]["labels"],
        json!({ "app": "web", "x/y": "1" })
    );
}

fn in_text(path: &str, language: &str, operator: &str) -> Value {
    let edit = json!({ "subPath": "/a/b", "operator": operator, "value": 2 });
    json!({ "fieldOverrider": [{ "fieldPath": path, language: [edit] }] })
}

#[test]
fn a_text_is_changed_inside() {
    let mut config = json!({
        "apiVersion": "v1", "kind": "ConfigMap", "metadata": {},
        "data": { "j": "{\"a\": {\"b\": 1}}", "y": "a:\n  b: 1\nlist:\n- x\n", "t": "text" },
    });
    apply_overriders(&in_text("/data/j", "json", "replace"), &mut config).unwrap();
    apply_overriders(&in_text("/data/y", "yaml", "replace"), &mut config).unwrap();
    assert_eq!(config["data"]["j"], "{\"a\":{\"b\":2}}");
    assert_eq!(config["data"]["y"], "a:\n  b: 2\nlist:\n- x\n");
    for wrong in [
        in_text("/data/t", "json", "replace"),
        in_text("/data/none", "json", "replace"),
        in_text("/data", "yaml", "replace"),
        in_text("/data/j", "json", "move"),
    ] {
        assert!(apply_overriders(&wrong, &mut config).is_err(), "{wrong}");
    }
}

fn changed_text(language: &str, text: &str, patches: &Value) -> Result<Value, String> {
    let mut config = json!({ "apiVersion": "v1", "kind": "ConfigMap", "data": { "text": text } });
    let field = json!({ "fieldPath": "/data/text", language: patches });
    let overriders = json!({ "fieldOverrider": [field] });
    apply_overriders(&overriders, &mut config).map(|()| config["data"]["text"].take())
}

/// Case P112: a change within a text leaves the rest its meaning, as Karmada writes it.
#[test]
fn rest_of_text_means_the_same() {
    let replace = json!([{ "subPath": "/a/b", "operator": "replace", "value": "5s" }]);
    let yaml = "# settings\na: {b: 30s}\nmode: 0644\nflag: yes\nversion: 1.10\nexp: 1e3\nhex: 0x1F\n\
        big: 123456789012345678901234567890\ndate: 2024-02-28\ntext: \"007\"\nnone: ~\n010: ten\n\
        base: &base {c: off}\nuse: *base\n";
    let expected = concat!(
        r#"{"8":"ten","a":{"b":"5s"},"base":{"c":false},"big":123456789012345678901234567890,"#,
        r#""date":"2024-02-28","exp":1000,"flag":true,"hex":31,"mode":420,"none":null,"#,
        r#""text":"007","use":{"c":false},"version":1.1}"#
    );
    let yaml = changed_text("yaml", yaml, &replace).unwrap();
    let yaml = yaml.as_str().unwrap();
    assert!(yaml.contains("\nmode: 420\n"), "{yaml}");
    assert_eq!(objects::yaml::document(yaml).unwrap(), expected);
    let json = r#"{"z": [1e3, 1.10, 123456789012345678901234567890], "a": {"b": 1, "b": 2, "c": 0.1000},
        "x": "<a b>", "z": [3.14159265358979323846, 1E400]}"#;
    let expected = concat!(
        r#"{"z":[3.14159265358979323846,1E400],"a":{"b":"5s","c":0.1000},"#,
        r#""x":"\u003ca b\u003e"}"#
    );
    assert_eq!(changed_text("json", json, &replace).unwrap(), expected);

    let places = json!([
        { "subPath": "/-1", "operator": "add", "value": 1 },
        { "subPath": "/-1/01", "operator": "add", "value": 2 },
        { "subPath": "/00", "operator": "remove" },
        { "subPath": "/-", "operator": "add", "value": [] },
    ]);
    let error = changed_text("json", "[0, [0]]", &places).unwrap_err();
    assert_eq!(error, "the text at /data/text has no /-1/01");
    assert_eq!(
        changed_text("json", "[0, [0], [8]]", &json!([places[2]])).unwrap(),
        "[[0],[8]]"
    );
    let inner = json!([{ "subPath": "/-1/01", "operator": "add", "value": 2 }]);
    assert_eq!(
        changed_text("json", "[0, [1, 3]]", &inner).unwrap(),
        "[0,[1,2,3]]"
    );
    for (language, text) in [
        ("yaml", "a: {b: 1}\n---\nb: 2\n"),
        ("yaml", "a: {b: .inf}\n"),
        ("yaml", "a: {c: 1}\n"),
        ("json", "{\"a\": {}}"),
        ("json", "{\"a\": {\"b\": 1}} x"),
    ] {
        let changed = changed_text(language, text, &replace);
        assert!(changed.is_err(), "{text}");
    }
}

/// Neither a text nor its changes are deeper than can be walked through, or make work without end.
#[test]
fn changes_of_texts_are_bounded() {
    let lists = |levels: usize| format!("{}{}", "[".repeat(levels), "]".repeat(levels));
    let json = |levels| format!("{{\"a\": {{\"b\": 1}}, \"deep\": {}}}", lists(levels));
    let yaml = |levels| format!("a: {{b: 1}}\ndeep: {}\n", lists(levels));
    let replace = json!([{ "subPath": "/a/b", "operator": "replace", "value": 2 }]);
    for (language, allowed, deeper) in [
        ("json", json(99), json(100)),
        ("yaml", yaml(99), yaml(100)),
        ("yaml", json(99), json(100)),
    ] {
        assert!(changed_text(language, &allowed, &replace).is_ok());
        let error = changed_text(language, &deeper, &replace).unwrap_err();
        assert_eq!(error, "the text at /data/text has more than 100 levels");
    }
    let brackets = "[".repeat(200);
    let text = format!("{{\"a\": {{\"b\": 1}}, \"text\": \"\\\"{brackets}\"}}");
    assert!(changed_text("json", &text, &replace).is_ok());

    let nested = |levels: usize| (0..levels).fold(json!(1), |inner, _| json!([inner]));
    let add = |levels| json!([{ "subPath": "/a/b", "operator": "add", "value": nested(levels) }]);
    let too_deep = json!([{ "subPath": "/a".repeat(101), "operator": "remove" }]);
    let long = format!(
        "{{\"a\": {{\"b\": 1}}, \"text\": \"{}\"}}",
        "x".repeat(1 << 20)
    );
    let short = json(1);
    for (text, patches, problem) in [
        (&short, add(98), None),
        (&short, add(99), Some("would have more than 100 levels")),
        (
            &short,
            too_deep,
            Some("cannot be changed more than 100 levels deep"),
        ),
        (&long, json!(vec![replace[0].clone(); 2]), None),
        (
            &long,
            json!(vec![replace[0].clone(); 64]),
            Some("is too long for so many changes: they would copy more than 64 MiB"),
        ),
    ] {
        let expected = problem.map(|problem| format!("the text at /data/text {problem}"));
        assert_eq!(changed_text("json", text, &patches).err(), expected);
    }
}

/// Case P113: a place in a list may be counted from its end, or have zeros before it, wherever an override names one.
#[test]
fn places_are_counted_as_karmada_does() {
    for (place, index) in [("-1", 1), ("-2", 0), ("01", 1), ("00", 0)] {
        let path = format!("/spec/template/spec/containers/{place}/image");
        for overriders in [
            json!({ "plaintext": [{ "path": path, "operator": "replace", "value": "new" }] }),
            json!({ "imageOverrider": [{ "predicate": { "path": path },
                "component": "Repository", "operator": "replace", "value": "new" }] }),
        ] {
            let changed = overridden(&overriders).unwrap();
            let containers = &changed["spec"]["template"]["spec"]["containers"];
            let changed = containers[index]["image"].as_str().unwrap();
            assert!(changed.contains("new"), "{overriders} {changed}");
        }
    }
    let path = "/spec/template/spec/containers/-3/image";
    let beyond = json!({ "plaintext": [{ "path": path, "operator": "remove" }] });
    let error = overridden(&beyond).unwrap_err();
    assert!(error.starts_with(&format!("at {path}: ")), "{error}");
}

/// Plaintext comes last and an operation that fails is an error.
#[test]
fn failing_plaintext_is_error() {
    let image = "/spec/template/spec/containers/1/image";
    let mut overriders = image_override("Registry", "replace", "m.io");
    overriders["plaintext"] = json!([
        { "path": image, "operator": "replace", "value": "last" },
        { "path": "/metadata/annotations/x~1y", "operator": "add", "value": "1" },
        { "path": "/spec/replicas", "operator": "remove" },
    ]);
    let changed = overridden(&overriders).unwrap();
    assert_eq!(changed.pointer(image).unwrap(), "last");
    assert_eq!(changed["metadata"]["annotations"]["x/y"], "1");
    assert_eq!(changed["spec"].get("replicas"), None);
    for wrong in [
        json!([{ "path": "/spec/none", "operator": "remove" }]),
        json!([{ "path": "/none/x", "operator": "add", "value": 1 }]),
        json!([{ "path": "spec", "operator": "add", "value": 1 }]),
        json!([{ "path": "/spec", "operator": "copy", "value": 1 }]),
    ] {
        assert!(
            overridden(&json!({ "plaintext": wrong })).is_err(),
            "{wrong}"
        );
    }
}

/// Case P12: each kind of overrider changes the result of those before it.
#[test]
fn kinds_act_in_order() {
    let image = "/spec/template/spec/containers/0/image";
    let mut overriders = image_override("Tag", "add", "-image");
    overriders["labelsOverrider"] = json!([{ "operator": "add", "value": { "added": "1" } }]);
    overriders["annotationsOverrider"] =
        json!([{ "operator": "add", "value": { "added": "{\"a\":1}" } }]);
    let in_text = json!({ "subPath": "/a", "operator": "replace", "value": 2 });
    overriders["fieldOverrider"] =
        json!([{ "fieldPath": "/metadata/annotations/added", "json": [in_text] }]);
    overriders["plaintext"] = json!([
        { "path": "/metadata/labels/added", "operator": "replace", "value": "plain" },
        { "path": image, "operator": "replace", "value": "plain" },
    ]);
    let changed = overridden(&overriders).unwrap();
    assert_eq!(changed["metadata"]["labels"]["added"], "plain");
    assert_eq!(changed["metadata"]["annotations"]["added"], "{\"a\":2}");
    assert_eq!(changed.pointer(image).unwrap(), "plain");
}

/// An operator or part of a later version is an error.
#[test]
fn unknown_operator_is_error() {
    let later = [
        image_override("Registry", "prefix", "x"),
        image_override("Platform", "add", "x"),
        json!({ "labelsOverrider": [{ "operator": "merge", "value": {} }] }),
        json!({ "commandOverrider": [{ "containerName": "web", "operator": "replace" }] }),
        json!({ "plaintext": "text" }),
    ];
    for overriders in later {
        assert!(overridden(&overriders).is_err(), "{overriders}");
    }
}

fn annotate(value: &str) -> Value {
    json!({ "annotationsOverrider": [{ "operator": "add", "value": { "a": value } }] })
}

fn applied_to(
    cluster_policies: &[ClusterOverridePolicy],
    policies: &[OverridePolicy],
) -> (Value, Applied) {
    let overrides = Overrides {
        cluster_policies: cluster_policies.iter().collect(),
        policies: policies.iter().collect(),
    };
    let mut manifest = deployment();
    let applied = overrides.apply(&mut manifest, &cluster("m1")).unwrap();
    (manifest["metadata"]["annotations"]["a"].clone(), applied)
}

/// Case P12: the most specific policy has the last word and namespaced ones follow those of clusters.
#[test]
fn most_specific_policy_is_last() {
    let selector = json!({ "apiVersion": "apps/v1", "kind": "Deployment" });
    let mut by = selector.clone();
    by["name"] = "web".into();
    let rule = |value: &str| json!([{ "overriders": annotate(value) }]);
    let by_name = json!({ "resourceSelectors": [by], "overrideRules": rule("name") });
    let by_kind = json!({ "resourceSelectors": [selector], "overrideRules": rule("kind") });
    let all = |value: &str| json!({ "overrideRules": rule(value) });
    let policies = [
        policy("shop", "a", by_name),
        policy("shop", "z", by_kind),
        policy("shop", "y", all("all")),
        policy("other", "x", all("other")),
    ];
    let (last, applied) = applied_to(&[], &policies);
    assert_eq!(last, "name");
    let items = applied.policies.unwrap();
    let names: Vec<&Value> = items
        .as_array()
        .unwrap()
        .iter()
        .map(|i| &i["policyName"])
        .collect();
    assert_eq!(
        names,
        ["a", "y", "z"],
        "sorted by name, without that of another namespace"
    );
    assert_eq!(items[0]["overriders"], annotate("name"));

    let first: ClusterOverridePolicy =
        from_value(json!({ "metadata": { "name": "c" }, "spec": all("cluster") })).unwrap();
    let (last, applied) = applied_to(
        std::slice::from_ref(&first),
        &[policy("shop", "y", all("ns"))],
    );
    assert_eq!(last, "ns");
    let item = json!([{ "policyName": "c", "overriders": annotate("cluster") }]);
    assert_eq!(applied.cluster_policies, Some(item));
}

/// Case P12: policies of one rank act by their names.
#[test]
fn equal_policies_act_by_name() {
    let policies = ["-2", "-1"].map(|mark| {
        let overriders = image_override("Tag", "add", mark);
        let rules = json!([{ "overriders": overriders }]);
        policy(
            "shop",
            &format!("p{mark}"),
            json!({ "overrideRules": rules }),
        )
    });
    let overrides = Overrides {
        policies: policies.iter().collect(),
        ..Overrides::default()
    };
    let mut manifest = deployment();
    overrides.apply(&mut manifest, &cluster("m1")).unwrap();
    let image = &manifest["spec"]["template"]["spec"]["containers"][0]["image"];
    assert_eq!(image, "r.example.com:5000/shop/web:1.4-1-2");
}

fn by_field(key: &str, value: &str) -> Value {
    let requirement = json!({ "key": key, "operator": "In", "values": [value] });
    json!({ "fieldSelector": { "matchExpressions": [requirement] } })
}

/// The fields by which a rule may select a cluster are kept.
#[test]
fn kept_facts_select_alike() {
    let mut kept: ClusterView = from_value(json!({
        "metadata": { "name": "m1", "labels": { "env": "prod" } },
        "spec": { "provider": "p", "region": "r", "zones": ["z"], "apiEndpoint": "https://m1" },
    }))
    .unwrap();
    keep_facts(&mut kept);
    assert_eq!(kept.spec.api_endpoint, "");
    for target in [
        json!({ "clusterNames": ["m1"] }),
        json!({ "labelSelector": { "matchLabels": { "env": "prod" } } }),
        by_field("provider", "p"),
        by_field("region", "r"),
        by_field("zone", "z"),
    ] {
        let selector: ClusterSelector = from_value(target.clone()).unwrap();
        assert!(selects(&selector, &kept), "{target}");
    }
}

/// A rule counts only for its clusters and the older form only without rules.
#[test]
fn rules_count_for_their_clusters() {
    let rule = |clusters: Value, value: &str| json!({ "targetCluster": { "clusterNames": clusters }, "overriders": annotate(value) });
    let here = rule(json!(["m1"]), "here");
    let elsewhere = rule(json!(["m2"]), "elsewhere");
    let rules = json!({ "overrideRules": [here.clone(), elsewhere] });
    let (value, applied) = applied_to(&[], &[policy("shop", "p", rules)]);
    assert_eq!(value, "here");
    let item = json!([{ "policyName": "p", "overriders": annotate("here") }]);
    assert_eq!(applied.policies, Some(item));

    let (value, _) = applied_to(&[], &[policy("shop", "p", here)]);
    assert_eq!(value, "here");
    let mut both = rule(json!(["m1"]), "older");
    both["overrideRules"] = json!([rule(json!(["m1"]), "newer")]);
    assert_eq!(applied_to(&[], &[policy("shop", "p", both)]).0, "newer");
    let nothing = json!({ "overrideRules": [rule(json!(["m2"]), "elsewhere")] });
    let (value, applied) = applied_to(&[], &[policy("shop", "p", nothing)]);
    assert_eq!((value, applied), (json!("1"), Applied::default()));
}

#[test]
fn an_error_names_the_policy() {
    let spec = json!({ "overriders": { "plaintext": [{ "path": "/x/y", "operator": "remove" }] } });
    let policy = policy("shop", "broken", spec);
    let overrides = Overrides {
        policies: vec![&policy],
        ..Overrides::default()
    };
    let error = overrides
        .apply(&mut deployment(), &cluster("m1"))
        .unwrap_err();
    let text = error.to_string();
    assert!(
        text.starts_with("OverridePolicy broken cannot be applied: "),
        "{text}"
    );
}

fn repository_at(path: &str) -> Value {
    let predicate = json!({ "path": path });
    let value = "kube-system";
    json!({ "imageOverrider": [{ "predicate": predicate, "component": "Repository",
        "operator": "replace", "value": value }] })
}

/// A policy of a namespace changes the content of an object, and never which object it is: else its author would write
/// into every namespace of every member. That holds for each way to get there. Case P69.
#[test]
fn overrides_never_escape() {
    let plain = |path: &str, operator: &str, value: Value| json!({ "plaintext": [{ "path": path, "operator": operator, "value": value }] });
    let mut elsewhere = deployment();
    elsewhere["metadata"]["namespace"] = "kube-system".into();
    let mut twice = plain("/metadata", "remove", Value::Null);
    twice["plaintext"].as_array_mut().unwrap().push(json!({
        "path": "/metadata", "operator": "add", "value": elsewhere["metadata"],
    }));
    let escapes = [
        plain("/metadata/namespace", "replace", json!("kube-system")),
        plain("/metadata/namespace", "remove", Value::Null),
        plain("/metadata/name", "add", json!("other")),
        plain("/kind", "replace", json!("DaemonSet")),
        plain("/apiVersion", "replace", json!("extensions/v1beta1")),
        plain("/metadata", "replace", elsewhere["metadata"].clone()),
        plain("", "replace", elsewhere),
        twice,
        repository_at("/metadata/namespace"),
        repository_at("/metadata/name"),
    ];
    for overriders in escapes {
        let rules = json!([{ "overriders": overriders }]);
        let escaping = policy("shop", "notes", json!({ "overrideRules": rules }));
        let overrides = Overrides {
            policies: vec![&escaping],
            ..Overrides::default()
        };
        let mut manifest = deployment();
        let error = overrides.apply(&mut manifest, &cluster("m1"));
        let error = error.unwrap_err().to_string();
        assert!(
            error.starts_with("OverridePolicy notes cannot be applied: it would write "),
            "{error}"
        );
        assert!(
            error.ends_with(" in place of Deployment of apps/v1 shop/web"),
            "{error}"
        );

        // Whoever writes such policies may write everywhere.
        let rules = json!({ "metadata": { "name": "c" }, "spec": { "overrideRules": rules } });
        let everywhere: ClusterOverridePolicy = from_value(rules).unwrap();
        let overrides = Overrides {
            cluster_policies: vec![&everywhere],
            ..Overrides::default()
        };
        overrides.apply(&mut deployment(), &cluster("m1")).unwrap();
    }
    let within = plain("/metadata/labels/app", "replace", json!("other"));
    let rules = json!([{ "overriders": within }]);
    let within = policy("shop", "notes", json!({ "overrideRules": rules }));
    let overrides = Overrides {
        policies: vec![&within],
        ..Overrides::default()
    };
    overrides.apply(&mut deployment(), &cluster("m1")).unwrap();
}

#[expect(
    clippy::unwrap_in_result,
    reason = "the error is that of the overrides, and not of the fixture"
)]
fn applied_by(
    kind: &str,
    object: &Value,
    path: &str,
    operator: &str,
    value: &Value,
) -> Result<Applied, String> {
    let spec = json!({ "overrideRules": [{ "overriders": { "plaintext": [
        { "path": path, "operator": operator, "value": value },
    ] } }] });
    let namespaced = [policy("shop", "p", spec.clone())];
    let everywhere: [ClusterOverridePolicy; 1] =
        [from_value(json!({ "metadata": { "name": "p" }, "spec": spec })).unwrap()];
    let mut overrides = Overrides::default();
    match kind {
        OverridePolicy::KIND => overrides.policies = namespaced.iter().collect(),
        _ => overrides.cluster_policies = everywhere.iter().collect(),
    }
    let applied = overrides.apply(&mut object.clone(), &cluster("m1"));
    applied.map_err(|error| error.to_string())
}

/// An API lets nobody write a Role with more rights than his own. Who changed one on its way would have in each member the
/// rights that he is refused here: a policy of a namespace changes neither the rights that are granted nor their holders.
/// Case P69.
#[test]
fn overrides_grant_nothing() {
    let of_rbac = |kind: &str, fields: Value| {
        let mut object = json!({ "apiVersion": "rbac.authorization.k8s.io/v1", "kind": kind,
            "metadata": { "name": "web", "namespace": "shop" } });
        for (field, value) in fields.as_object().unwrap() {
            object[field] = value.clone();
        }
        object
    };
    let granted = json!({ "apiGroups": [""], "resources": ["pods"], "verbs": ["get"] });
    let role = of_rbac("Role", json!({ "rules": [granted] }));
    let binding = of_rbac(
        "RoleBinding",
        json!({ "roleRef": { "kind": "Role", "name": "web" }, "subjects": [{ "kind": "User", "name": "a" }] }),
    );
    let mut of_openshift = binding.clone();
    of_openshift["apiVersion"] = json!("authorization.openshift.io/v1");
    let wide = json!([{ "apiGroups": ["*"], "resources": ["*"], "verbs": ["*"] }]);
    let (of_namespace, of_cluster) = (OverridePolicy::KIND, ClusterOverridePolicy::KIND);
    for (object, field, path, value) in [
        (&role, "rules", "/rules", wide.clone()),
        (&role, "rules", "/rules/0/verbs/-", json!("*")),
        (&binding, "roleRef", "/roleRef/name", json!("admin")),
        (
            &binding,
            "roleRef",
            "/roleRef",
            json!({ "kind": "ClusterRole", "name": "admin" }),
        ),
        (&binding, "subjects", "/subjects/0/name", json!("b")),
        (&of_openshift, "groupNames", "/groupNames", json!(["b"])),
    ] {
        let refused = applied_by(of_namespace, object, path, "add", &value).unwrap_err();
        assert_eq!(
            refused,
            format!(
                "OverridePolicy p cannot be applied: it would change `{field}`, and so grant rights that its author need not have"
            )
        );
        applied_by(of_cluster, object, path, "add", &value).unwrap();
    }
    let whole = of_rbac("Role", json!({ "rules": wide }));
    assert!(applied_by(of_namespace, &role, "", "replace", &whole).is_err());
    assert!(applied_by(of_namespace, &role, "/rules", "remove", &Value::Null).is_err());
    // The rest is his, and so is a field of that name elsewhere.
    applied_by(
        of_namespace,
        &role,
        "/metadata/labels",
        "add",
        &json!({ "a": "b" }),
    )
    .unwrap();
    let other =
        json!({ "apiVersion": "x.io/v1", "kind": "Alerts", "metadata": { "namespace": "shop" } });
    applied_by(of_namespace, &other, "/rules", "add", &wide).unwrap();
}
