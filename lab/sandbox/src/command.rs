//! Commands of `kubectl remedy` in this process. They print here as they would in a terminal.

use std::ffi::OsStr;
use std::path::Path;

use anyhow::{Error, Result, ensure};
use clap::Parser;
use kubectl_remedy::Args;
use tokio::runtime::Handle;
use tokio::task::spawn_blocking;

/// Runs a command on a cluster of the Karmada API.
///
/// # Errors
/// Fails with a message of one line for the reader.
pub(crate) async fn run(name: &str, cluster: &str, kubeconfig: &Path) -> Result<()> {
    let [program, flag] = [kubectl_remedy::NAME, "--kubeconfig"].map(OsStr::new);
    let words = [name, cluster].map(OsStr::new);
    let line = [program, words[0], words[1], flag, kubeconfig.as_os_str()];
    let args = Args::try_parse_from(line)?;
    let runtime = Handle::current();
    // A command is made for a thread of its own.
    let running = spawn_blocking(move || {
        let performed = runtime.block_on(kubectl_remedy::perform(args));
        performed.map_err(|error| error.to_string())
    });
    let is_done = running.await?.map_err(Error::msg)?;
    ensure!(is_done, "no {name} of {cluster}: the terminal says why");
    Ok(())
}
