//! The memory of a running process, as Linux accounts for it.

use std::fs;
use std::io;

/// Returns the resident memory of a process, in KiB.
///
/// # Errors
/// Fails once the process has ended, and where there is no procfs.
pub fn resident(pid: u32) -> io::Result<u64> {
    field(pid, "VmRSS:")
}

/// Returns the most memory that a process has had resident since it started, in KiB.
///
/// # Errors
/// See [`resident`].
pub fn peak(pid: u32) -> io::Result<u64> {
    field(pid, "VmHWM:")
}

/// Returns the resident memory of a process that no file backs, neither its binary nor another, in
/// KiB.
///
/// # Errors
/// Fails once the process has ended, and where there is no procfs.
pub fn anonymous(pid: u32) -> io::Result<u64> {
    field(pid, "RssAnon:")
}

/// Reads a line such as `VmRSS:      4096 kB` (`proc_pid_status(5)`).
fn field(pid: u32, name: &str) -> io::Result<u64> {
    let status = fs::read_to_string(format!("/proc/{pid}/status"))?;
    let line = status.lines().find_map(|line| line.strip_prefix(name));
    let size = line.and_then(|line| line.trim().strip_suffix(" kB")?.parse().ok());
    // A zombie's status has no memory lines.
    size.ok_or_else(|| io::Error::other(format!("no {name} in the status of process {pid}")))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_anonymous_memory_of_this_process_is_a_part_of_its_resident_memory() {
        let pid = std::process::id();
        let (anonymous, resident) = (anonymous(pid).unwrap(), resident(pid).unwrap());
        assert!(
            0 < anonymous && anonymous < resident,
            "{anonymous} of {resident}"
        );
        assert!(anonymous < peak(pid).unwrap());
    }

    #[test]
    fn a_process_that_does_not_exist_is_an_error() {
        // Linux gives out no process id above 2^22.
        assert!(resident(u32::MAX).is_err());
    }
}
