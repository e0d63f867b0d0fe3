//! The packages of a tree, and their sources.

use std::collections::BTreeSet;
use std::path::Path;
use std::{fs, io};

use anyhow::{Context, Result};

use crate::arrows::Arrows;
use crate::circles::{circles, way_round};
use crate::modules::{Modules, Sources, read};

/// The roots of a package's crates, and the folder of the programs that have one each.
const ROOTS: [&str; 2] = ["lib.rs", "main.rs"];
const PROGRAMS: &str = "bin";

/// The folders of a package's tests, and of its examples.
const TESTS: [&str; 2] = ["tests", "examples"];

/// A package.
#[derive(Debug)]
pub(crate) struct Package {
    /// Its folder in the tree.
    pub(crate) folder: String,
    pub(crate) sources: Sources,
    pub(crate) tests: Vec<Sources>,
    pub(crate) crates: Vec<Modules>,
}

/// A circle of files or modules, in a package.
#[derive(Debug)]
pub(crate) struct Circle {
    pub(crate) package: String,
    /// Their names.
    pub(crate) members: String,
    /// A shortest way round, with a name that each uses of the next.
    pub(crate) way: String,
}

impl Package {
    fn read(tree: &Path, folder: &Path) -> Result<Self> {
        let sources = sources(&folder.join("src"))?;
        let tests = TESTS.map(|name| self::sources(&folder.join(name)));
        let crates = roots(&sources).map(|root| read(&root, &sources));
        Ok(Self {
            folder: folder.strip_prefix(tree)?.display().to_string(),
            crates: crates.collect::<Result<_, _>>()?,
            tests: tests.into_iter().collect::<Result<_, _>>()?,
            sources,
        })
    }

    /// Returns the files of `src` without those of which only tests are built.
    pub(crate) fn product(&self) -> BTreeSet<&str> {
        let modules = self.crates.iter().flat_map(Modules::values);
        modules.map(|module| module.file.as_str()).collect()
    }

    /// Returns the circles of its crates.
    pub(crate) fn circles(&self, arrows: fn(&Modules) -> Arrows) -> Vec<Circle> {
        let mut found = Vec::new();
        for arrows in self.crates.iter().map(arrows) {
            found.extend(circles(&arrows).into_iter().map(|members| Circle {
                package: self.folder.clone(),
                members: members.join(" "),
                way: way_round(&arrows, &members),
            }));
        }
        found
    }
}

/// Returns all packages below the folder `tree`.
pub(crate) fn packages(tree: &Path) -> Result<Vec<Package>> {
    let mut packages = Vec::new();
    let mut folders = vec![tree.to_owned()];
    while let Some(folder) = folders.pop() {
        let entries = fs::read_dir(&folder);
        for entry in entries.with_context(|| format!("cannot read {}", folder.display()))? {
            let path = entry?.path();
            let name = path
                .file_name()
                .and_then(|name| name.to_str())
                .unwrap_or_default();
            if !path.is_dir() || name == "target" || name.starts_with('.') {
                continue;
            }
            if path.join("src").is_dir() && path.join("Cargo.toml").is_file() {
                let package = Package::read(tree, &path);
                packages.push(package.with_context(|| format!("cannot read {}", path.display()))?);
            }
            folders.push(path);
        }
    }
    packages.sort_by(|one, other| one.folder.cmp(&other.folder));
    Ok(packages)
}

/// Returns the text of each file of Rust below `folder`, by its path there.
fn sources(folder: &Path) -> io::Result<Sources> {
    let mut sources = Sources::new();
    let mut folders = vec![folder.to_owned()];
    while let Some(next) = folders.pop().filter(|next| next.is_dir()) {
        for entry in fs::read_dir(next)? {
            let path = entry?.path();
            if path.is_dir() {
                folders.push(path);
            } else if path.extension().is_some_and(|extension| extension == "rs") {
                let name = path.strip_prefix(folder).unwrap_or(&path).display();
                sources.insert(name.to_string(), fs::read_to_string(&path)?);
            }
        }
    }
    Ok(sources)
}

/// Iterates over the files with which a crate begins.
fn roots(sources: &Sources) -> impl Iterator<Item = String> {
    sources.keys().filter(|file| is_root(file)).cloned()
}

fn is_root(file: &str) -> bool {
    let program = file.strip_prefix(PROGRAMS);
    ROOTS.contains(&file) || program.is_some_and(|rest| rest.matches('/').count() == 1)
}
