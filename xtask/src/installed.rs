//! Programs that cargo installs from crates.io, once per user and version, beside the tools.

use std::fs;
use std::path::PathBuf;

use anyhow::{Result, ensure};

use crate::cargo;

/// A program of crates.io at one version.
#[derive(Debug)]
pub(crate) struct Installed {
    /// The name of its package and of its executable.
    pub(crate) name: &'static str,
    pub(crate) version: &'static str,
    /// Which of its features are built.
    pub(crate) features: &'static [&'static str],
    /// The approximate time of a build from nothing on two cores.
    pub(crate) minutes: &'static str,
}

impl Installed {
    /// Installs it if it is missing.
    pub(crate) fn install(&self) -> Result<()> {
        let Self { name, version, .. } = self;
        if self.path()?.is_file() {
            return Ok(());
        }
        let folder = self.folder()?;
        fs::create_dir_all(&folder)?;
        eprintln!("building {name} {version} (about {} once)", self.minutes);
        let status = cargo::command(&["install", name, "--locked", "--debug"])
            .args(self.features)
            .args(["--version", version, "--root"])
            .arg(&folder)
            // In a folder of its own, which the installed program outlives.
            .env_remove("CARGO_TARGET_DIR")
            .status()?;
        ensure!(status.success(), "cannot install {name} ({status})");
        Ok(())
    }

    /// Returns the path at which it is once it is installed.
    pub(crate) fn path(&self) -> Result<PathBuf> {
        Ok(self.folder()?.join("bin").join(self.name))
    }

    fn folder(&self) -> Result<PathBuf> {
        Ok(tools::cache()?.join(format!("{}-{}", self.name, self.version)))
    }
}
