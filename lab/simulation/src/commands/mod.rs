//! The commands: one simulation with given seeds, or a search over all of them.

pub(crate) mod fuzz;
pub(crate) mod simulate;
