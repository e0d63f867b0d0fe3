//! The limit of open files.

use anyhow::{Result, ensure};
use rustix::process::{Resource, getrlimit, setrlimit};

/// An agent's listener, the leader's connection to it, its own to both APIs, and a probe's sockets;
/// of the connections to the APIs, both ends are here.
const PER_NODE: u64 = 10;
const REST: u64 = 200;

/// Raises the limit of open files for this process and its children.
///
/// # Errors
/// The highest limit is not enough for so many nodes.
pub fn raise_open_files(nodes: u16) -> Result<()> {
    let needed = u64::from(nodes) * PER_NODE + REST;
    let mut limit = getrlimit(Resource::Nofile);
    if limit.current.is_some_and(|current| current < needed) {
        limit.current = limit.maximum;
        // The check below reports a failure.
        setrlimit(Resource::Nofile, limit).ok();
    }
    let allowed = getrlimit(Resource::Nofile).current.unwrap_or(u64::MAX);
    ensure!(
        allowed >= needed,
        "{nodes} nodes need {needed} open files, and only {allowed} are allowed: raise the limit (ulimit -n {needed}), or use fewer --nodes"
    );
    Ok(())
}
