use k8s_openapi::api::core::v1::Service;
use serde_json::{from_value, json};

use super::*;

const UID: &str = "7";

fn webhook(config: &Value) -> Webhook {
    let configuration = json!({ "metadata": { "name": "c" }, "webhooks": [
        { "name": "w.io", "clientConfig": config, "interpreterContextVersions": ["v1alpha1"] },
    ] });
    Webhook::all_of(&configuration).next().unwrap()
}

fn response(response: &Value) -> Result<Response, String> {
    let mut whole = json!({ "uid": UID, "successful": true });
    for (field, value) in response.as_object().unwrap() {
        whole[field] = value.clone();
    }
    let context = json!({ "apiVersion": "config.karmada.io/v1alpha1",
        "kind": "ResourceInterpreterContext", "response": whole });
    Response::read(UID, context.to_string().as_bytes())
}

/// Returns a response with a patch of these operations.
fn patching(operations: &str) -> Response {
    let patch = BASE64_STANDARD.encode(operations);
    response(&json!({ "patch": patch, "patchType": "JSONPatch" })).unwrap()
}

fn toy() -> Value {
    json!({ "apiVersion": "a.io/v1", "kind": "Toy", "metadata": { "name": "red", "namespace": "shop" },
        "spec": { "replicas": 3 } })
}

/// Case I79: a request has the fields of Karmada's, for each operation.
#[test]
fn request_is_karmadas() {
    let toy = toy();
    let request = Request::new(Operation::InterpretReplica, &toy);
    let mut expected = json!({
        "uid": UID, "kind": { "group": "a.io", "version": "v1", "kind": "Toy" }, "name": "red",
        "namespace": "shop", "operation": "InterpretReplica", "object": toy, "replicas": 0,
    });
    let body = request.body(UID);
    assert_eq!(body["kind"], "ResourceInterpreterContext");
    assert_eq!(body["apiVersion"], "config.karmada.io/v1alpha1");
    assert_eq!(body["request"], expected);

    let observed = json!({ "kind": "Toy" });
    let items = [json!({ "clusterName": "m1" })];
    let all = Request {
        observed: Some(&observed),
        replicas: 5,
        items: items.clone().into(),
        ..request
    };
    expected["observedObject"] = observed.clone();
    expected["replicas"] = json!(5);
    expected["aggregatedStatus"] = json!(items);
    assert_eq!(all.body(UID)["request"], expected);
}

