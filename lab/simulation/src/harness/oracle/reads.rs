//! The messages that explain the writes of a world.

use serde_json::Value;

use super::target::Target;
use crate::harness::message::Role;

/// The kind of an answer to whoever wants no more than the metadata.
pub(super) const METADATA_ONLY: &str = "PartialObjectMetadata";

/// The messages from which a process decides about the objects of a collection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Sources {
    /// None that its writes are explained by.
    None,
    /// Lists and watches. Of answers it keeps the version only.
    Watches,
    /// Those, and the answers to its reads and writes of one object.
    Answers,
}

/// The programs of a world, by the messages that they read. By default none explains a write.
pub trait Reads: Role {
    /// Returns the messages with the objects of a collection by which writes are explained.
    fn sources(_: &Target) -> Sources {
        Sources::None
    }

    /// Returns `true` if the programs can read an object of a collection. Beside one that they cannot read, the last
    /// one that they could stays in use.
    fn is_readable(_: &Target, _: &Value) -> bool {
        true
    }
}
