//! `require("kube")`.

use serde_json::json;

use super::{raised, run};
use crate::operations;

fn text(code: &str) -> String {
    let code = format!("local kube = require('kube') return {code}");
    let values = run(&code).unwrap();
    values[0].strip_prefix("string ").unwrap().to_owned()
}

/// Case I73: quantities add up in the notation of the first that is not zero.
#[test]
fn quantities_add_up() {
    for (code, expected) in [
        ("kube.resourceAdd('100m', '1')", "1100m"),
        ("kube.resourceAdd('64Mi', '64Mi')", "128Mi"),
        ("kube.resourceAdd(nil, '1Gi', nil)", "1Gi"),
        ("kube.resourceAdd()", "0"),
        ("kube.resourceAdd('1Gi', '1M')", "1074741824"),
        ("kube.resourceAdd('500m', '500m')", "1"),
        ("kube.resourceAdd('100n', '1u')", "1100n"),
        ("kube.resourceAdd('1e3', '1')", "1001"),
        ("kube.resourceAdd('1k', '1k')", "2k"),
    ] {
        assert_eq!(text(code), expected, "{code}");
    }
    let code = "local q = require('kube').getResourceQuantity return q('100m'), q('1Ki'), q(nil)";
    assert_eq!(
        run(code).unwrap(),
        ["number 0.1", "number 1024", "number 0"]
    );
}

/// Case I73: sums are those that Karmada 1.18.2 gave, parts of a byte and more than eight exbibytes among them.
#[test]
fn sums_are_karmadas() {
    let recorded = include_str!("../fixtures/quantities.json");
    let recorded: Vec<(Vec<Option<String>>, String)> = serde_json::from_str(recorded).unwrap();
    for (summands, expected) in recorded {
        let summands = summands.into_iter();
        let summands =
            summands.map(|one| one.map_or_else(|| "nil".to_owned(), |text| format!("'{text}'")));
        let code = format!(
            "kube.resourceAdd({})",
            summands.collect::<Vec<_>>().join(", ")
        );
        assert_eq!(text(&code), expected, "{code}");
    }
}

/// Case I73: a text that is no quantity, a number and a wrong count raise an error that can be caught.
#[test]
fn wrong_arguments_raise() {
    for (code, expected) in [
        (
            "resourceAdd(1)",
            "bad argument #1 to resourceAdd (string expected, got number)",
        ),
        ("resourceAdd('1', 'x')", "argument #2 is not a quantity"),
        (
            "getResourceQuantity()",
            "getResourceQuantity only accepts one argument",
        ),
        (
            "getResourceQuantity('-1')",
            "int approximation unexpectedly returned a negative value",
        ),
        (
            "accuratePodRequirements()",
            "getPodRequirements only accepts one argument",
        ),
        (
            "accuratePodRequirements(1)",
            "bad argument #1 to accuratePodRequirements (table expected, got number)",
        ),
        (
            "getPodDependencies({})",
            "getPodDependencies only accepts two argument",
        ),
    ] {
        let code = format!("return require('kube').{code}, 1");
        assert_eq!(raised(&code), expected, "{code}");
    }
    let caught =
        "local ok, e = pcall(require('kube').resourceAdd, 'x') return tostring(ok) .. type(e)";
    assert_eq!(run(caught).unwrap(), ["string falsestring"]);
    assert_eq!(raised("return require('io'), 1"), "module io not found");
}

/// Case I73: the needs of a Pod and its dependencies are those of Kubernetes' own kinds.
#[test]
fn pods_are_read() {
    let template = json!({
        "kind": "Toy", "metadata": { "namespace": "shop" },
        "spec": { "replicas": 3, "template": { "spec": {
            "nodeSelector": { "disk": "ssd" },
            "containers": [{ "name": "web",
                "resources": { "requests": { "cpu": "100m" } },
                "envFrom": [{ "configMapRef": { "name": "settings" } }] }],
            "volumes": [{ "name": "v", "emptyDir": {} }, { "name": "s", "secret": { "secretName": "keys" } }],
        } } },
    });
    let source = "local kube = require('kube')
        function GetReplicas(obj)
          return obj.spec.replicas, kube.accuratePodRequirements(obj.spec.template)
        end
        function GetDependencies(obj)
          return kube.getPodDependencies(obj.spec.template, obj.metadata.namespace)
        end";
    let replicas = operations::replicas(source, &template).unwrap();
    assert_eq!(replicas.count, Some(3));
    let expected = json!({ "nodeClaim": { "nodeSelector": { "disk": "ssd" } },
        "resourceRequest": { "cpu": "100m" } });
    assert_eq!(replicas.requirements, Some(expected));
    let found = operations::dependencies(source, &template).unwrap();
    let found: Vec<_> = found
        .iter()
        .map(|one| format!("{}/{}/{}", one.kind, one.namespace, one.name))
        .collect();
    assert_eq!(found, ["ConfigMap/shop/settings", "Secret/shop/keys"]);
}
