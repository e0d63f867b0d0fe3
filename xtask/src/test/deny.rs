//! Licences, sources and duplicate versions of dependencies, as `deny.toml` allows them.

use std::fs;
use std::path::PathBuf;
use std::process::Command;

use crate::cargo;
use anyhow::{Result, ensure};

/// The version of cargo-deny.
const VERSION: &str = "0.20.2";

/// The outcome of cargo-deny.
#[derive(Debug)]
pub(super) enum Dependencies {
    Allowed,
    /// Its output.
    Denied(String),
    /// It could not run.
    Unchecked(anyhow::Error),
}

/// Checks the dependencies.
pub(super) fn check() -> Dependencies {
    match run() {
        Ok(None) => Dependencies::Allowed,
        Ok(Some(output)) => Dependencies::Denied(output),
        Err(why) => Dependencies::Unchecked(why),
    }
}

fn run() -> Result<Option<String>> {
    let program = program()?;
    ensure!(program.is_file(), "cargo-deny could not be built");
    // It wants the sources of dependencies on every platform, and cargo has those of one.
    let fetched = cargo::command(&["fetch", "--locked", "--quiet"]).output()?;
    ensure!(
        fetched.status.success(),
        "cannot fetch all dependencies: {}",
        tools::last_lines(&String::from_utf8_lossy(&fetched.stderr), 3)
    );
    let arguments = ["--offline", "--locked", "check", "--deny=warnings"];
    let output = Command::new(program)
        .args(arguments)
        .args(["bans", "licenses", "sources"])
        .current_dir(tools::cargo::root())
        .output()?;
    let found = String::from_utf8_lossy(&output.stderr).into_owned();
    Ok((!output.status.success()).then_some(found))
}

/// Builds cargo-deny, once per user and version, beside the tools.
pub(super) fn build() -> Result<()> {
    if program()?.is_file() {
        return Ok(());
    }
    let folder = folder()?;
    fs::create_dir_all(&folder)?;
    eprintln!("building cargo-deny {VERSION} (about 4 min once)");
    let status = cargo::command(&["install", "cargo-deny", "--locked", "--debug"])
        .args(["--version", VERSION, "--root"])
        .arg(&folder)
        // In a folder of its own, which a built cargo-deny outlives.
        .env_remove("CARGO_TARGET_DIR")
        .status()?;
    ensure!(status.success(), "cannot install cargo-deny ({status})");
    Ok(())
}

fn program() -> Result<PathBuf> {
    Ok(folder()?.join("bin/cargo-deny"))
}

fn folder() -> Result<PathBuf> {
    Ok(tools::cache()?.join(format!("cargo-deny-{VERSION}")))
}
