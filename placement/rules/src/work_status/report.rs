//! The fates of the manifests of a Work.

use objects::comparison::Compared;
use serde_json::Value;

use crate::manifests::Failure;

/// A manifest of a Work, and its fate.
#[derive(Clone, Copy, Debug)]
pub struct ManifestReport<'a> {
    /// The manifest.
    pub manifest: &'a Value,
    /// The name of its kind in the paths of the member's API; empty if the member does not serve it.
    pub resource: &'a str,
    /// The outcome.
    pub result: ManifestResult<'a>,
}

/// The fate of a manifest.
#[derive(Clone, Copy, Debug)]
pub enum ManifestResult<'a> {
    /// It is about to be applied for the first time.
    Pending,
    /// Nothing new is known of it.
    Unknown,
    /// The member's object is as the manifest has it, as far as the member knows its fields: the note names
    /// the others.
    Applied {
        /// The object.
        object: &'a Value,
        /// The note.
        note: Option<&'a str>,
        /// The fields that it has besides, if that was looked at and the object has changed.
        compared: Option<&'a Compared>,
    },
    /// The member's object is not.
    Failed {
        /// The kind of failure.
        failure: Failure,
        /// Its text.
        message: &'a str,
        /// The object, if it was seen.
        object: Option<&'a Value>,
    },
    /// The member's object differs, and is to be written only if it does not.
    Differs(&'a Compared),
    /// The member's object was compared, and is not to be written.
    Reported(&'a Compared),
}

impl<'a> ManifestResult<'a> {
    /// Creates the result of a failure, with its text and the member's object, if that was seen.
    pub fn failed(failure: Failure, message: &'a str, object: Option<&'a Value>) -> Self {
        Self::Failed {
            failure,
            message,
            object,
        }
    }
}
