//! A child process with its output in a file. It is ended by its own pid and reaped, and an error of
//! its start has the end of its output.

use std::{
    fs::OpenOptions,
    path::{Path, PathBuf},
    process::{ExitStatus, Stdio},
    time::Duration,
};

use anyhow::{Context, Result, anyhow, bail};
use rustix::process::{Pid, Signal, kill_process};
use tokio::{
    process::{Child, Command},
    time::{Instant, sleep, timeout},
};
use tools::last_lines;

/// Lines of a log in an error.
const TAIL: usize = 20;

/// The interval between two looks at something that cannot be watched.
const POLL: Duration = Duration::from_millis(20);

/// A running program. Dropping it kills it at once; in a namespace of
/// [`netns`](crate::netns) it cannot outlive the test either way.
#[derive(Debug)]
pub struct Process {
    name: String,
    child: Child,
    log: PathBuf,
}

impl Process {
    /// Starts `command`, its stdout and stderr appended to `<folder>/<name>.log`.
    pub fn start(name: &str, mut command: Command, folder: &Path) -> Result<Self> {
        let log = folder.join(format!("{name}.log"));
        let output = OpenOptions::new()
            .create(true)
            .append(true)
            .open(&log)
            .with_context(|| format!("cannot create {}", log.display()))?;
        let child = command
            .stdin(Stdio::null())
            .stdout(output.try_clone()?)
            .stderr(output)
            // Ctrl-C signals the foreground process group; the parent decides when a child ends.
            .process_group(0)
            .kill_on_drop(true)
            .spawn()
            .with_context(|| {
                let program = command.as_std().get_program().display();
                format!("cannot start {name} ({program})")
            })?;
        Ok(Self {
            name: name.to_owned(),
            child,
            log,
        })
    }

    /// Returns its process id until it has been reaped.
    pub fn id(&self) -> Option<u32> {
        self.child.id()
    }

    /// Returns its output so far.
    pub fn output(&self) -> Result<String> {
        read(&self.log)
    }

    /// Waits until `ready` returns `true`.
    ///
    /// # Errors
    /// The end of the output of a process that ends before, or is not ready within `limit`.
    pub async fn ready(&mut self, limit: Duration, ready: impl AsyncFn() -> bool) -> Result<()> {
        self.until(limit, async || ready().await.then_some(()))
            .await
    }

    /// Waits until `find` returns a value for its output.
    ///
    /// # Errors
    /// See [`Self::ready`].
    pub async fn until_written<T>(
        &mut self,
        limit: Duration,
        find: impl Fn(&str) -> Option<T>,
    ) -> Result<T> {
        let log = self.log.clone();
        self.until(limit, async || find(&read(&log).ok()?)).await
    }

    async fn until<T>(&mut self, limit: Duration, look: impl AsyncFn() -> Option<T>) -> Result<T> {
        let looking = async {
            loop {
                if let Some(found) = look().await {
                    return found;
                }
                sleep(POLL).await;
            }
        };
        let problem = tokio::select! {
            biased;
            status = self.child.wait() => format!("ended before it was ready ({})", status?),
            found = timeout(limit, looking) => match found {
                Ok(found) => return Ok(found),
                Err(_) => format!("is not ready after {} s", limit.as_secs()),
            },
        };
        bail!(
            "{} {problem}; the end of its output:\n{}",
            self.name,
            self.tail()
        );
    }

    /// Waits until it ends by itself.
    pub async fn ended(&mut self, limit: Duration) -> Result<ExitStatus> {
        match timeout(limit, self.child.wait()).await {
            Ok(status) => Ok(status?),
            Err(_) => bail!(
                "{} still runs after {} s; the end of its output:\n{}",
                self.name,
                limit.as_secs(),
                self.tail()
            ),
        }
    }

    /// Waits until it ends although it should not, and returns an error about that.
    pub async fn failure(&mut self) -> anyhow::Error {
        match self.child.wait().await {
            Ok(status) => anyhow!(
                "{} ended ({status}); the end of its output:\n{}",
                self.name,
                self.tail()
            ),
            Err(error) => anyhow!(error).context(format!("cannot wait for {}", self.name)),
        }
    }

    /// Sends it a signal.
    pub fn signal(&self, signal: Signal) -> Result<()> {
        let pid = self
            .pid()
            .with_context(|| format!("{} has ended", self.name))?;
        kill_process(pid, signal).with_context(|| format!("cannot signal {}", self.name))
    }

