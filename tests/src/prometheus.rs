//! A real Prometheus, which scrapes itself each second, as many jobs.

use std::{fmt::Write, fs, net::SocketAddr, time::Duration};

use anyhow::Result;
use rustix::process::Signal;
use tempfile::TempDir;
use tokio::process::Command;
use tools::Tool;

use crate::{process::Process, programs::get, scratch};

/// The limit until it has read its store, and answers.
const READY_WITHIN: Duration = Duration::from_mins(1);

/// A running Prometheus. Dropping it ends it.
#[derive(Debug)]
pub struct Prometheus {
    address: SocketAddr,
    process: Process,
    folder: TempDir,
}

impl Prometheus {
    /// Starts it on `address` with these jobs, and waits until it is ready. A query may take a second. Its binary must have
    /// been [built](tools::build).
    pub async fn start(address: SocketAddr, jobs: &[&str]) -> Result<Self> {
        let folder = scratch::folder("prometheus")?;
        configure(&folder, address, jobs)?;
        let process = run(&folder, address).await?;
        Ok(Self {
            address,
            process,
            folder,
        })
    }

    /// Has it read its configuration again, with these jobs.
    pub fn reload(&self, jobs: &[&str]) -> Result<()> {
        configure(&self.folder, self.address, jobs)?;
        self.process.signal(Signal::HUP)
    }

    /// Kills it, and starts it again with its store.
    pub async fn restart(&mut self) -> Result<()> {
        self.process.signal(Signal::KILL)?;
        self.process.ended(READY_WITHIN).await?;
        self.process = run(&self.folder, self.address).await?;
        Ok(())
    }

    /// Returns the response to an instant query of these letters, without parameters.
    pub async fn query(&self, query: &str) -> Result<String> {
        get(self.address, &format!("/api/v1/query?query={query}")).await
    }
}

fn configure(folder: &TempDir, address: SocketAddr, jobs: &[&str]) -> Result<()> {
    let mut text = String::from("global: {scrape_interval: 1s, scrape_timeout: 1s}\n");
    text.push_str("scrape_configs:\n");
    for job in jobs {
        let targets = format!(r#"[{{targets: ["{address}"]}}]"#);
        writeln!(text, "- {{job_name: {job}, static_configs: {targets}}}")?;
    }
    Ok(fs::write(folder.path().join("prometheus.yml"), text)?)
}

async fn run(folder: &TempDir, address: SocketAddr) -> Result<Process> {
    let mut command = Command::new(Tool::Prometheus.path()?);
    command
        .args(["--config.file=prometheus.yml", "--storage.tsdb.path=data"])
        .arg("--query.timeout=1s")
        .arg(format!("--web.listen-address={address}"))
        .current_dir(folder.path());
    let mut process = Process::start("prometheus", command, folder.path())?;
    let ready = async || get(address, "/-/ready").await.is_ok();
    process.ready(READY_WITHIN, ready).await?;
    Ok(process)
}
