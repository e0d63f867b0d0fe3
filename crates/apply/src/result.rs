//! The result of a sync of a Work.

use std::time::Duration;

use karmada_api::Work;
use karmada_rules::execution::names_work;
use serde_json::Value;

use crate::error::MemberError;

/// The result of a sync.
#[derive(Debug)]
pub enum SyncResult {
    /// The lists of the member are not complete: again at the latest after this time.
    Later(Duration),
    /// Everything possible was done.
    Done {
        /// The result of each manifest, in their order.
        manifests: Vec<Synced>,
        /// True if neither the Work nor its objects have changed since the start.
        adopted: bool,
    },
}

/// The result of one manifest.
#[derive(Debug)]
pub struct Synced {
    /// The reason why the object is not as the manifest has it.
    pub error: Option<MemberError>,
    /// The object.
    pub object: ObservedObject,
    /// True if the sync wrote the object.
    pub written: bool,
}

impl Synced {
    /// Returns `true` if the list of another kind, or of this one, is news for the manifest.
    pub(crate) fn waits(&self) -> bool {
        match &self.error {
            Some(error) => matches!(error, MemberError::NotServed(_)),
            None => self.object == ObservedObject::Unknown,
        }
    }
}

/// An object of a Work in a member, as far as it is known.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ObservedObject {
    /// The object.
    Present(Value),
    /// The object, which has nothing to be applied though its Work is suspended.
    Settled(Value),
    /// There is none, or it is not the Work's.
    Absent,
    /// The member was not reached.
    Unknown,
}

impl ObservedObject {
    pub(crate) fn of(work: &Work, object: Option<Value>) -> Self {
        match object {
            Some(object) if names_work(&object, work) => Self::Present(object),
            _ => Self::Absent,
        }
    }
}
