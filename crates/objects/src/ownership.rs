//! An object in a cluster, to an owner that has a manifest for it.

use serde_json::Value;

use crate::managed_fields::TakeOver;

/// The part that an owner may take of an object that exists.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Adoption {
    /// It is the owner's own.
    Owned,
    /// It is another's or nobody's, and the owner may take it over.
    Adopt {
        /// The fields that become the owner's.
        fields: TakeOver,
    },
    /// It must not be touched.
    Refuse {
        /// The reason, and the way out.
        reason: String,
    },
}

/// The write by which an owner that goes gives up an object.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Removal {
    /// There is nothing to give up.
    Nothing,
    /// Delete the object, in the background and only if it still has this uid.
    Delete {
        /// The uid.
        uid: String,
    },
    /// Keep the object and take the owner's marks off it: a merge patch (RFC 7396).
    Release {
        /// The body of the patch.
        patch: Value,
    },
}

/// The object of a manifest, as far as it is known.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ObservedObject {
    /// The object.
    Present(Value),
    /// The object, which has nothing to be applied though its owner is suspended.
    Settled(Value),
    /// There is none, or it is not the owner's.
    Absent,
    /// The cluster was not reached: what was known before stands.
    Unknown,
}

impl ObservedObject {
    /// Returns the object, if it was seen.
    pub fn seen(&self) -> Option<&Value> {
        match self {
            Self::Present(object) | Self::Settled(object) => Some(object),
            Self::Absent | Self::Unknown => None,
        }
    }
}
