//! The packages whose sources have tests of a name: `cargo xtask test NAME` builds these alone.

use std::fs;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result, ensure};
use serde_json::Value;

use crate::cargo;

/// Returns the packages that may have tests with one of these names in theirs. A name that a macro makes is found
/// by its parts: modules are files or are written down, so every part of it stands somewhere in the package.
///
/// # Errors
/// Fails if there is no such package.
pub(super) fn with_tests(names: &[String]) -> Result<Vec<String>> {
    let arguments = ["metadata", "--no-deps", "--format-version=1", "--locked"];
    let output = cargo::command(&arguments).output()?;
    ensure!(output.status.success(), "`cargo metadata` failed");
    let metadata: Value = serde_json::from_slice(&output.stdout)?;
    let mut found = Vec::new();
    for package in metadata["packages"].as_array().into_iter().flatten() {
        let manifest = package["manifest_path"].as_str().unwrap_or_default();
        let folder = Path::new(manifest).parent().context("no folder")?;
        let sources = sources(folder)?;
        if names.iter().any(|name| is_in(name, &sources)) {
            found.push(package["name"].as_str().unwrap_or_default().to_owned());
        }
    }
    ensure!(
        !found.is_empty(),
        "no test has `{}` in its name",
        names.join("` or `")
    );
    Ok(found)
}

/// One file of a package.
struct Source {
    /// Relative to the package's folder, with modules separated as in a test's name.
    path: String,
    text: String,
}

fn is_in(name: &str, sources: &[Source]) -> bool {
    name.split("::").all(|part| {
        sources
            .iter()
            .any(|source| source.path.contains(part) || source.text.contains(part))
    })
}

/// Reads the sources of a package, without those of packages in folders of its own.
fn sources(package: &Path) -> Result<Vec<Source>> {
    let mut folders: Vec<PathBuf> = ["src", "tests"].map(|name| package.join(name)).into();
    let mut sources = Vec::new();
    while let Some(folder) = folders.pop() {
        if !folder.is_dir() || folder.join("Cargo.toml").exists() {
            continue;
        }
        for entry in fs::read_dir(&folder)? {
            let path = entry?.path();
            if path.is_dir() {
                folders.push(path);
            } else if path.extension().is_some_and(|extension| extension == "rs") {
                let relative = path.strip_prefix(package)?.with_extension("");
                sources.push(Source {
                    path: relative.to_string_lossy().replace('/', "::"),
                    text: fs::read_to_string(&path)?,
                });
            }
        }
    }
    Ok(sources)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn find(name: &str) -> Result<Vec<String>> {
        with_tests(&[name.to_owned()])
    }

    /// A test is found by any part of its name.
    #[test]
    fn test_leads_to_package() {
        for name in ["test_leads_to", "packages::tests::test_leads_to_package"] {
            assert_eq!(find(name).unwrap(), ["xtask"], "{name}");
        }
    }

    /// One that nobody has is an error before anything is built.
    #[test]
    fn unknown_name_is_refused() {
        // Written in two parts, so that this file does not have it.
        let name = ["no_such", "_test_anywhere"].concat();
        let error = find(&name).unwrap_err().to_string();
        assert_eq!(error, format!("no test has `{name}` in its name"));
    }
}
