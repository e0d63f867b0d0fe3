//! `cargo xtask generate`: writes the files that are made from the types.

use std::fs;
use std::path::PathBuf;

use anyhow::{Context, bail};
use serde_json::Value;

const HEADER: &str = "# Made by `cargo xtask generate` from the types in crates/api. Do not edit.\n";

/// Writes every generated file; with `check`, writes nothing and fails when one differs.
pub(crate) fn run(check: bool) -> anyhow::Result<()> {
    let mut stale = Vec::new();
    for (path, text) in files()? {
        if fs::read_to_string(&path).is_ok_and(|there| there == text) {
            continue;
        }
        if check {
            stale.push(path.display().to_string());
            continue;
        }
        if let Some(folder) = path.parent() {
            fs::create_dir_all(folder)?;
        }
        fs::write(&path, text).with_context(|| format!("writing {}", path.display()))?;
        eprintln!("wrote {}", path.display());
    }
    if !stale.is_empty() {
        bail!(
            "{} differ from the types: run `cargo xtask generate` and commit",
            stale.join(", ")
        );
    }
    Ok(())
}

fn files() -> anyhow::Result<Vec<(PathBuf, String)>> {
    let root = crate::root();
    let installed = karmada_api::crd::installed()?
        .into_iter()
        .map(|crd| ("manifests/crds", crd));
    let stand_ins = karmada_api::crd::stand_ins()?
        .into_iter()
        .map(|crd| ("tests/crds", crd));
    installed
        .chain(stand_ins)
        .map(|(folder, crd)| Ok((root.join(folder).join(file_name(&crd)?), yaml(&crd)?)))
        .collect()
}

fn file_name(crd: &Value) -> anyhow::Result<String> {
    let group = crd["spec"]["group"]
        .as_str()
        .context("a CRD without a group")?;
    let plural = crd["spec"]["names"]["plural"]
        .as_str()
        .context("a CRD without a plural")?;
    Ok(format!("{group}_{plural}.yaml"))
}

fn yaml(crd: &Value) -> anyhow::Result<String> {
    Ok(format!("{HEADER}{}", serde_saphyr::to_string(crd)?))
}