    /// Sends SIGTERM and waits until it ends.
    ///
    /// # Errors
    /// It still runs after `limit`; it is killed then.
    pub async fn stop(mut self, limit: Duration) -> Result<ExitStatus> {
        if let Some(pid) = self.pid() {
            kill_process(pid, Signal::TERM)
                .with_context(|| format!("cannot send SIGTERM to {}", self.name))?;
        }
        self.ended(limit).await
    }

    /// Sends SIGKILL and waits until it ends.
    pub async fn kill(mut self) -> Result<()> {
        self.child
            .kill()
            .await
            .with_context(|| format!("cannot kill {}", self.name))
    }

    /// Returns the process to signal. The kernel does not reuse the id until the process is reaped.
    fn pid(&self) -> Option<Pid> {
        Pid::from_raw(i32::try_from(self.child.id()?).ok()?)
    }

    fn tail(&self) -> String {
        match self.output() {
            Ok(output) => last_lines(&output, TAIL),
            Err(error) => format!("({error:#})"),
        }
    }
}

impl Drop for Process {
    /// Kills and reaps it, which takes milliseconds.
    fn drop(&mut self) {
        if self.child.start_kill().is_err() {
            return;
        }
        let started = Instant::now();
        while matches!(self.child.try_wait(), Ok(None)) && started.elapsed().as_secs() < 5 {
            std::thread::sleep(Duration::from_millis(1));
        }
    }
}

fn read(log: &Path) -> Result<String> {
    let bytes = std::fs::read(log).with_context(|| format!("cannot read {}", log.display()))?;
    Ok(String::from_utf8_lossy(&bytes).into_owned())
}

#[cfg(test)]
mod tests {
    use std::{os::unix::process::ExitStatusExt, path::Path, time::Duration};

    use tokio::process::Command;

    use super::Process;

    const LIMIT: Duration = Duration::from_secs(20);

    fn shell(script: &str, folder: &Path) -> Process {
        let mut command = Command::new("sh");
        command.args(["-c", script]);
        Process::start("script", command, folder).unwrap()
    }

    /// A process that ends before it is ready shows the end of its output.
    #[tokio::test]
    async fn early_end_shows_output() {
        let folder = tempfile::tempdir().unwrap();
        let mut process = shell("echo no such flag >&2; exit 3", folder.path());
        let error = process.ready(LIMIT, async || false).await.unwrap_err();
        assert_eq!(
            error.to_string(),
            "script ended before it was ready (exit status: 3); the end of its output:\nno such flag"
        );
    }

    /// A stopped process can end in its own way.
    #[tokio::test]
    async fn sigterm_ends_in_order() {
        let folder = tempfile::tempdir().unwrap();
        let mut process = shell(
            "trap 'echo bye; exit 7' TERM; echo up; while :; do sleep 0.01; done",
            folder.path(),
        );
        let log = folder.path().join("script.log");
        process
            .ready(LIMIT, async || {
                std::fs::read_to_string(&log).unwrap().contains("up")
            })
            .await
            .unwrap();
        assert_eq!(process.stop(LIMIT).await.unwrap().code(), Some(7));
        assert_eq!(std::fs::read_to_string(&log).unwrap(), "up\nbye\n");
    }

    /// A process that ignores SIGTERM is killed, and reported.
    #[tokio::test]
    async fn ignored_sigterm_is_reported() {
        let folder = tempfile::tempdir().unwrap();
        let mut process = shell(
            "trap '' TERM; echo up; while :; do sleep 0.01; done",
            folder.path(),
        );
        let log = folder.path().join("script.log");
        process
            .ready(LIMIT, async || {
                std::fs::read_to_string(&log).unwrap().contains("up")
            })
            .await
            .unwrap();
        let id = process.id().unwrap();
        let error = process.stop(Duration::from_millis(50)).await.unwrap_err();
        assert!(
            error.to_string().starts_with("script still runs"),
            "{error}"
        );
        assert!(!Path::new(&format!("/proc/{id}")).exists());
    }

    /// A dropped process is killed and reaped.
    #[tokio::test]
    async fn dropped_process_is_reaped() {
        let folder = tempfile::tempdir().unwrap();
        let process = shell("exec sleep 1000", folder.path());
        let id = process.id().unwrap();
        drop(process);
        assert!(!Path::new(&format!("/proc/{id}")).exists());
    }

    /// The exit status of a process that ends by itself is seen.
    #[tokio::test]
    async fn own_end_has_a_status() {
        let folder = tempfile::tempdir().unwrap();
        let mut process = shell("kill -9 $$", folder.path());
        assert_eq!(process.ended(LIMIT).await.unwrap().signal(), Some(9));
    }
}
