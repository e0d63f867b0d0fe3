//! The name of the program.

/// The program's name: its user agent, and the field manager and label of what it writes.
pub const NAME: &str = "kubectl-remedy";
