//! The eight functions.

use propagation_rules::interpret::Replicas;
use serde_json::{Value, json};

use crate::error::ScriptError;
use crate::operations::{
    aggregate, components, dependencies, is_healthy, reflect, replicas, retain, revise,
};

fn toy() -> Value {
    json!({ "apiVersion": "a.io/v1", "kind": "Toy",
        "metadata": { "name": "web", "generation": 9_007_199_254_740_993_i64 },
        "spec": { "replicas": 3, "empty": {}, "list": [], "volumes": [{ "emptyDir": {} }], "none": null } })
}

#[track_caller]
fn expect<T: std::fmt::Debug>(result: Result<T, ScriptError>, message: &str) {
    assert_eq!(result.unwrap_err().to_string(), message);
}

/// Case I70: replicas are a number, and the needs of each a table or nothing.
#[test]
fn replicas_are_typed() {
    let asked = |body: &str| replicas(&format!("function GetReplicas(obj) {body} end"), &toy());
    let of = |count, requirements| Replicas {
        count,
        requirements,
    };
    assert_eq!(
        asked("return obj.spec.replicas").unwrap(),
        of(Some(3), None)
    );
    assert_eq!(asked("return 2.9, nil").unwrap(), of(Some(2), None));
    assert_eq!(asked("return 0, {}").unwrap(), of(None, None));
    let needs =
        "return 1, { resourceRequest = { cpu = '100m', memory = 64 }, nodeClaim = {}, other = 1 }";
    let expected = json!({ "resourceRequest": { "cpu": "100m", "memory": "64" } });
    assert_eq!(asked(needs).unwrap(), of(Some(1), Some(expected)));
    expect(asked("return '3'"), "result type string is not number");
    expect(asked(""), "result type nil is not number");
    expect(
        asked("return 1, 2"),
        "expect the returned requires type is table but got number",
    );
    expect(
        asked("return 1, { resourceRequest = { cpu = 'x' } }"),
        "resourceRequest.cpu is not a quantity",
    );
    let fraction = "return 1, { nodeClaim = { tolerations = { { tolerationSeconds = 1.5 } } } }";
    assert!(
        asked(fraction)
            .unwrap_err()
            .to_string()
            .starts_with("can not unmarshal")
    );
}

/// Case I70: a function that is missing or none is told in Karmada's words.
#[test]
fn missing_function_is_told() {
    expect(replicas("", &toy()), "not found function GetReplicas");
    expect(
        replicas("GetReplicas = 1", &toy()),
        "GetReplicas is not a function: number",
    );
    expect(replicas("error('no')", &toy()), "<string>:1: no");
    let error = replicas("function GetReplicas(obj) return obj.x.y end", &toy());
    assert!(
        error
            .unwrap_err()
            .to_string()
            .starts_with("<string>:1: attempt to index")
    );
}

/// Case I71: a field that a script leaves alone comes back as it was, empty or not; a null is gone.
#[test]
fn revised_object_is_whole() {
    let source =
        "function ReviseReplica(obj, replicas) obj.spec.replicas = replicas return obj end";
    let mut expected = toy();
    expected["spec"]["replicas"] = json!(5);
    expected["spec"].as_object_mut().unwrap().remove("none");
    assert_eq!(revise(source, &toy(), 5).unwrap(), expected.into());
    let asked = |body: &str| {
        revise(
            &format!("function ReviseReplica(obj, n) {body} end"),
            &toy(),
            1,
        )
    };
    expect(
        asked("return nil"),
        "expect the returned requires type is table but got nil",
    );
    expect(
        asked("return { a = 1 }"),
        "Object 'Kind' is missing in the result",
    );
    expect(
        asked("return { 1, 2 }"),
        "can not unmarshal a list into an object",
    );
    expect(
        asked("obj.f = print return obj"),
        "json Encode obj error: cannot encode function to JSON",
    );
}

/// Case I71: an empty table that a script makes is as either argument has it there, and gone otherwise.
#[test]
fn retained_object_keeps_what_is_empty() {
    let source = "function Retain(desired, observed)
        desired.spec.here = observed.spec.here
        desired.spec.lists = observed.spec.lists
        desired.spec.new = {}
        return desired
    end";
    let desired = json!({ "kind": "Toy", "spec": { "a": 1 } });
    let observed = json!({ "kind": "Toy", "spec": { "here": {}, "lists": [] } });
    let retained = retain(source, &desired, &observed).unwrap();
    let expected = json!({ "kind": "Toy", "spec": { "a": 1, "here": {}, "lists": [] } });
    assert_eq!(retained.value, expected);
}

