//! What has come of the sync of one manifest.

use std::sync::Arc;

use objects::comparison::Compared;
use serde_json::Value;

use crate::findings::Verdict;
use crate::result::Contested;

/// The result of a write, or of finding that there is nothing to write.
pub(crate) struct Written {
    /// The object.
    pub(crate) object: Option<Value>,
    /// True if it was written.
    pub(crate) is_new: bool,
    /// The note on its manifest.
    pub(crate) note: Option<String>,
    /// What a comparison has shown, if there was one.
    pub(crate) compared: Option<Arc<Compared>>,
}

/// What has become of an object that was to be written.
pub(crate) enum Outcome {
    /// It has what its manifest has.
    Written(Written),
    /// It was left as it is.
    Left(Verdict),
    /// It was left as it is until the end of a pause.
    Paused(Contested),
}

/// The step by which an object becomes as its manifest.
pub(crate) enum Need {
    /// Nothing.
    Nothing {
        /// The note about the manifest, if there is one.
        note: Option<String>,
    },
    /// A write.
    Write,
}
