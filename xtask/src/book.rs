//! The pages of `docs/` as a site: `book.toml` says how they look, and `docs/SUMMARY.md` their order.

use std::process::Command;

use anyhow::{Result, ensure};
use tools::cargo;

use crate::installed::Installed;

const MDBOOK: Installed = Installed {
    name: "mdbook",
    version: "0.5.4",
    // It neither serves nor watches.
    features: &["--no-default-features", "--features=search"],
    minutes: "3 min",
};

/// Builds the site, and prints the path of its first page.
pub(crate) fn build() -> Result<()> {
    MDBOOK.install()?;
    let status = Command::new(MDBOOK.path()?)
        .arg("build")
        .current_dir(cargo::root())
        .status()?;
    ensure!(status.success(), "mdbook cannot build docs/ ({status})");
    let first = cargo::root().join("target/book/index.html");
    println!("{}", first.display());
    Ok(())
}
