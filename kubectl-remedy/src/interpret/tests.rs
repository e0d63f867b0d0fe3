//! The answers of interpreters about an object.

use std::fs;

use clap::Parser;
use serde_json::json;

use super::*;
use crate::args::{Args, Command};

const OBJECT: &str = "apiVersion: example.com/v1
kind: Shirt
metadata: {name: red}
spec: {replicas: 3}
status: {ready: true, seen: 2}
";

const SCRIPTS: &str = r#"apiVersion: config.karmada.io/v1alpha1
kind: ResourceInterpreterCustomization
metadata: {name: NAME}
spec:
  target: {apiVersion: example.com/v1, kind: Shirt}
  customizations:
    replicaResource:
      luaScript: function GetReplicas(obj) return obj.spec.replicas end
    healthInterpretation:
      luaScript: function InterpretHealth(obj) return obj.status.ready end
    dependencyInterpretation:
      luaScript: |
        function GetDependencies(obj)
          return {{apiVersion = "v1", kind = "Secret", namespace = "shop", name = "NAME"}}
        end
"#;

/// Writes the files, and returns the output of the command with these flags, as JSON, and its answer.
async fn interpret(files: &[(&str, &str)], flags: &[&str]) -> Result<(Value, Answer), Error> {
    let folder = tempfile::tempdir().unwrap();
    for (name, text) in files {
        fs::write(folder.path().join(name), text).unwrap();
    }
    let in_folder = flags.iter().map(|word| {
        if files.iter().any(|(name, _)| name == word) {
            folder.path().join(word).display().to_string()
        } else {
            (*word).to_owned()
        }
    });
    let words = ["kubectl-remedy", "interpret"].map(str::to_owned);
    let args = Args::try_parse_from(words.into_iter().chain(in_folder)).unwrap();
    let Command::Interpret(question) = &args.command else {
        panic!("another command");
    };
    let (statements, answer) = answers(question, &args.connection).await?;
    Ok((json!(statements), answer))
}

fn statement(interpreter: &str, decides: bool, replicas: i32) -> Value {
    json!({
        "operation": "InterpretReplica",
        "interpreter": interpreter,
        "decides": decides,
        "answer": { "replicas": replicas, "requirements": null },
    })
}

/// The first customization by name decides, and the others are shown, and the answer without them.
#[tokio::test]
async fn everybody_is_shown() {
    let second = SCRIPTS
        .replace("NAME", "b")
        .replace("obj.spec.replicas", "7");
    let first = SCRIPTS.replace("NAME", "a");
    let files = [("object", OBJECT), ("first", &first), ("second", &second)];
    let flags = [
        "-f",
        "object",
        "--customization",
        "second",
        "--customization",
        "first",
    ];
    let flags = [&flags[..], &["--operation", "InterpretReplica"]].concat();
    let (found, answer) = interpret(&files, &flags).await.unwrap();
    let wanted = json!([
        statement("customization a", true, 3),
        statement("customization b", false, 7),
        statement("built in", false, 0),
    ]);
    assert_eq!(found, wanted);
    assert_eq!(answer, Answer::Yes);
}

/// Without an operation everything is asked that needs no more than the object; dependencies of scripts are united.
#[tokio::test]
async fn operations_need_their_files() {
    let [first, second] = ["a", "b"].map(|name| SCRIPTS.replace("NAME", name));
    let files = [("object", OBJECT), ("first", &first), ("second", &second)];
    let flags = [
        "-f",
        "object",
        "--customization",
        "first",
        "--customization",
        "second",
    ];
    let (found, _) = interpret(&files, &flags).await.unwrap();
    let decided = found.as_array().unwrap().iter();
    let decided = decided.filter(|statement| statement["decides"] == true);
    let decided = decided.map(|statement| {
        let [operation, interpreter] =
            ["operation", "interpreter"].map(|field| statement[field].as_str().unwrap());
        format!("{operation}: {interpreter}")
    });
    let wanted = [
        "InterpretReplica: customization a",
        "InterpretComponent: built in",
        "InterpretStatus: built in",
        "InterpretHealth: customization a",
        "InterpretDependency: customization a",
        "InterpretDependency: customization b",
    ];
    assert_eq!(decided.collect::<Vec<_>>(), wanted);
    let refused = interpret(&files, &[&flags[..], &["--operation", "Retain"]].concat()).await;
    assert_eq!(refused.unwrap_err().to_string(), "Retain needs --observed");
}

