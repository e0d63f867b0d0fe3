//! Helm and kustomize, and the objects that they render.

use std::{
    collections::BTreeMap,
    fs,
    path::{Path, PathBuf},
    process::{Command, Output},
};

use anyhow::{Context, Result, bail, ensure};
use objects::difference::differences;
use serde_json::{Value, json};
use tools::{Tool, cargo};

/// Keeps an object when its chart is uninstalled, and says nothing to anybody but Helm.
const KEEP: &str = "helm.sh/resource-policy";

/// Returns the folder of a chart.
pub(super) fn chart(name: &str) -> PathBuf {
    cargo::root().join("manifests/helm").join(name)
}

/// Runs helm to its end, whatever comes of it.
pub(super) fn helm(arguments: &[&str], chart: &Path) -> Result<Output> {
    run(Tool::Helm, arguments, chart)
}

/// Runs one of the helms to its end, whatever comes of it.
pub(super) fn run(helm: Tool, arguments: &[&str], chart: &Path) -> Result<Output> {
    let mut command = Command::new(helm.path()?);
    // Nothing of the user's own helm.
    command.env("HELM_PLUGINS", "/nonexistent");
    let output = command.args(arguments).arg(chart).output();
    output.context("cannot run helm")
}

/// Returns the text that a chart renders in a namespace with these values, each as `NAME=VALUE`.
pub(super) fn render(name: &str, namespace: &str, values: &[&str]) -> Result<String> {
    render_by(Tool::Helm, name, namespace, values)
}

/// Returns the text that one of the helms renders so.
pub(super) fn render_by(
    helm: Tool,
    name: &str,
    namespace: &str,
    values: &[&str],
) -> Result<String> {
    let mut arguments = vec!["template", "--namespace", namespace];
    arguments.extend(values.iter().flat_map(|value| ["--set-json", *value]));
    let output = run(helm, &arguments, &chart(name))?;
    let errors = String::from_utf8_lossy(&output.stderr);
    ensure!(output.status.success(), "{name} {values:?}: {errors}");
    Ok(String::from_utf8(output.stdout)?)
}

/// Returns the text that a parent renders which has the chart as its only dependency, on a condition, and that has values for all charts.
/// Those of the chart are as [`render`] has them.
pub(super) fn render_dependency(name: &str, namespace: &str, values: &[String]) -> Result<String> {
    let folder = tempfile::tempdir()?;
    let charts = folder.path().join("charts");
    fs::create_dir(&charts)?;
    let mut copy = Command::new("cp");
    let copied = copy.arg("-r").arg(chart(name)).arg(&charts).status()?;
    ensure!(copied.success(), "cannot copy {name} ({copied})");
    let own = fs::read_to_string(chart(name).join("Chart.yaml"))?;
    let own: Value = serde_saphyr::from_str(&own)?;
    let condition = format!("{name}.enabled");
    let parent = json!({
        "apiVersion": "v2", "name": "platform", "version": "1.0.0",
        "dependencies": [{ "name": name, "version": own["version"], "condition": condition }],
    });
    fs::write(folder.path().join("Chart.yaml"), parent.to_string())?;
    let of_chart = values.iter().map(|value| format!("{name}.{value}"));
    let for_all = r#"global={"region":"north"}"#.to_owned();
    let values: Vec<String> = of_chart.chain([for_all]).collect();
    let mut arguments = vec!["template", "--namespace", namespace];
    arguments.extend(
        values
            .iter()
            .flat_map(|value| ["--set-json", value.as_str()]),
    );
    let output = helm(&arguments, folder.path())?;
    let errors = String::from_utf8_lossy(&output.stderr);
    ensure!(output.status.success(), "{name} {values:?}: {errors}");
    Ok(String::from_utf8(output.stdout)?)
}

