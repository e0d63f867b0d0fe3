//! The health service that gRPC has in Go.

use std::{net::SocketAddr, time::Duration};

use anyhow::Result;
use rustix::process::Signal;
use tempfile::TempDir;
use tokio::{net::TcpStream, process::Command};
use tools::Tool;

use crate::{process::Process, scratch};

/// The limit until it listens, or has ended.
const LIMIT: Duration = Duration::from_mins(1);

/// A running server. Dropping it ends it.
#[derive(Debug)]
pub struct GrpcHealth {
    address: SocketAddr,
    process: Process,
    folder: TempDir,
}

impl GrpcHealth {
    /// Starts it on `address` with these services and their statuses, such as `shop=SERVING`, and waits until it listens. Its
    /// binary must have been [built](tools::build).
    pub async fn start(address: SocketAddr, services: &[&str]) -> Result<Self> {
        let folder = scratch::folder("grpc-health")?;
        let process = run(&folder, address, services).await?;
        Ok(Self {
            address,
            process,
            folder,
        })
    }

    /// Kills it, and starts it again with these services.
    pub async fn restart(&mut self, services: &[&str]) -> Result<()> {
        self.process.signal(Signal::KILL)?;
        self.process.ended(LIMIT).await?;
        self.process = run(&self.folder, self.address, services).await?;
        Ok(())
    }

    /// Stops it with SIGSTOP until it is [resumed](Self::resume).
    pub fn pause(&self) -> Result<()> {
        self.process.signal(Signal::STOP)
    }

    /// Resumes it with SIGCONT.
    pub fn resume(&self) -> Result<()> {
        self.process.signal(Signal::CONT)
    }
}

async fn run(folder: &TempDir, address: SocketAddr, services: &[&str]) -> Result<Process> {
    let mut command = Command::new(Tool::GrpcHealth.path()?);
    command.arg(address.to_string()).args(services);
    let mut process = Process::start("grpc-health", command, folder.path())?;
    process
        .ready(LIMIT, async || TcpStream::connect(address).await.is_ok())
        .await?;
    Ok(process)
}
