//! The real `kubectl`, run against an API.

use std::{
    ffi::OsStr,
    path::{Path, PathBuf},
    process::Stdio,
    time::Duration,
};

use anyhow::{Context, Result, bail, ensure};
use tempfile::TempDir;
use tokio::{io::AsyncWriteExt, process::Command, time::timeout};

use crate::{
    scratch,
    tools::{self, Tool},
};

/// A command that takes longer hangs.
const LIMIT: Duration = Duration::from_mins(2);

/// `kubectl` with a home of its own.
#[derive(Debug)]
pub struct Kubectl {
    home: TempDir,
    kubeconfig: PathBuf,
}

impl Kubectl {
    /// For the API of a kubeconfig. Builds the program if it must.
    pub fn new(kubeconfig: PathBuf) -> Result<Self> {
        tools::build(&[Tool::Kubectl])?;
        let home = scratch::folder("kubectl")?;
        Ok(Self { home, kubeconfig })
    }

    /// Its home folder, for files of the caller's.
    pub fn home(&self) -> &Path {
        self.home.path()
    }

    /// The command, not started.
    pub fn command(&self, arguments: &[impl AsRef<OsStr>]) -> Result<Command> {
        let mut command = Command::new(Tool::Kubectl.path()?);
        command
            .arg("--kubeconfig")
            .arg(&self.kubeconfig)
            .args(arguments)
            .current_dir(self.home())
            .env("HOME", self.home())
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .kill_on_drop(true);
        Ok(command)
    }

    /// What a command prints on stdout. The words of `line` are separated by spaces.
    ///
    /// # Errors
    /// When it fails, with what it said.
    pub async fn run(&self, line: &str) -> Result<String> {
        self.run_args(&line.split_whitespace().collect::<Vec<_>>())
            .await
    }

    /// The same with arguments that may hold spaces.
    pub async fn run_args(&self, arguments: &[&str]) -> Result<String> {
        let (success, stdout, stderr) = finish(self.command(arguments)?, "").await?;
        ensure!(
            success,
            "`kubectl {}` failed: {stderr}{stdout}",
            arguments.join(" ")
        );
        Ok(stdout)
    }

    /// What a command prints on stdout when it reads `input`.
    pub async fn feed(&self, line: &str, input: &str) -> Result<String> {
        let command = self.command(&line.split_whitespace().collect::<Vec<_>>())?;
        let (success, stdout, stderr) = finish(command, input).await?;
        ensure!(success, "`kubectl {line}` failed: {stderr}{stdout}");
        Ok(stdout)
    }

    /// What a command that fails says on stdout and stderr.
    pub async fn fail(&self, line: &str, input: &str) -> Result<String> {
        let command = self.command(&line.split_whitespace().collect::<Vec<_>>())?;
        let (success, stdout, stderr) = finish(command, input).await?;
        if success {
            bail!("`kubectl {line}` did not fail: {stdout}");
        }
        Ok(stdout + &stderr)
    }
}

/// Whether a command succeeds, and what it prints.
async fn finish(mut command: Command, input: &str) -> Result<(bool, String, String)> {
    command.stdin(Stdio::piped());
    let mut child = command.spawn().context("cannot run kubectl")?;
    let mut stdin = child.stdin.take().context("kubectl has no stdin")?;
    let output = async {
        // It may end without reading what it is given.
        drop(stdin.write_all(input.as_bytes()).await);
        drop(stdin);
        child.wait_with_output().await
    };
    let output = timeout(LIMIT, output)
        .await
        .context("kubectl does not end")??;
    let text = |bytes| String::from_utf8_lossy(bytes).into_owned();
    Ok((
        output.status.success(),
        text(&output.stdout),
        text(&output.stderr),
    ))
}
