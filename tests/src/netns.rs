//! A network, mount and process namespace for one test or command: addresses and ports of its
//! own, nothing leaves the machine, and nothing it starts outlives it.
//!
//! The process outside starts its own executable again inside (`unshare` of util-linux) and shows
//! what that writes. Inside, the executable is process 1 of its namespace: when it ends, for
//! whatever reason, the kernel ends every process there. It ends itself when the process outside
//! is gone, which it learns from a pipe.

use std::{
    env,
    ffi::OsString,
    fmt::Write,
    fs,
    io::{self, BufRead, BufReader, Read},
    net::IpAddr,
    path::{Path, PathBuf},
    process::{Command, ExitStatus, Output, Stdio},
    thread,
    time::Duration,
};

use anyhow::{Context, Result, bail, ensure};
use rustix::process::geteuid;

use crate::{
    kubeconfig::write,
    scratch,
    tools::{self, Tool, last_lines},
};

/// Set inside, to the folder for all temporary files of that run.
const INSIDE: &str = "PIPELINE_TESTS_NAMESPACE";

/// File in that folder that says the namespace was entered.
const ENTERED: &str = "entered";

/// File in that folder that says the body has returned without an error.
const DONE: &str = "done";

/// A body that takes longer hangs.
const LIMIT: Duration = Duration::from_mins(10);

/// How many lines of each log a failure shows.
const TAIL: usize = 30;

/// What to do where namespaces cannot be made.
const HELP: &str = "tests of the pipeline run in a network namespace of their own: install \
    util-linux and iproute2, and run as root or allow user namespaces (on Ubuntu: sysctl -w \
    kernel.apparmor_restrict_unprivileged_userns=0; in a container: --privileged)";

/// The full name of the test function it is called in, as [`isolated`] needs it.
#[macro_export]
macro_rules! test_name {
    () => {{
        fn here() {}
        $crate::netns::name_of(&here)
    }};
}

/// The path, without its crate, of the function around `here`, closures in it aside.
#[doc(hidden)]
pub fn name_of<F>(_here: &F) -> &'static str {
    let path = std::any::type_name::<F>();
    let path = path.strip_suffix("::here").unwrap_or(path);
    let (path, _closures) = path.split_once("::{{closure}}").unwrap_or((path, ""));
    path.split_once("::").map_or(path, |(_crate, name)| name)
}

/// Runs the body of the test `name` ([`test_name`]) in a namespace of its own, on a tokio runtime,
/// with every tool built if it [needs](tools::NEEDED_BY) them.
///
/// libtest runs as many tests at once as there are cores; that is also the limit here.
///
/// # Panics
/// When the body fails, tools cannot be built, or namespaces cannot be made here.
pub fn isolated(name: &str, body: impl AsyncFnOnce() -> Result<()>) {
    let outside = || {
        if tools::NEEDED_BY.iter().any(|mark| name.contains(mark)) {
            tools::build(&Tool::ALL)?;
        }
        let arguments = ["--exact", name, "--nocapture", "--include-ignored"];
        enter(&arguments.map(OsString::from), Show::Captured)
    };
    let result = if inside() { run(body) } else { outside() };
    if let Err(error) = result {
        #[expect(clippy::panic, reason = "this is how a test fails")]
        {
            panic!("{error:#}");
        }
    }
}

/// Runs the body of a command in a namespace of its own, on a tokio runtime: starts the command
/// again inside with the arguments it has.
pub fn isolated_command(body: impl AsyncFnOnce() -> Result<()>) -> Result<()> {
    if inside() {
        run(body)
    } else {
        let arguments: Vec<_> = env::args_os().skip(1).collect();
        enter(&arguments, Show::Directly)
    }
}

/// Whether this process is the first one of a namespace that [`isolated`] or
/// [`isolated_command`] has made.
pub fn inside() -> bool {
    std::process::id() == 1 && env::var_os(INSIDE).is_some()
}

/// Whether namespaces can be made here; the error says how to get there.
pub fn available() -> Result<()> {
    let output = unshare()
        .args(["ip", "link", "set", "lo", "up"])
        .stdin(Stdio::null())
        .output();
    succeeded("unshare", output).context(HELP)
}

/// Gives the namespace's loopback device an address, so that servers can listen on it.
pub fn add_address(address: IpAddr) -> Result<()> {
    ensure_inside()?;
    // IPv6 would look for another owner first, and refuse listeners until then.
    let (bits, options): (_, &[&str]) = match address {
        IpAddr::V4(_) => (32, &[]),
        IpAddr::V6(_) => (128, &["nodad"]),
    };
    let address = format!("{address}/{bits}");
    ip(&[&["address", "add", &address, "dev", "lo"], options].concat())
}

/// Makes `text` the content of `/etc/resolv.conf`, in this namespace only.
pub fn mount_resolv_conf(text: &str) -> Result<()> {
    ensure_inside()?;
    let folder = scratch::folder("resolv")?;
    let file = write(folder.path(), "resolv.conf", text)?;
    let output = Command::new("mount")
        .arg("--bind")
        .arg(&file)
        .arg("/etc/resolv.conf")
        .output();
    succeeded("mount", output).context("cannot mount over /etc/resolv.conf")
}

