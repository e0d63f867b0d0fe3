//! The real `kubectl`.

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

/// The limit of a command.
const LIMIT: Duration = Duration::from_mins(2);

/// `kubectl` with a home of its own.
#[derive(Debug)]
pub struct Kubectl {
    home: TempDir,
    kubeconfig: PathBuf,
}

impl Kubectl {
    /// Uses the API of a kubeconfig. Builds the program if necessary.
    pub fn new(kubeconfig: PathBuf) -> Result<Self> {
        tools::build(&[Tool::Kubectl])?;
        let home = scratch::folder("kubectl")?;
        Ok(Self { home, kubeconfig })
    }

    /// Returns its home folder, where callers may keep files.
    pub fn home(&self) -> &Path {
        self.home.path()
    }

    /// Returns the command without starting it.
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

    /// Runs a command and returns its standard output. Spaces separate the words of `line`.
    ///
    /// # Errors
    /// The output of a command that fails.
    pub async fn run(&self, line: &str) -> Result<String> {
        self.run_args(&line.split_whitespace().collect::<Vec<_>>())
            .await
    }

    /// Runs a command whose arguments may have spaces, and returns its standard output.
    pub async fn run_args(&self, arguments: &[&str]) -> Result<String> {
        let (success, stdout, stderr) = finish(self.command(arguments)?, "").await?;
        ensure!(
            success,
            "`kubectl {}` failed: {stderr}{stdout}",
            arguments.join(" ")
        );
        Ok(stdout)
    }

    /// Runs a command that reads `input`, and returns its standard output.
    pub async fn feed(&self, line: &str, input: &str) -> Result<String> {
        let command = self.command(&line.split_whitespace().collect::<Vec<_>>())?;
        let (success, stdout, stderr) = finish(command, input).await?;
        ensure!(success, "`kubectl {line}` failed: {stderr}{stdout}");
        Ok(stdout)
    }

    /// Runs a command that must fail, and returns its standard output and error.
    pub async fn fail(&self, line: &str, input: &str) -> Result<String> {
        let command = self.command(&line.split_whitespace().collect::<Vec<_>>())?;
        let (success, stdout, stderr) = finish(command, input).await?;
        if success {
            bail!("`kubectl {line}` did not fail: {stdout}");
        }
        Ok(stdout + &stderr)
    }
}

/// Runs a command, and returns its success, its standard output and its standard error.
async fn finish(mut command: Command, input: &str) -> Result<(bool, String, String)> {
    command.stdin(Stdio::piped());
    let mut child = command.spawn().context("cannot run kubectl")?;
    let mut stdin = child.stdin.take().context("kubectl has no stdin")?;
    let output = async {
        // A command may end without reading its input.
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