/// Case I79: each operation has its field in the response.
#[test]
fn answers_are_typed() {
    let read = |value: Value| response(&value).unwrap();
    let needs = json!({ "resourceRequest": { "cpu": 1 } });
    let replicas = read(json!({ "replicas": 2, "replicaRequirements": needs })).replicas();
    let replicas = replicas.unwrap();
    assert_eq!(replicas.count, Some(2));
    let expected = json!({ "resourceRequest": { "cpu": "1" } });
    assert_eq!(replicas.requirements, Some(expected));
    let none = read(json!({ "replicas": 0, "replicaRequirements": null })).replicas();
    assert_eq!(none.unwrap(), crate::interpret::Replicas::default());

    let status = json!({ "ready": 1 });
    assert_eq!(read(json!({ "rawStatus": status })).status(), Ok(status));
    assert_eq!(read(json!({ "healthy": false })).is_healthy(), Ok(false));
    let map = json!({ "apiVersion": "v1", "kind": "ConfigMap", "namespace": "shop", "name": "a" });
    let found = read(json!({ "dependencies": [map, map] })).dependencies();
    assert_eq!(found.unwrap().len(), 1);
    assert!(read(json!({})).dependencies().unwrap().is_empty());
    let components = json!([{ "name": "driver", "replicas": 1 }]);
    let found = read(json!({ "components": components })).components();
    assert_eq!(found.unwrap().unwrap()[0].name, "driver");

    let revised = patching(r#"[{ "op": "replace", "path": "/spec/replicas", "value": 5 }]"#);
    assert_eq!(revised.patched(&toy()).unwrap()["spec"]["replicas"], 5);
    assert_eq!(read(json!({})).patched(&toy()), Ok(toy()));
    let ready = patching(r#"[{ "op": "add", "path": "/status", "value": { "ready": 1 } }]"#);
    assert_eq!(ready.aggregated(&toy()), Ok(json!({ "ready": 1 })));
    assert_eq!(read(json!({})).aggregated(&toy()), Ok(Value::Null));
}

/// Case I81: an answer that is none is told in Karmada's words.
#[test]
fn wrong_answers_are_told() {
    for (value, told) in [
        (
            json!({ "uid": "8" }),
            r#"expected response.uid "7", got "8""#,
        ),
        (
            json!({ "successful": false }),
            "webhook require response.status when response.successful is false",
        ),
        (
            json!({ "successful": false, "status": { "message": "no", "code": 403 } }),
            "webhook call failed, get status code: 403, msg: no",
        ),
    ] {
        assert_eq!(response(&value), Err(told.to_owned()));
    }
    for body in [
        "",
        r#"{ "kind": "ResourceInterpreterContext", "apiVersion": "v1" }"#,
    ] {
        let error = Response::read(UID, body.as_bytes()).unwrap_err();
        assert!(error.starts_with("the answer is no "), "{error}");
    }
    // Case P91: a server made with Karmada's package names neither kind nor version.
    for absent in [
        "[]",
        "{}",
        r#"{ "kind": "ResourceInterpreterContext", "apiVersion": "config.karmada.io/v1alpha1" }"#,
    ] {
        let absent = Response::read(UID, absent.as_bytes());
        assert_eq!(absent, Err("webhook response was absent".to_owned()));
    }
    let empty = response(&json!({})).unwrap();
    for (error, field) in [
        (empty.replicas().unwrap_err(), "replicas"),
        (empty.status().unwrap_err(), "rawStatus"),
        (empty.is_healthy().unwrap_err(), "healthy"),
    ] {
        assert_eq!(error, format!("webhook returned nil response.{field}"));
    }
}

/// Case I81: a patch that is none, or does not apply, changes nothing.
#[test]
fn bad_patches_are_told() {
    let nothing = BASE64_STANDARD.encode("{}");
    for (value, told) in [
        (
            json!({ "patch": "W10=" }),
            "webhook returned nil response.patchType",
        ),
        (
            json!({ "patchType": "JSONPatch" }),
            "webhook returned empty response.patch",
        ),
        (
            json!({ "patch": "W10=", "patchType": "Merge" }),
            r#"webhook returned invalid response.patchType of "Merge""#,
        ),
        (
            json!({ "patch": [], "patchType": "JSONPatch" }),
            "response.patch: ",
        ),
        (
            json!({ "patch": "[]", "patchType": "JSONPatch" }),
            "response.patch is no base64: ",
        ),
        (
            json!({ "patch": nothing, "patchType": "JSONPatch" }),
            "response.patch is no JSON patch: ",
        ),
    ] {
        let error = response(&value).unwrap().patched(&toy()).unwrap_err();
        assert!(error.starts_with(told), "{error}");
    }
    for (operations, told) in [
        (
            r#"[{ "op": "remove", "path": "/gone" }]"#,
            "response.patch does not apply: ",
        ),
        (
            r#"[{ "op": "remove", "path": "/kind" }]"#,
            "Object 'Kind' is missing in the result",
        ),
    ] {
        let error = patching(operations).patched(&toy()).unwrap_err();
        assert!(error.starts_with(told), "{error}");
    }
}

/// Case I80: a Service comes before a URL, and leads to its address, to another name, or to its own name.
#[test]
fn services_lead_to_hosts() {
    let reference = json!({ "namespace": "shop", "name": "hook", "path": "/x" });
    let both = webhook(&json!({ "url": "https://a.io", "service": reference }));
    let Ok(Address::Service(reference)) = both.address() else {
        panic!("{both:?}");
    };
    assert_eq!(reference.url(), "https://hook.shop.svc:443/x");
    assert_eq!(reference.host(None).unwrap(), "hook.shop.svc");
    let host = |spec: Value| {
        let service: Service = from_value(json!({ "spec": spec })).unwrap();
        reference.host(Some(&service))
    };
    let ports = json!([{ "port": 443 }]);
    assert_eq!(
        host(json!({ "clusterIP": "10.0.0.7", "ports": ports })).unwrap(),
        "10.0.0.7"
    );
    assert_eq!(
        host(json!({ "type": "ExternalName", "externalName": "a.io" })).unwrap(),
        "a.io"
    );
    for (spec, told) in [
        (
            json!({ "clusterIP": "None", "ports": ports }),
            r#"cannot route to service with ClusterIP "None""#,
        ),
        (
            json!({ "clusterIP": "10.0.0.7" }),
            r#"no service port 443 found for service "hook""#,
        ),
        (
            json!({ "type": "ExternalName" }),
            r#"service "hook" has no externalName"#,
        ),
    ] {
        assert_eq!(host(spec).unwrap_err(), told);
    }
}

/// Case I80: a webhook that cannot be asked says why.
#[test]
fn unusable_addresses_are_told() {
    for (config, told) in [
        (json!({}), "exactly one of url or service is required"),
        (
            json!({ "url": "http://a.io" }),
            "'https' is the only allowed URL scheme; desired format: https://host[/path]",
        ),
    ] {
        assert_eq!(webhook(&config).address(), Err(told.to_owned()));
    }
    let silent = json!({ "webhooks": [{ "clientConfig": { "url": "https://a.io" } }] });
    let silent = Webhook::all_of(&silent).next().unwrap();
    let told = "webhook does not accept known ResourceInterpreterContext versions (v1alpha1)";
    assert_eq!(silent.address(), Err(told.to_owned()));
    let trusting = webhook(&json!({ "caBundle": "?" }));
    let error = trusting.authorities().unwrap_err();
    assert!(error.starts_with("caBundle is no base64: "), "{error}");
    assert_eq!(webhook(&json!({})).authorities(), Ok(None));
}

/// The timeout of a webhook is within Karmada's bounds.
#[test]
fn timeouts_are_bounded() {
    for (seconds, expected) in [
        (json!(null), 30),
        (json!(7), 7),
        (json!(0), 1),
        (json!(99), 30),
    ] {
        let configuration = json!({ "webhooks": [{ "timeoutSeconds": seconds }] });
        let webhook = Webhook::all_of(&configuration).next().unwrap();
        assert_eq!(webhook.timeout, Duration::from_secs(expected));
    }
}

/// A configuration as Karmada's webhook lets it pass has no problems.
#[test]
fn karmadas_example_has_no_problems() {
    let rule = json!({ "operations": ["InterpretReplica", "ReviseReplica"], "apiGroups": ["a.io"],
        "apiVersions": ["v1"], "kinds": ["Toy"] });
    for address in [
        json!({ "url": "https://hook.shop.svc:443/interpreter" }),
        json!({ "service": { "namespace": "shop", "name": "hook", "port": 443 } }),
    ] {
        let found = problems(
            &json!({ "webhooks": [{ "name": "toys.a.io", "clientConfig": address,
            "rules": [rule], "timeoutSeconds": 3, "interpreterContextVersions": ["v1alpha1", "v2"] }] }),
        );
        assert_eq!(found, [""; 0]);
    }
}

/// A refusal of Karmada's webhook is told in its words.
#[test]
fn problems_are_karmadas() {
    let rules = json!([
        { "operations": ["*", "Retain"], "apiGroups": ["*", ""], "kinds": ["Toy"] },
        { "operations": ["Prune"], "apiGroups": [""], "apiVersions": ["v1"], "kinds": ["*"] },
    ]);
    let found = problems(&json!({ "webhooks": [
        { "name": "a", "rules": rules, "timeoutSeconds": 60 },
        { "name": "a", "clientConfig": { "url": "https://b@a.io" },
            "interpreterContextVersions": ["v2", "v2"] },
        { "clientConfig": { "service": { "name": "hook", "port": 0 } },
            "interpreterContextVersions": ["v1alpha1"] },
    ] }));
    let name =
        "Invalid value: \"a\": should be a domain with at least two segments separated by dots";
    let names = Operation::ALL
        .map(|operation| format!("{:?}", operation.name()))
        .join(", ");
    assert_eq!(
        found,
        [
            format!("webhooks[0].name: {name}"),
            "webhooks[0].rules[0].operations: Invalid value: [\"*\",\"Retain\"]: if '*' is present, must not specify other operations".to_owned(),
            "webhooks[0].rules[0].apiGroups: Invalid value: [\"*\",\"\"]: if '*' is present, must not specify other API groups".to_owned(),
            "webhooks[0].rules[0].apiVersions: Required value".to_owned(),
            format!("webhooks[0].rules[1].operations[0]: Unsupported value: \"Prune\": supported values: \"*\", {names}"),
            "webhooks[0].timeoutSeconds: Invalid value: 60: the timeout value must be between 1 and 30 seconds".to_owned(),
            "webhooks[0].clientConfig: Required value: exactly one of url or service is required".to_owned(),
            "webhooks[0].interpreterContextVersions: Required value: must specify one of v1alpha1".to_owned(),
            format!("webhooks[1].name: {name}"),
            "webhooks[1].clientConfig.url: Invalid value: \"https://b@a.io\": user information is not permitted in the URL".to_owned(),
            "webhooks[1].interpreterContextVersions[1]: Invalid value: \"v2\": duplicate version".to_owned(),
            "webhooks[1].interpreterContextVersions: Invalid value: [\"v2\",\"v2\"]: must include at least one of v1alpha1".to_owned(),
            "webhooks[1].name: Duplicate value: \"a\"".to_owned(),
            "webhooks[2].name: Required value".to_owned(),
            "webhooks[2].clientConfig.service.namespace: Required value: service namespace is required".to_owned(),
            "webhooks[2].clientConfig.service.port: Invalid value: 0: port is not valid: must be between 1 and 65535, inclusive".to_owned(),
        ]
    );
}