/// A script that fails is bad news, with its error; a webhook behind a Service is not reached without a fleet.
#[tokio::test]
async fn failure_is_told() {
    let failing = SCRIPTS.replace("obj.status.ready", "obj.nothing.ready");
    let webhook = "apiVersion: config.karmada.io/v1alpha1
kind: ResourceInterpreterWebhookConfiguration
metadata: {name: hooks}
webhooks:
  - name: hooks.example.com
    rules: [{operations: ['*'], apiGroups: ['*'], apiVersions: ['*'], kinds: ['*']}]
    clientConfig: {service: {namespace: shop, name: hook}}
    interpreterContextVersions: [v1alpha1]
";
    let files = [("object", OBJECT), ("failing", &failing), ("hook", webhook)];
    let flags = [
        "-f",
        "object",
        "--customization",
        "failing",
        "--customization",
        "hook",
    ];
    let flags = [&flags[..], &["--operation", "InterpretHealth"]].concat();
    let (found, answer) = interpret(&files, &flags).await.unwrap();
    assert_eq!(answer, Answer::No);
    let error = |index: usize| found[index]["error"].as_str().unwrap().to_owned();
    assert!(error(0).contains("nothing"), "{found}");
    assert!(error(1).contains("no fleet is asked"), "{found}");
    assert_eq!(found[2]["answer"], "Healthy");
}

fn object(kind: &str, spec: &str) -> String {
    format!("apiVersion: {kind}\nmetadata: {{name: web, generation: 1}}\nspec: {{{spec}}}\n")
}

fn answer_to(found: &Value, operation: &str) -> Value {
    let mut all = found.as_array().unwrap().iter();
    let one = all.find(|statement| statement["operation"] == operation);
    one.unwrap()["answer"].clone()
}

/// Kubernetes' own kinds need no customization: replicas, copies and the status of a Deployment, and the address
/// that a Service keeps.
#[tokio::test]
async fn own_kinds_are_known() {
    let deployment = object("apps/v1\nkind: Deployment", "replicas: 2");
    let service = object("v1\nkind: Service", "ports: [{port: 80}]");
    let observed = object(
        "v1\nkind: Service",
        "clusterIP: 10.0.0.7, ports: [{port: 80}]",
    );
    let items = "- clusterName: a\n  status: {replicas: 2, readyReplicas: 1}\n";
    let files = [
        ("deployment", &*deployment),
        ("service", &service),
        ("observed", &observed),
        ("items", items),
        ("none", ""),
    ];
    let alone = ["--customization", "none", "-f"];
    let flags = ["deployment", "--items", "items", "--replicas", "4"];
    let (found, answer) = interpret(&files, &[&alone[..], &flags].concat())
        .await
        .unwrap();
    assert_eq!(answer, Answer::Yes);
    assert_eq!(answer_to(&found, "InterpretReplica")["replicas"], 2);
    assert_eq!(answer_to(&found, "ReviseReplica")["spec"]["replicas"], 4);
    assert_eq!(answer_to(&found, "AggregateStatus")["readyReplicas"], 1);
    let flags = ["service", "--observed", "observed"];
    let (found, _) = interpret(&files, &[&alone[..], &flags].concat())
        .await
        .unwrap();
    assert_eq!(answer_to(&found, "Retain")["spec"]["clusterIP"], "10.0.0.7");
}

/// The mistake in a file is said in a line.
#[tokio::test]
async fn bad_files_are_refused() {
    let files = [
        ("object", OBJECT),
        ("two", &format!("{OBJECT}---\n{OBJECT}")),
        ("kindless", "a: 1"),
    ];
    for (flags, problem) in [
        (vec!["-f", "two"], "it has 2 objects, and not one"),
        (
            vec!["-f", "kindless"],
            "the object has no apiVersion or kind",
        ),
        (
            vec!["-f", "object", "--customization", "object"],
            "a Shirt customizes no kind",
        ),
        (vec!["-f", "object", "--items", "object"], "it is no list"),
    ] {
        let error = interpret(&files, &flags).await.unwrap_err().to_string();
        assert!(error.contains(problem) && !error.contains('\n'), "{error}");
    }
}
