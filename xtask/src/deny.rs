//! Licences, sources and duplicate versions of dependencies, as `deny.toml` allows them.

use std::process::Command;

use anyhow::{Result, ensure};

use crate::cargo;
use crate::installed::Installed;

const CARGO_DENY: Installed = Installed {
    name: "cargo-deny",
    version: "0.20.2",
    features: &[],
    minutes: "4 min",
};

/// The outcome of cargo-deny.
#[derive(Debug)]
pub(crate) enum Dependencies {
    Allowed,
    /// Its output.
    Denied(String),
}

/// Checks the dependencies.
///
/// # Errors
/// Fails if cargo-deny cannot run.
pub(crate) fn check() -> Result<Dependencies> {
    let program = CARGO_DENY.path()?;
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
    Ok(if output.status.success() {
        Dependencies::Allowed
    } else {
        Dependencies::Denied(String::from_utf8_lossy(&output.stderr).into_owned())
    })
}

/// Installs cargo-deny if it is missing.
pub(crate) fn install() -> Result<()> {
    CARGO_DENY.install()
}

/// Looks for known vulnerabilities of the dependencies. Unlike [`check`] it needs the net, where others write them down.
///
/// # Errors
/// Fails if there are any: cargo-deny has printed them.
pub(crate) fn advisories() -> Result<()> {
    install()?;
    let status = Command::new(CARGO_DENY.path()?)
        .args(["--locked", "check", "--deny=warnings", "advisories"])
        .current_dir(tools::cargo::root())
        .status()?;
    ensure!(status.success(), "`cargo deny` found advisories ({status})");
    Ok(())
}
