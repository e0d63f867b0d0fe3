//! `cargo xtask tools`.

use anyhow::Result;
use pipeline_tests::tools::{self, Tool};

pub(crate) fn run() -> Result<()> {
    tools::build(&Tool::ALL)?;
    println!("{}", tools::folder()?.display());
    Ok(())
}
