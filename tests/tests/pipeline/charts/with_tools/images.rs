//! What charts and kustomizations pull.

use std::{collections::BTreeSet, fs};

use anyhow::{Context, Result};
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
