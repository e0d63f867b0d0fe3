//! Karmada's scheduler.

use std::io::{Seek, Write};
use std::process::{Command, Stdio};

use anyhow::{Context, Result, ensure};
use serde::Deserialize;
use serde_json::Value;
use tools::Tool;

use super::case::Case;

/// The decision of Karmada's scheduler about a case.
#[derive(Clone, Debug, Deserialize)]
pub(super) struct Decided {
    pub(super) binding: Value,
    /// False if each decision changes the clusters again.
    pub(super) settles: bool,
}

/// Has Karmada's scheduler decide about each case. It must have been [built](tools::build) before.
///
/// # Errors
/// It fails, or does not decide.
pub(super) fn decide<'a>(cases: impl Iterator<Item = &'a Case>) -> Result<Vec<Decided>> {
    let mut input = tempfile::tempfile()?;
    let mut count = 0;
    for case in cases {
        writeln!(input, "{}", serde_json::to_string(case)?)?;
        count += 1;
    }
    input.rewind()?;
    let output = Command::new(Tool::KarmadaScheduler.path()?)
        .stdin(Stdio::from(input))
        .output()
        .context("cannot run Karmada's scheduler")?;
    ensure!(
        output.status.success(),
        "Karmada's scheduler failed:\n{}",
        String::from_utf8_lossy(&output.stderr)
    );
    let lines = serde_json::Deserializer::from_slice(&output.stdout).into_iter();
    let decided: Vec<Decided> = lines.collect::<Result<_, _>>()?;
    ensure!(
        decided.len() == count,
        "{} decisions about {count} cases",
        decided.len()
    );
    Ok(decided)
}
