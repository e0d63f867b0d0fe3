//! The number of files that the process may have open.

use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};

/// Raises the number of files that may be open to the limit of the system, as Go's runtime does for the programs of others.
/// Many containers begin with 1,024 for the sake of `select(2)`, and the members of a fleet may need more connections.
pub(crate) fn raise_limit() {
    let granted = getrlimit(Resource::Nofile).maximum;
    let raised = Rlimit {
        current: granted,
        maximum: granted,
    };
    if let Err(error) = setrlimit(Resource::Nofile, raised) {
        tracing::debug!(%error, "cannot raise the number of open files");
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Everything that the system grants may be used.
    #[test]
    fn granted_files_are_usable() {
        raise_limit();
        let limit = getrlimit(Resource::Nofile);
        assert_eq!(limit.current, limit.maximum);
    }
}
