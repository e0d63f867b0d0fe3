//! The result of a sync of a set.

use std::sync::Arc;
use std::time::Duration;

use objects::comparison::Compared;
use objects::ownership::ObservedObject;

use tokio::time::Instant;

use crate::error::MemberError;

/// The result of a sync.
#[derive(Debug)]
pub enum SyncResult {
    /// The lists of the cluster are not complete: again at the latest after this time.
    Later(Duration),
    /// Everything possible was done.
    Done {
        /// The result of each manifest, in their order.
        manifests: Vec<Synced>,
        /// True if neither the set nor its objects have changed since the start.
        untouched: bool,
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
    /// The fields of the manifest that the object lacks because the cluster does not know them, or refuses them, if any: a
    /// later sync finds out if it knows them by then.
    pub note: Option<String>,
    /// The result of a comparison; absent if there was none, or nothing has changed since.
    pub compared: Option<Arc<Compared>>,
    /// When the object is looked at again, if it was left as it is.
    pub left: Option<Again>,
    /// Who is the reason that it was left so, if somebody changes it back after each of our writes.
    pub contested: Option<Contested>,
}

/// A pause before the next write of an object that another client changes back each time.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Contested {
    /// The end of the pause.
    pub until: Instant,
    /// Set in the first pause: whoever is concerned is told once.
    pub is_news: bool,
    /// The field manager of the other, if it is news and that can be found out.
    pub manager: Option<String>,
}

/// The time at which an object that was left as it is will be looked at again.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Again {
    /// When it changes, which wakes the set.
    AtChange,
    /// After this time, if the program syncs the set then.
    After(Duration),
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

impl Synced {
    /// Creates the result of a manifest if its object is as it is to be, or was only observed.
    pub(crate) fn observed(object: ObservedObject) -> Self {
        Self {
            error: None,
            object,
            written: false,
            note: None,
            compared: None,
            left: None,
            contested: None,
        }
    }

    /// Creates the result of a manifest if its object is as it is to be, with the note on it.
    pub(crate) fn noted(object: ObservedObject, note: Option<String>) -> Self {
        Self {
            note,
            ..Self::observed(object)
        }
    }

    /// Creates the result of a manifest that could not be applied.
    pub(crate) fn failed(error: MemberError, object: ObservedObject) -> Self {
        Self {
            error: Some(error),
            ..Self::observed(object)
        }
    }

    /// Returns `true` if the list of another kind, or of this one, is news for the manifest.
    pub(crate) fn waits(&self) -> bool {
        match &self.error {
            Some(error) => matches!(error, MemberError::NotServed { .. }),
            None => self.object == ObservedObject::Unknown,
        }
    }
}
