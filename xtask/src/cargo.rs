//! Runs cargo in this workspace.

use std::process::Command;

use anyhow::{Result, ensure};
use tools::cargo;

/// Returns cargo with these arguments.
pub(crate) fn command(arguments: &[&str]) -> Command {
    let mut command = cargo::command();
    command.args(arguments);
    command
}

/// Prints the command and runs it.
pub(crate) fn run(arguments: &[&str], variables: &[(&str, &str)]) -> Result<()> {
    eprintln!("cargo {}", arguments.join(" "));
    let status = command(arguments)
        .envs(variables.iter().copied())
        .status()?;
    ensure!(status.success(), "`cargo {}` failed", arguments.join(" "));
    Ok(())
}