/// These helpers must never change the machine itself.
fn ensure_inside() -> Result<()> {
    ensure!(inside(), "this process is in no namespace of its own");
    Ok(())
}

/// Where the output of the process inside goes.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Show {
    /// Through `println!`, so that libtest shows it when the test has failed.
    Captured,
    /// To this process's own stdout and stderr.
    Directly,
}

/// Runs this executable with `arguments` in new namespaces and waits for it.
fn enter(arguments: &[OsString], show: Show) -> Result<()> {
    let folder = tempfile::Builder::new().prefix("pipeline-").tempdir()?;
    let mut command = unshare();
    command
        .arg(env::current_exe()?)
        .args(arguments)
        .env(INSIDE, folder.path())
        .env("TMPDIR", folder.path());
    let (status, output) = wait_for(command, show)?;
    if !folder.path().join(ENTERED).exists() && !status.success() {
        bail!("{HELP}\n{}", output.join("\n"));
    }
    ensure!(
        status.success(),
        "it failed in its namespace ({status}), see above{}",
        log_tails(folder.path())?
    );
    ensure!(
        folder.path().join(DONE).exists(),
        "nothing ran in the namespace with the arguments {arguments:?}"
    );
    Ok(())
}

/// Runs a command to its end, with a pipe as stdin that stays open as long as this process lives.
fn wait_for(mut command: Command, show: Show) -> Result<(ExitStatus, Vec<String>)> {
    command.stdin(Stdio::piped());
    let mut output = Vec::new();
    let (mut child, reader) = if show == Show::Captured {
        let (reader, writer) = io::pipe()?;
        command.stdout(writer.try_clone()?).stderr(writer);
        (command.spawn().context(HELP)?, Some(reader))
    } else {
        (command.spawn().context(HELP)?, None)
    };
    // It holds the writing end of the pipe, without which reading would never end.
    drop(command);
    let _open = child.stdin.take();
    for line in reader
        .into_iter()
        .flat_map(|reader| BufReader::new(reader).lines())
    {
        let line = line?;
        #[expect(clippy::print_stdout, reason = "libtest captures it")]
        {
            println!("{line}");
        }
        output.push(line);
    }
    Ok((child.wait()?, output))
}

fn unshare() -> Command {
    let mut command = Command::new("unshare");
    command.args([
        "--net",
        "--mount",
        "--pid",
        "--mount-proc",
        "--fork",
        "--kill-child",
    ]);
    if !geteuid().is_root() {
        command.arg("--map-root-user");
    }
    command
}

/// The part inside.
fn run(body: impl AsyncFnOnce() -> Result<()>) -> Result<()> {
    let folder = PathBuf::from(env::var_os(INSIDE).unwrap_or_default());
    write(&folder, ENTERED, "")?;
    end_with_the_process_outside(folder.clone());
    ip(&["link", "set", "lo", "up"])?;
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .enable_all()
        .build()?;
    runtime.block_on(async {
        tokio::time::timeout(LIMIT, body())
            .await
            .with_context(|| format!("not done after {} s", LIMIT.as_secs()))?
    })?;
    write(&folder, DONE, "")?;
    Ok(())
}

/// Ends this process, and with it the namespace, when nobody holds the other end of stdin any
/// more; the folder is ours to remove then.
fn end_with_the_process_outside(folder: PathBuf) {
    thread::spawn(move || {
        drop(io::stdin().read_to_end(&mut Vec::new()));
        drop(fs::remove_dir_all(folder));
        #[expect(clippy::exit, reason = "process 1 takes the whole namespace with it")]
        std::process::exit(1);
    });
}

fn ip(arguments: &[&str]) -> Result<()> {
    let output = Command::new("ip").args(arguments).output();
    succeeded("ip", output).with_context(|| format!("`ip {}` failed", arguments.join(" ")))
}

fn succeeded(program: &str, output: io::Result<Output>) -> Result<()> {
    let output = output.with_context(|| format!("cannot run `{program}`"))?;
    ensure!(
        output.status.success(),
        "{}",
        String::from_utf8_lossy(&output.stderr).trim()
    );
    Ok(())
}

/// The end of every log in the folders of the parts.
fn log_tails(folder: &Path) -> Result<String> {
    let mut tails = String::new();
    for part in fs::read_dir(folder)? {
        let part = part?.path();
        if !part.is_dir() {
            continue;
        }
        for file in fs::read_dir(&part)? {
            let file = file?.path();
            if file.extension().is_some_and(|extension| extension == "log") {
                let text = String::from_utf8_lossy(&fs::read(&file)?).into_owned();
                let name = file.strip_prefix(folder).unwrap_or(&file).display();
                write!(tails, "\n--- {name}\n{}", last_lines(&text, TAIL))?;
            }
        }
    }
    Ok(tails)
}
