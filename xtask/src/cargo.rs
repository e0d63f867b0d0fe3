//! Runs cargo in this workspace.

use std::env;
use std::process::Command;

use anyhow::{Result, ensure};

/// Returns the cargo that runs this program, with these arguments, in the root of the workspace.
pub(crate) fn command(arguments: &[&str]) -> Command {
    let mut command = Command::new(env::var_os("CARGO").unwrap_or_else(|| "cargo".into()));
    command.args(arguments).current_dir(crate::root());
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
