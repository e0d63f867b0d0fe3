//! Whether this process is inside a namespace of ours.

use std::env;

/// The variable that is set inside to the folder for all temporary files of that run.
pub(crate) const INSIDE: &str = "PIPELINE_TESTS_NAMESPACE";

/// Returns `true` if this process is the first one of a namespace that [`isolated`](crate::netns::isolated) or
/// [`isolated_command`](crate::netns::isolated_command) has created.
pub fn inside() -> bool {
    std::process::id() == 1 && env::var_os(INSIDE).is_some()
}
