//! `cargo xtask tools`: builds the real parts.

use anyhow::Result;
use pipeline_tests::tools::{self, Tool};

pub(crate) fn run() -> Result<()> {
    tools::build(&Tool::ALL)?;
    println!("{}", tools::folder()?.display());
    Ok(())
}
