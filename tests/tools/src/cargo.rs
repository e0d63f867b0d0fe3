//! Cargo in this workspace, as a program runs it that cargo itself has started.

use std::env;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result, ensure};

/// The profile of the programs as clusters run them, and its folder.
pub const DIST: &str = "dist";

/// Set to anything by a caller that has built the programs for tests.
pub const PROGRAMS_BUILT: &str = "PIPELINE_TESTS_PROGRAMS_BUILT";

/// Returns the cargo that runs this program, in the root of the workspace.
pub fn command() -> Command {
    let mut command = Command::new(env::var_os("CARGO").unwrap_or_else(|| "cargo".into()));
    command.current_dir(root());
    // `cargo run` and `cargo test` describe the package that they start in these variables. A build
    // script that depends on them (ring's) would run again for each of its callers, and everything
    // above it would be built anew.
    for (name, _) in env::vars_os() {
        let text = name.to_string_lossy();
        if text.starts_with("CARGO_PKG_") || text.starts_with("CARGO_MANIFEST_") {
            command.env_remove(&name);
        }
    }
    command
}

/// Returns the root of the workspace.
pub fn root() -> PathBuf {
    let package = Path::new(env!("CARGO_MANIFEST_DIR"));
    package.ancestors().nth(2).unwrap_or(package).to_owned()
}

/// Builds these packages as clusters run them: without the rest of the workspace, with no features but
/// those they need.
pub fn build_dist(packages: &[&str]) -> Result<()> {
    let status = command()
        .args(["build", "--locked", "--profile", DIST])
        .args(packages.iter().flat_map(|package| ["--package", package]))
        .status()
        .context("cannot run cargo")?;
    ensure!(
        status.success(),
        "cannot build {} ({status})",
        packages.join(", ")
    );
    Ok(())
}

/// Returns the folder in which cargo puts the programs of a profile, in the target folder of this
/// executable.
pub fn built(profile_folder: &str) -> Result<PathBuf> {
    let own = env::current_exe()?;
    let target = own
        .ancestors()
        .find(|folder| folder.ends_with("debug") || folder.ends_with("release"))
        .and_then(Path::parent)
        .with_context(|| format!("{} is in no target folder of cargo", own.display()))?;
    Ok(target.join(profile_folder))
}
