//! Folders for the files of the real parts: certificates, data, logs.

use std::io;

use tempfile::{Builder, TempDir};

use crate::inside::inside;

/// Creates a folder that is removed with its owner. In a namespace it stays, because the process
/// outside reads the logs in it before it removes them all.
pub(crate) fn folder(name: &str) -> io::Result<TempDir> {
    Builder::new()
        .prefix(&format!("{name}-"))
        .disable_cleanup(inside())
        .tempdir()
}
