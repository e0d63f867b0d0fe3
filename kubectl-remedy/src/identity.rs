//! The name of the program.

/// The program's name: its user agent, and the field manager and label of its objects.
pub const NAME: &str = "kubectl-remedy";
