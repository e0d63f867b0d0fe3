//! The images that charts and kustomizations pull.

use std::{collections::BTreeSet, fs};

use anyhow::{Context, Result};
use serde_json::{Value, json};
use tools::cargo;

use super::super::{
    rendering::{manifests, render},
    scenarios::ALL,
};

/// Where images are that nobody has built yet.
const NOWHERE: &str = "registry.invalid/karmada-rs/";

/// Returns the programs of which a release publishes images.
fn released() -> Result<BTreeSet<String>> {
    let path = cargo::root().join(".github/workflows/release.yml");
    let workflow = fs::read_to_string(path)?;
    let (_, list) = workflow
        .split_once("  IMAGES: >-\n")
        .context("the workflow has no list of images")?;
    Ok(list
        .lines()
        .map_while(|line| line.strip_prefix("    "))
        .flat_map(str::split_whitespace)
        .map(str::to_owned)
        .collect())
}

/// Nothing that a user installs waits for an image that no release has, and no image is published for nobody.
#[test]
fn release_publishes_every_image() {
    let released = released().unwrap();
    let mut pulled = BTreeSet::new();
    for scenario in ALL {
        let rendered = render(scenario.chart, scenario.namespace, scenario.values).unwrap();
        let rendered = rendered + &manifests(scenario.manifests).unwrap();
        let images = rendered.lines().filter_map(|line| {
            let line = line.trim_start().trim_start_matches("- ");
            line.strip_prefix("image: ")
        });
        for image in images {
            let name = image.trim_matches('"').strip_prefix(NOWHERE).unwrap();
            let name = name.split([':', '@']).next().unwrap();
            assert!(released.contains(name), "{name} of {:?}", scenario.values);
            pulled.insert(name.to_owned());
        }
    }
    assert_eq!(pulled, released);
}

/// Returns the specs of the pods in an object.
fn pods(object: &Value) -> Vec<&Value> {
    let is_pod = object.get("containers").is_some_and(Value::is_array);
    let within: Vec<&Value> = match object {
        Value::Array(items) => items.iter().flat_map(pods).collect(),
        Value::Object(fields) => fields.values().flat_map(pods).collect(),
        _ => Vec::new(),
    };
    is_pod.then_some(object).into_iter().chain(within).collect()
}

/// A registry wants a password: whatever pulls from it names the secret, jobs too.
#[test]
fn every_pod_names_pull_secret() {
    let mut found = 0;
    let run_pods = ALL.iter().filter(|one| one.chart != "karmada-rs-rights");
    for scenario in run_pods {
        let values = [scenario.values, &[r#"pullSecrets=["registry-example"]"#]].concat();
        let rendered = render(scenario.chart, scenario.namespace, &values).unwrap();
        let objects: Vec<Value> = serde_saphyr::from_multiple(&rendered).unwrap();
        for pod in objects.iter().flat_map(pods) {
            let secrets = &pod["imagePullSecrets"];
            assert_eq!(*secrets, json!([{ "name": "registry-example" }]), "{pod}");
            found += 1;
        }
    }
    assert!(found > 20, "{found}");
}
