//! The HAProxy on which its provider is tested.

use std::env;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result, ensure};

/// The folder of distributions, which is not on every user's path.
const FOLDER: &str = "/usr/sbin";

/// A running HAProxy, which has its configuration and its pid in a folder. Dropping it kills it.
#[derive(Debug)]
pub struct Haproxy {
    folder: PathBuf,
}

impl Haproxy {
    /// Starts one with this configuration, and returns once it listens.
    ///
    /// # Errors
    /// There is none on this machine, or it refuses the configuration.
    pub fn start(folder: &Path, configuration: &str) -> Result<Self> {
        let haproxy = Self {
            folder: folder.to_owned(),
        };
        fs::write(haproxy.path("haproxy.cfg"), configuration)?;
        haproxy.run(&[])?;
        Ok(haproxy)
    }

    /// Ends it as a crash does.
    ///
    /// # Errors
    /// It did not run.
    pub fn kill(&self) -> Result<()> {
        let pid = self.pid()?;
        let status = Command::new("kill").args(["-9", &pid]).status()?;
        ensure!(status.success(), "HAProxy {pid} does not run");
        Ok(())
    }

    /// Starts it again after [`Self::kill`], without its memory.
    ///
    /// # Errors
    /// It does not start.
    pub fn revive(&self) -> Result<()> {
        self.run(&[])
    }

    /// Has another process take its sockets over by its Runtime API at `socket`, as a reload does.
    ///
    /// # Errors
    /// It did not run, or the other one does not start.
    pub fn reload(&self, socket: &Path) -> Result<()> {
        let socket = socket.to_string_lossy();
        self.run(&["-x", &socket, "-sf", &self.pid()?])
    }

    /// Starts it. The command ends once it listens.
    fn run(&self, takeover: &[&str]) -> Result<()> {
        let mut command = Command::new(executable()?);
        command.arg("-D").arg("-f").arg(self.path("haproxy.cfg"));
        command.arg("-p").arg(self.path("pid")).args(takeover);
        let output = command.output()?;
        ensure!(
            output.status.success(),
            "HAProxy does not start: {output:?}"
        );
        Ok(())
    }

    fn pid(&self) -> Result<String> {
        let pid = fs::read_to_string(self.path("pid"))?;
        Ok(pid.trim().to_owned())
    }

    fn path(&self, name: &str) -> PathBuf {
        self.folder.join(name)
    }
}

impl Drop for Haproxy {
    fn drop(&mut self) {
        // One that did not start, or was killed, has nothing to end.
        self.kill().unwrap_or_default();
    }
}

/// Returns the path of an HAProxy. The error explains how to get one.
///
/// # Errors
/// There is none on this machine.
pub fn executable() -> Result<PathBuf> {
    let folders = env::var_os("PATH").unwrap_or_default();
    env::split_paths(&folders)
        .chain([Path::new(FOLDER).to_owned()])
        .map(|folder| folder.join("haproxy"))
        .find(|path| path.is_file())
        .context("no HAProxy: install the package `haproxy`, 2.6 or newer")
}
