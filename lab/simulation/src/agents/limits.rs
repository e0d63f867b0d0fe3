//! The limit of open files.

use anyhow::{Result, ensure};
use rustix::process::{Resource, getrlimit, setrlimit};

/// Open files per node: the agent's listener, the leader's connection to it, the sockets of a probe,
/// and both ends of the connections to the two APIs.
const PER_NODE: u64 = 10;
/// Open files of everything else in this process.
const REST: u64 = 200;

/// Raises the limit of open files for this process and its children to the need of `nodes` nodes.
///
/// # Errors
/// The hard limit is too low.
pub fn raise_open_files(nodes: u16) -> Result<()> {
    let needed = u64::from(nodes) * PER_NODE + REST;
    let mut limit = getrlimit(Resource::Nofile);
    if limit.current.is_some_and(|current| current < needed) {
        limit.current = limit.maximum;
        // The check below covers a failure.
        setrlimit(Resource::Nofile, limit).ok();
    }
    let allowed = getrlimit(Resource::Nofile).current.unwrap_or(u64::MAX);
    ensure!(
        allowed >= needed,
        "{nodes} nodes need {needed} open files, and only {allowed} are allowed: raise the limit (ulimit -n {needed}), or use fewer --nodes"
    );
    Ok(())
}
