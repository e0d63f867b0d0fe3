//! The real `kubectl`.

use std::{
    env,
    ffi::OsStr,
    fs::{self, Permissions},
    os::unix::fs::PermissionsExt,
    path::{Path, PathBuf},
    process::Stdio,
    time::Duration,
};

use anyhow::{Context, Result, ensure};
use tempfile::TempDir;
use tokio::{io::AsyncWriteExt, process::Command, time::timeout};
use tools::Tool;

use crate::{
    programs::{self, Binary, Profile},
    scratch,
};

/// The limit of a command.
const LIMIT: Duration = Duration::from_mins(2);

/// `kubectl` with a home of its own.
#[derive(Debug)]
pub struct Kubectl {
    program: PathBuf,
    home: TempDir,
    kubeconfig: PathBuf,
}

impl Kubectl {
    /// Uses the API of a kubeconfig. The program must have been [built](tools::build).
    pub fn new(kubeconfig: PathBuf) -> Result<Self> {
        Ok(Self {
            program: Tool::Kubectl.path()?,
            home: scratch::folder("kubectl")?,
            kubeconfig,
        })
    }

    /// Returns its home folder, where callers may keep files.
    pub fn home(&self) -> &Path {
        self.home.path()
    }

    /// Returns the command without starting it.
    fn command(&self, arguments: &[impl AsRef<OsStr>]) -> Command {
        let mut command = Command::new(&self.program);
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
        command
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
        let finished = finish(self.command(arguments), "").await?;
        finished.succeeded(&arguments.join(" "))
    }

    /// Runs a command that reads `input`, and returns its standard output.
    pub async fn feed(&self, line: &str, input: &str) -> Result<String> {
        let command = self.command(&line.split_whitespace().collect::<Vec<_>>());
        finish(command, input).await?.succeeded(line)
    }

    /// Runs `kubectl remedy` with these arguments and an input, whatever comes of it.
    pub async fn remedy(&self, arguments: &[&str], input: &str) -> Result<Finished> {
        let mut command = self.with_plugin()?;
        command.arg("remedy").args(arguments);
        finish(command, input).await
    }

    /// Returns the words that kubectl offers to the shell after `kubectl remedy` and these words, the last of which
    /// is incomplete.
    pub async fn complete_remedy(&self, words: &[&str]) -> Result<String> {
        let script = self.home().join("kubectl_complete-remedy");
        fs::write(
            &script,
            "#!/bin/sh\nexec kubectl-remedy __complete \"$@\"\n",
        )?;
        fs::set_permissions(&script, Permissions::from_mode(0o755))?;
        let mut command = self.with_plugin()?;
        command.args(["__complete", "remedy"]).args(words);
        finish(command, "").await?.succeeded("__complete remedy")
    }

    /// Returns a kubectl that finds our plugin, and its script of completion in the home folder.
    fn with_plugin(&self) -> Result<Command> {
        let plugin = programs::path(Binary::KubectlRemedy, Profile::Debug)?;
        let folder = plugin.parent().context("a program without a folder")?;
        let found = env::var_os("PATH").unwrap_or_default();
        let kubectl = self.program.parent().context("kubectl is in no folder")?;
        let own = [
            folder.to_owned(),
            self.home().to_owned(),
            kubectl.to_owned(),
        ];
        let path = env::join_paths(own.into_iter().chain(env::split_paths(&found)))?;
        let mut command = Command::new(&self.program);
        command
            .current_dir(self.home())
            .env("HOME", self.home())
            // kubectl takes no flags before the name of a plugin.
            .env("KUBECONFIG", &self.kubeconfig)
            .env("PATH", path)
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .kill_on_drop(true);
        Ok(command)
    }

    /// Runs a command that must fail, and returns its standard output and error.
    pub async fn fail(&self, line: &str, input: &str) -> Result<String> {
        let command = self.command(&line.split_whitespace().collect::<Vec<_>>());
        let Finished {
            code,
            stdout,
            stderr,
        } = finish(command, input).await?;
        ensure!(code != Some(0), "`kubectl {line}` did not fail: {stdout}");
        Ok(stdout + &stderr)
    }
}

/// A cell of a table of all namespaces: the object's namespace and name, the column, and the value.
pub type Cell<'a> = (&'a str, &'a str, &'a str, &'a str);

/// Checks that a table of all namespaces, as kubectl prints it, has these cells.
pub fn ensure_cells(printed: &str, cells: &[Cell<'_>]) -> Result<()> {
    for (namespace, name, column, value) in cells {
        let shown = cell(printed, namespace, name, column);
        ensure!(
            shown == Some(value),
            "{name}: {column} is {shown:?} in {printed}"
        );
    }
    Ok(())
}

/// Returns the value of an object in a column of such a table.
fn cell<'a>(printed: &'a str, namespace: &str, name: &str, column: &str) -> Option<&'a str> {
    let mut heading = "";
    for line in printed.lines() {
        if line.starts_with("NAMESPACE ") {
            heading = line;
        } else if line.split_whitespace().take(2).eq([namespace, name]) {
            let mut columns = heading.match_indices(column);
            let (start, _) = columns.find(|(start, _)| {
                let rest = &heading[start + column.len()..];
                heading[..*start].ends_with(' ') && (rest.is_empty() || rest.starts_with(' '))
            })?;
            let value = line.get(start..)?;
            return value.split(' ').next();
        }
    }
    None
}

/// The end of a command.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Finished {
    /// Its exit code.
    pub code: Option<i32>,
    /// Its standard output.
    pub stdout: String,
    /// Its standard error.
    pub stderr: String,
}

impl Finished {
    /// Returns the standard output of the command `line`.
    fn succeeded(self, line: &str) -> Result<String> {
        let Self {
            code,
            stdout,
            stderr,
        } = self;
        ensure!(code == Some(0), "`kubectl {line}` failed: {stderr}{stdout}");
        Ok(stdout)
    }
}

/// Runs a command with this input to its end.
async fn finish(mut command: Command, input: &str) -> Result<Finished> {
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
    Ok(Finished {
        code: output.status.code(),
        stdout: text(&output.stdout),
        stderr: text(&output.stderr),
    })
}
