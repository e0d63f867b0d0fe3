//! The events of plans about objects that other programs make, too.

/// What is wanted is there already: another program has made it, to which it is left.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LeftToOthers;
