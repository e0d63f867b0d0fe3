//! The browser in which the tests of the sandbox's page run.

use std::env;
use std::path::PathBuf;

use anyhow::{Context, Result};

/// The names under which distributions install it.
const NAMES: [&str; 5] = [
    "chromium",
    "chromium-browser",
    "google-chrome-stable",
    "google-chrome",
    "chrome",
];

/// Returns the path of a Chromium. The error explains how to get one.
pub fn executable() -> Result<PathBuf> {
    if let Some(path) = env::var_os("CHROME") {
        return Ok(path.into());
    }
    let folders = env::var_os("PATH").unwrap_or_default();
    env::split_paths(&folders)
        .flat_map(|folder| NAMES.map(|name| folder.join(name)))
        .find(|path| path.is_file())
        .context("no Chromium: install the package `chromium`, or set CHROME to its path")
}
