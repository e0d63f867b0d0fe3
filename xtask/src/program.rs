//! The programs of the workspace that carry out commands.

use std::ffi::OsString;
use std::os::unix::process::CommandExt;
use std::process::Command;

use anyhow::{Context, Result};

use crate::cargo;

/// Builds a program in the profile of this one, and goes on as that program, which has its arguments, its
/// process ID and its signals.
pub(crate) fn become_it(
    name: &str,
    features: &[&str],
    command: &[&str],
    arguments: &[OsString],
) -> Result<()> {
    // With the whole workspace, dependencies have the same features as in a build of all tests, and
    // are not built twice.
    let mut build = vec!["build", "--workspace", "--locked", "--bin", name];
    build.extend(features);
    let profile = if cfg!(debug_assertions) {
        "debug"
    } else {
        build.push("--release");
        "release"
    };
    cargo::run(&build, &[])?;
    let path = tools::cargo::built(profile)?.join(name);
    let failed = Command::new(&path).args(command).args(arguments).exec();
    Err(failed).with_context(|| format!("cannot start {}", path.display()))
}
