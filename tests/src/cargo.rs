//! Cargo, as a program that cargo itself has started runs it.

use std::env;
use std::path::{Path, PathBuf};
use std::process::Command;

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
    package.parent().unwrap_or(package).to_owned()
}