/// Returns the objects of these manifests: of a kustomization, of a file, or of a folder of files. One may have components:
/// `BASE + COMPONENT + …`.
pub(super) fn manifests(sources: &[&str]) -> Result<String> {
    let mut text = String::new();
    for source in sources {
        text += "\n---\n";
        let path = cargo::root().join("manifests").join(source);
        if source.contains(" + ") {
            text += &with_components(source)?;
        } else if path.join("kustomization.yaml").is_file() {
            text += &kustomize(&path)?;
        } else if path.is_dir() {
            for entry in fs::read_dir(path)? {
                text += &fs::read_to_string(entry?.path())?;
                text += "\n---\n";
            }
        } else {
            text += &fs::read_to_string(&path).with_context(|| format!("reading {source}"))?;
        }
    }
    Ok(text)
}

fn with_components(source: &str) -> Result<String> {
    let folder = tempfile::tempdir()?;
    let copied = Command::new("cp")
        .arg("-r")
        .arg(cargo::root().join("manifests"))
        .arg(folder.path())
        .status()?;
    ensure!(copied.success(), "cannot copy the manifests ({copied})");
    let paths: Vec<_> = source
        .split(" + ")
        .map(|one| format!("../manifests/{one}"))
        .collect();
    let (base, components) = paths.split_first().context("no base")?;
    let overlay = serde_json::json!({ "resources": [base], "components": components });
    let own = folder.path().join("overlay");
    fs::create_dir(&own)?;
    fs::write(own.join("kustomization.yaml"), overlay.to_string())?;
    kustomize(&own)
}

fn kustomize(folder: &Path) -> Result<String> {
    let output = Command::new(Tool::Kubectl.path()?)
        .arg("kustomize")
        .arg(folder)
        .output()?;
    let errors = String::from_utf8_lossy(&output.stderr);
    ensure!(output.status.success(), "{}: {errors}", folder.display());
    Ok(String::from_utf8(output.stdout)?)
}

/// An object's kind, namespace and name.
type Key = (String, String, String);

/// Returns the objects of a text by their keys, without the additions of helm and kustomize.
fn by_key(text: &str) -> Result<BTreeMap<Key, Value>> {
    let read: Vec<Value> = serde_saphyr::from_multiple(text)?;
    let mut objects = BTreeMap::new();
    for mut object in read.into_iter().filter(|object| !object.is_null()) {
        if let Some(metadata) = object["metadata"].as_object_mut()
            && let Some(annotations) = metadata
                .get_mut("annotations")
                .and_then(Value::as_object_mut)
            && annotations.remove(KEEP).is_some()
            && annotations.is_empty()
        {
            metadata.remove("annotations");
        }
        fold(&mut object);
        let text = |path: &str| {
            object
                .pointer(path)
                .and_then(Value::as_str)
                .unwrap_or_default()
        };
        let key = (
            text("/kind"),
            text("/metadata/namespace"),
            text("/metadata/name"),
        );
        let key = (key.0.to_owned(), key.1.to_owned(), key.2.to_owned());
        if let Some(other) = objects.insert(key, object) {
            bail!("twice: {other}");
        }
    }
    Ok(objects)
}

/// Takes out blank lines: kustomize adds one after a line of a folded text that is followed by one further to the right.
fn fold(value: &mut Value) {
    match value {
        Value::String(text) => {
            while text.contains("\n\n") {
                *text = text.replace("\n\n", "\n");
            }
        }
        Value::Array(values) => values.iter_mut().for_each(fold),
        Value::Object(fields) => fields.values_mut().for_each(fold),
        _ => {}
    }
}

/// Returns a line for each difference between a rendered chart and the manifests, and the number of objects.
pub(super) fn compare(rendered: &str, manifests: &str) -> Result<(Vec<String>, usize)> {
    let rendered = by_key(rendered).context("what helm renders")?;
    let manifests = by_key(manifests).context("the manifests")?;
    let mut lines = Vec::new();
    for (key, object) in &rendered {
        let Some(manifest) = manifests.get(key) else {
            lines.push(format!("{key:?} is in the chart only"));
            continue;
        };
        for difference in differences(object, manifest, &Value::Null) {
            lines.push(format!("{key:?}: {difference:?}"));
        }
    }
    let absent = manifests.keys().filter(|key| !rendered.contains_key(*key));
    lines.extend(absent.map(|key| format!("{key:?} is not in the chart")));
    Ok((lines, rendered.len()))
}
