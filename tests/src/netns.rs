//! A network, mount and process namespace for one test or command, with addresses and ports of its
//! own. No packet leaves the machine, and no process outlives the namespace.
//!
//! The process outside starts its own executable again inside (`unshare` of util-linux) and prints
//! its output. Inside, the executable is process 1 of its namespace: when it ends for any reason, the
//! kernel kills every process there. It ends itself when the process outside is gone, which it
//! learns from a pipe.

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
use tools::last_lines;
use tools::namespaces::{HELP, unshare};

pub use crate::inside::inside;
use crate::{inside::INSIDE, kubeconfig::write, scratch};

/// A file in that folder that exists once the namespace was entered.
const ENTERED: &str = "entered";

/// A file in that folder that exists once the body has returned without an error.
const DONE: &str = "done";

/// The limit of a body.
const TEST_LIMIT: Duration = Duration::from_mins(10);
/// The limit of a benchmark, which may be of ten thousand objects of a real API.
pub const COMMAND_LIMIT: Duration = Duration::from_hours(1);

/// Lines of each log in a failure.
const TAIL: usize = 30;

/// Returns the full name of the surrounding test function, as [`isolated`] needs it.
#[macro_export]
macro_rules! test_name {
    () => {{
        fn here() {}
        $crate::netns::name_of(&here)
    }};
}

/// Returns the path of the function around `here`, without its crate and without closures.
#[doc(hidden)]
pub fn name_of<F>(_here: &F) -> &'static str {
    let path = std::any::type_name::<F>();
    let path = path.strip_suffix("::here").unwrap_or(path);
    let (path, _closures) = path.split_once("::{{closure}}").unwrap_or((path, ""));
    path.split_once("::").map_or(path, |(_crate, name)| name)
}

/// Runs the body of the test `name` ([`test_name`]) in a namespace of its own, on a tokio runtime.
///
/// # Panics
/// The body fails, or namespaces cannot be created.
pub fn isolated(name: &str, body: impl AsyncFnOnce() -> Result<()>) {
    let result = if inside() {
        run(TEST_LIMIT, body)
    } else {
        let arguments = ["--exact", name, "--nocapture", "--include-ignored"];
        enter(&arguments.map(OsString::from), Show::Captured)
    };
    if let Err(error) = result {
        #[expect(clippy::panic, reason = "this is how a test fails")]
        {
            panic!("{error:#}");
        }
    }
}

/// Runs the body of a command in a namespace of its own, on a tokio runtime, for so long at most. The command is started
/// again inside with its own arguments.
pub fn isolated_command(limit: Duration, body: impl AsyncFnOnce() -> Result<()>) -> Result<()> {
    if inside() {
        run(limit, body)
    } else {
        let arguments: Vec<_> = env::args_os().skip(1).collect();
        enter(&arguments, Show::Directly)
    }
}

/// Adds an address to the namespace's loopback device, so that servers can listen on it.
pub fn add_address(address: IpAddr) -> Result<()> {
    ensure_inside()?;
    // Duplicate address detection (RFC 4862) would refuse listeners for a second.
    let (bits, options): (_, &[&str]) = match address {
        IpAddr::V4(_) => (32, &[]),
        IpAddr::V6(_) => (128, &["nodad"]),
    };
    let address = format!("{address}/{bits}");
    ip(&[&["address", "add", &address, "dev", "lo"], options].concat())
}

/// Removes an address that [`add_address`] added: then there is no route to it, or it is [prohibited](prohibit).
pub fn remove_address(address: IpAddr) -> Result<()> {
    ensure_inside()?;
    let bits = if address.is_ipv4() { 32 } else { 128 };
    ip(&[
        "address",
        "delete",
        &format!("{address}/{bits}"),
        "dev",
        "lo",
    ])
}

/// Prohibits packets to an address, as a firewall would, while it is not one that [`add_address`] added.
pub fn prohibit(address: IpAddr) -> Result<()> {
    ensure_inside()?;
    ip(&["route", "add", "prohibit", &address.to_string()])
}

/// Replaces `/etc/resolv.conf` in this namespace.
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

/// Protects the machine itself from a caller that is not isolated.
fn ensure_inside() -> Result<()> {
    ensure!(inside(), "this process is in no namespace of its own");
    Ok(())
}

/// The destination of the output of the process inside.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Show {
    /// `println!`, so that libtest prints it when the test fails.
    Captured,
    /// The stdout and stderr of this process.
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
    // The command holds the writing end of the pipe, and reading would never end.
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

/// Runs the body inside.
fn run(limit: Duration, body: impl AsyncFnOnce() -> Result<()>) -> Result<()> {
    let folder = PathBuf::from(env::var_os(INSIDE).unwrap_or_default());
    write(&folder, ENTERED, "")?;
    end_with_the_process_outside(folder.clone());
    ip(&["link", "set", "lo", "up"])?;
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .enable_all()
        .build()?;
    runtime.block_on(async {
        tokio::time::timeout(limit, body())
            .await
            .with_context(|| format!("not done after {} s", limit.as_secs()))?
    })?;
    write(&folder, DONE, "")?;
    Ok(())
}

/// Ends this process, and with it the namespace, when the process outside no longer holds the other end
/// of stdin. The folder has no other owner then.
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

/// Returns the end of every log in the folders of the parts.
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
