//! The files of charts that are copies. Helm renders nothing from outside a chart, and Flux, which fetches charts
//! from Git, leaves out symbolic links.

use std::{
    fs,
    path::{Path, PathBuf},
};

use anyhow::{Context, Result};

use super::CHARTS;

/// The templates that all charts have, and the chart with the original.
const SHARED: &str = "templates/_objects.tpl";
const OWNER: &str = "karmada-rs";

/// Returns the copies for all charts. `generated` are files that are to be written, and may not be there yet.
pub(crate) fn copies(
    root: &Path,
    generated: &[(PathBuf, String)],
) -> Result<Vec<(PathBuf, String)>> {
    let manifests = root.join("manifests");
    let shared = manifests.join("helm").join(OWNER).join(SHARED);
    let shared = fs::read_to_string(&shared).context("reading what the charts share")?;
    let mut copies = Vec::new();
    for (name, sources) in CHARTS {
        let chart = manifests.join("helm").join(name);
        if name != OWNER {
            let text = format!(
                "{{{{- /* Copied by `cargo xtask generate` from manifests/helm/{OWNER}/{SHARED}. Do not edit. */ -}}}}\n{shared}"
            );
            copies.push((chart.join(SHARED), text));
        }
        for source in sources {
            for path in files(&manifests.join(source))? {
                let name = path.strip_prefix(&manifests)?;
                let now = generated.iter().find(|(file, _)| *file == path);
                let text = match now {
                    Some((_, text)) => text.clone(),
                    None => fs::read_to_string(&path)
                        .with_context(|| format!("reading {}", path.display()))?,
                };
                let text = format!(
                    "# Copied by `cargo xtask generate` from manifests/{}. Do not edit.\n{text}",
                    name.display()
                );
                copies.push((chart.join("files").join(name), text));
            }
        }
    }
    Ok(copies)
}

/// Returns the files of charts that are copies of nothing any more.
pub(crate) fn left_over(root: &Path, current: &[(PathBuf, String)]) -> Result<Vec<PathBuf>> {
    let mut left = Vec::new();
    for (chart, _) in CHARTS {
        let mut folders = vec![root.join("manifests/helm").join(chart).join("files")];
        while let Some(folder) = folders.pop() {
            for entry in fs::read_dir(&folder)? {
                let path = entry?.path();
                if path.is_dir() {
                    folders.push(path);
                } else if current.iter().all(|(file, _)| *file != path) {
                    left.push(path);
                }
            }
        }
    }
    Ok(left)
}

/// Returns the file, or the YAML files of the folder in their order.
fn files(path: &Path) -> Result<Vec<PathBuf>> {
    if path.is_file() {
        return Ok(vec![path.to_owned()]);
    }
    let entries = fs::read_dir(path).with_context(|| format!("reading {}", path.display()))?;
    let mut files = Vec::new();
    for entry in entries {
        let path = entry?.path();
        if path.extension().is_some_and(|end| end == "yaml") {
            files.push(path);
        }
    }
    files.sort();
    Ok(files)
}
