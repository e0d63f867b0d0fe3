//! The digests that stand in names, annotations and revisions.

use data_encoding::HEXLOWER;
use ring::digest;

/// Returns the SHA-256 of `content` in lower-case hexadecimal digits.
#[must_use]
pub fn sha256(content: &[u8]) -> String {
    HEXLOWER.encode(digest::digest(&digest::SHA256, content).as_ref())
}
