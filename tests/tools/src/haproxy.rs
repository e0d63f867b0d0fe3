//! The HAProxy on which its provider is tested.

use std::env;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result};

/// The folder of distributions, which is not on every user's path.
const FOLDER: &str = "/usr/sbin";

/// Returns the path of an HAProxy. The error explains how to get one.
///
/// # Errors
/// There is none on this machine.
pub fn executable() -> Result<PathBuf> {
    let folders = env::var_os("PATH").unwrap_or_default();
    env::split_paths(&folders)
        .chain([Path::new(FOLDER).to_owned()])
        .map(|folder| folder.join("haproxy"))
        .find(|path| path.is_file())
        .context("no HAProxy: install the package `haproxy`, 2.6 or newer")
}
