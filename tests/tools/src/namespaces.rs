//! The network namespaces in which the tests of the pipeline run.

use std::process::{Command, Stdio};

use anyhow::{Context, Result, ensure};
use rustix::process::geteuid;

/// Advice for machines on which namespaces cannot be created.
pub const HELP: &str = "tests of the pipeline run in a network namespace of their own: install \
    util-linux and iproute2, and run as root or allow user namespaces (on Ubuntu: sysctl -w \
    kernel.apparmor_restrict_unprivileged_userns=0; in a container: --privileged)";

/// Returns the command that runs its arguments in new namespaces.
pub fn unshare() -> Command {
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

/// Checks that namespaces can be created. The error has advice.
pub fn available() -> Result<()> {
    let output = unshare()
        .args(["ip", "link", "set", "lo", "up"])
        .stdin(Stdio::null())
        .output()
        .context("cannot run `unshare`")
        .context(HELP)?;
    ensure!(
        output.status.success(),
        "{HELP}: {}",
        String::from_utf8_lossy(&output.stderr).trim()
    );
    Ok(())
}
