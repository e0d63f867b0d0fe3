//! The sandbox as a process.

use std::{path::PathBuf, time::Duration};

use anyhow::Result;
use kube::Client;
use tempfile::TempDir;

use crate::{
    kubeconfig,
    process::Process,
    programs::{Binary, Profile, get, path},
    scratch,
};

/// The limit until three clusters have started.
const READY_WITHIN: Duration = Duration::from_mins(1);

/// The limit until its agents have ended and released their leases.
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
    /// Starts the sandbox with these flags and waits until it serves its page.
    pub async fn start(flags: &[&str]) -> Result<Self> {
        let folder = scratch::folder("sandbox")?;
        let mut command = tokio::process::Command::new(path(Binary::Sandbox, Profile::Debug)?);
        command.args(flags);
        let mut process = Process::start(Binary::Sandbox.name(), command, folder.path())?;
        let printed = process.until_written(READY_WITHIN, |output| {
            Some((value(output, "page: ")?, value(output, "kubeconfig: ")?))
        });
        let (page, kubeconfig) = printed.await?;
        Ok(Self {
            page,
            kubeconfig: kubeconfig.into(),
            process,
            _folder: folder,
        })
    }

    /// Returns a client of its Karmada API.
    pub async fn client(&self) -> Result<Client> {
        kubeconfig::client(&self.kubeconfig).await
    }

    /// Reads the metrics of one of its programs, whose addresses it logs with `--log-level info`.
    pub async fn metrics(&mut self, program: Binary) -> Result<String> {
        let (name, started) = (format!("name=\"{}\"", program.name()), "Started address=");
        let address = self.process.until_written(READY_WITHIN, |output| {
            let line = output
                .lines()
                .find(|line| line.contains(&name) && line.contains(started))?;
            let (_, address) = line.split_once(started)?;
            address.parse().ok()
        });
        get(address.await?, "/metrics").await
    }

    /// Ends it with SIGTERM and waits for that.
    pub async fn stop(self) -> Result<()> {
        self.process.stop(STOPPED_WITHIN).await.map(drop)
    }
}

/// Returns the value of a complete line that begins with `field`.
fn value(output: &str, field: &str) -> Option<String> {
    output
        .split_inclusive('\n')
        .find_map(|line| line.strip_suffix('\n')?.strip_prefix(field))
        .map(str::to_owned)
}
