//! The findings of `list.sh` in an API.

use std::{
    env,
    fs::{self, Permissions},
    os::unix::fs::PermissionsExt,
    process::Command,
};

use serde_json::{Value, json};
use tools::cargo;

use crate::manifests::applied;

/// Answers in place of an API that has these objects.
const KUBECTL: &str = r#"#!/bin/sh
case "$*" in
*api-resources*) echo all ;;
*) cat objects ;;
esac
"#;

/// Who uninstalls by hand sees forgotten objects: whatever is applied at any place is listed while it is there.
#[test]
fn every_object_is_listed() {
    let objects = applied().into_iter();
    // Kinds and namespaces stay.
    let objects = objects.filter(|object| {
        let kind = object["kind"].as_str();
        kind.is_some_and(|kind| !["CustomResourceDefinition", "Namespace"].contains(&kind))
    });
    let objects: Vec<Value> = objects.collect();
    let folder = tempfile::tempdir().unwrap();
    let all = json!({ "items": objects }).to_string();
    fs::write(folder.path().join("objects"), all).unwrap();
    let kubectl = folder.path().join("kubectl");
    fs::write(&kubectl, KUBECTL).unwrap();
    fs::set_permissions(&kubectl, Permissions::from_mode(0o755)).unwrap();
    let path = format!("{}:{}", folder.path().display(), env::var("PATH").unwrap());
    let output = Command::new(cargo::root().join("manifests/list.sh"))
        .arg("any")
        .current_dir(folder.path())
        .env("PATH", path)
        .output()
        .unwrap();
    assert!(output.status.success(), "{output:?}");
    let listed = String::from_utf8(output.stdout).unwrap();
    for object in &objects {
        let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
        let metadata = &object["metadata"];
        let (namespace, name) = (text(&metadata["namespace"]), text(&metadata["name"]));
        let line = format!("{} {namespace}/{name}: ", text(&object["kind"]));
        let mut lines = listed.lines();
        assert!(lines.any(|listed| listed.starts_with(&line)), "{line}");
    }
    assert!(objects.len() > 100, "{}", objects.len());
}
