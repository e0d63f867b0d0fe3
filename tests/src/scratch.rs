//! Folders for the files of the real parts: certificates, data, logs.

use std::io;

use tempfile::{Builder, TempDir};

use crate::netns;

/// A folder that goes away with its owner. In a namespace it stays until the process outside has
/// read the logs in it and removes them all.
pub(crate) fn folder(name: &str) -> io::Result<TempDir> {
    Builder::new()
        .prefix(&format!("{name}-"))
        .disable_cleanup(netns::inside())
        .tempdir()
}
