//! The events of plans about objects that other programs make, too.

/// Another program has made the wanted object already, and it is left to that.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LeftToOthers;