/// Case I70: the items of a status are nil if there are none, and only the status of the result counts.
#[test]
fn statuses_are_aggregated() {
    let source = "function AggregateStatus(obj, items)
        if items == nil then obj.status = { none = true } return obj end
        local sum = 0
        for _, item in ipairs(items) do sum = sum + item.status.ready end
        obj.status = { ready = sum }
        obj.spec = nil
        return obj
    end";
    let items = [1, 2].map(|ready| json!({ "clusterName": "m", "status": { "ready": ready } }));
    let status = aggregate(source, &toy(), &items).unwrap();
    assert_eq!(status.value, json!({ "ready": 3 }));
    let status = aggregate(source, &toy(), &[]).unwrap();
    assert_eq!(status.value, json!({ "none": true }));
    let none = "function AggregateStatus(obj, items) return obj end";
    assert_eq!(aggregate(none, &toy(), &items).unwrap().value, Value::Null);
}

/// Case I70: a status is a table, health a truth value: nil is an error of either.
#[test]
fn status_and_health_are_typed() {
    let reflected =
        |body: &str| reflect(&format!("function ReflectStatus(obj) {body} end"), &toy());
    let status = reflected("return { replicas = obj.spec.replicas, e = {} }");
    assert_eq!(status.unwrap().value, json!({ "replicas": 3 }));
    assert_eq!(reflected("return {}").unwrap().value, json!({}));
    expect(
        reflected("return obj.status"),
        "expect the returned requires type is table but got nil",
    );
    let health =
        |body: &str| is_healthy(&format!("function InterpretHealth(obj) {body} end"), &toy());
    assert_eq!(health("return true"), Ok(true));
    assert_eq!(health("return obj.spec.replicas == 4"), Ok(false));
    expect(health("return nil"), "result type nil is not bool");
    expect(health("return 1"), "result type number is not bool");
}

/// Case I70: a dependency has its kind, and a name or labels.
#[test]
fn dependencies_are_typed() {
    let asked =
        |body: &str| dependencies(&format!("function GetDependencies(obj) {body} end"), &toy());
    let found = asked(
        "return { { apiVersion = 'v1', kind = 'Secret', namespace = 'shop', name = 'keys', x = 1 },
            { apiVersion = 'v1', kind = 'ConfigMap', labelSelector = { matchLabels = { app = 'web' } } } }",
    );
    let found = found.unwrap();
    assert_eq!((found[0].name.as_str(), found.len()), ("keys", 2));
    assert_eq!(asked("return {}").unwrap(), []);
    expect(
        asked("return nil"),
        "expect the returned requires type is table but got nil",
    );
    expect(
        asked("return { { apiVersion = 'v1', kind = 'Secret', namespace = obj.metadata.name } }"),
        "dependencies[0]: name or a valid labelSelector is required",
    );
    assert!(asked("return { a = 1 }").is_err());
}

/// Case I70: components are a list, or nothing.
#[test]
fn components_are_typed() {
    let asked = |body: &str| components(&format!("function GetComponents(obj) {body} end"), &toy());
    assert_eq!(asked("return nil").unwrap(), None);
    let found = asked("return { { name = 'a', replicas = 2 }, { name = 'b', replicas = 1 } }");
    let names: Vec<_> = found
        .unwrap()
        .unwrap()
        .into_iter()
        .map(|one| (one.name, one.replicas))
        .collect();
    assert_eq!(names, [("a".to_owned(), 2), ("b".to_owned(), 1)]);
    assert!(asked("return { { name = 'a', replicas = 1.5 } }").is_err());
}

/// Case I78: the parts of a status that come from a clock or a die are no news, other changes are.
#[test]
fn times_are_found() {
    let source = "function ReflectStatus(obj)
        return { at = os.date('!%Y-%m-%dT%H:%M:%SZ'), s = os.time(), die = math.random(1000000), n = obj.spec.replicas }
    end";
    let first = reflect(source, &toy()).unwrap();
    let current = json!({ "at": "2020-01-01T00:00:00Z", "s": 1, "die": 2, "n": 3 });
    assert_eq!(
        first.clone().unless_only_times_differ_from(&current),
        current
    );
    let other = json!({ "at": "2020-01-01T00:00:00Z", "s": 1, "die": 2, "n": 4 });
    assert_eq!(
        first.clone().unless_only_times_differ_from(&other),
        first.value
    );
    let plain = reflect("function ReflectStatus(obj) return { n = 1 } end", &toy()).unwrap();
    assert_eq!(plain.at_another_time, None);
}
