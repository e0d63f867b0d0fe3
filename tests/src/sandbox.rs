//! The sandbox, as `cargo run` starts it.

use std::{path::PathBuf, time::Duration};

use anyhow::Result;
use tempfile::TempDir;

use crate::{
    process::Process,
    programs::{Profile, Program, path},
    scratch,
};

/// It starts three clusters.
const READY_WITHIN: Duration = Duration::from_mins(1);

/// It ends its agents and gives their leases back.
const STOPPED_WITHIN: Duration = Duration::from_secs(25);

/// A running sandbox. Dropping it kills it.
#[derive(Debug)]
#[must_use = "it is killed when dropped"]
pub struct Sandbox {
    process: Process,
    /// The address of its page.
    pub page: String,
    /// A kubeconfig for its Karmada API.
    pub kubeconfig: PathBuf,
    _folder: TempDir,
}

impl Sandbox {
    /// Starts it with these flags and waits until its page is there.
    pub async fn start(flags: &[&str]) -> Result<Self> {
        let folder = scratch::folder("sandbox")?;
        let mut command = tokio::process::Command::new(path(Program::Sandbox, Profile::Debug)?);
        command.args(flags);
        let mut process = Process::start(Program::Sandbox.name(), command, folder.path())?;
        let told = process.until_written(READY_WITHIN, |output| {
            Some((said(output, "page: ")?, said(output, "kubeconfig: ")?))
        });
        let (page, kubeconfig) = told.await?;
        Ok(Self {
            page,
            kubeconfig: kubeconfig.into(),
            process,
            _folder: folder,
        })
    }

    /// Asks it to end and waits for that.
    pub async fn stop(self) -> Result<()> {
        self.process.stop(STOPPED_WITHIN).await.map(drop)
    }
}

/// The rest of the whole line that begins so.
fn said(output: &str, field: &str) -> Option<String> {
    output
        .split_inclusive('\n')
        .find_map(|line| line.strip_suffix('\n')?.strip_prefix(field))
        .map(str::to_owned)
}
