//! Files of users, of which no more is read than is needed.

use std::fs::File;
use std::io::{self, Read};
use std::path::Path;

/// Reads a file, of which no more than tells that it has more than the `largest` number of bytes: a device has no end.
pub(super) fn read_up_to(path: &Path, largest: usize) -> io::Result<Vec<u8>> {
    let limit = u64::try_from(largest).unwrap_or(u64::MAX);
    let mut bytes = Vec::new();
    File::open(path)?
        .take(limit.saturating_add(1))
        .read_to_end(&mut bytes)?;
    Ok(bytes)
}
