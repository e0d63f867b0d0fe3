//! The columns of a kind, and the function that fills them.

use jiff::Timestamp;
use serde_json::Value;

/// The table of one kind.
pub(crate) struct Table {
    /// Name, type, priority.
    pub(crate) columns: &'static [(&'static str, &'static str, i64)],
    pub(crate) cells: fn(&Value, Timestamp) -> Vec<Value>,
}
