//! The script of a customization.

use std::sync::Arc;

use super::Operation;

/// The script by which a customization answers one operation.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Script {
    /// The name of the customization.
    pub customization: String,
    /// Its uid and version.
    pub version: String,
    /// The operation.
    pub operation: Operation,
    /// The source, in Lua.
    pub source: Arc<str>,
}
