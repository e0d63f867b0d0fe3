//! The objects that templates need beside them.

use serde_json::Value;

/// The objects that a template needs in its namespace before it starts.
#[derive(Debug, Default)]
pub(crate) struct Needs<'a> {
    /// The specs of its Pods, which refer to such objects.
    pub(crate) pods: Vec<&'a Value>,
    /// The kinds and names of other objects of the core group; one without a name counts as absent.
    pub(crate) objects: Vec<(&'static str, &'a str)>,
}
