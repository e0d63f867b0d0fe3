//! An object in a cluster, to an owner that has a manifest for it.

use serde_json::Value;

use crate::Metadata;
use crate::difference::Difference;
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

/// When an object is compared with its manifest.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Comparison {
    /// Never: it is written where it lacks something.
    Never,
    /// Before it is written: if they differ, it is not.
    First(Extent),
    /// Once it has what its manifest has: what it has besides is told.
    Afterwards,
    /// In place of a write.
    Only(Extent),
}

impl Comparison {
    /// Returns `true` if an object that has everything of its manifest is to be looked at, too.
    pub fn looks_beyond(self) -> bool {
        match self {
            Self::Never | Self::First(Extent::Manifest) => false,
            Self::First(Extent::Whole) | Self::Afterwards | Self::Only(_) => true,
        }
    }
}

/// The fields that are compared.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Extent {
    /// Those of the manifest.
    Manifest,
    /// Those of the object, too.
    Whole,
}

/// The versions of an object that are compared.
#[derive(Clone, Copy, Debug)]
pub struct Versions<'a> {
    /// The object as it is.
    pub found: &'a Value,
    /// As an application of its manifest would leave it.
    pub applied: &'a Value,
    /// As its cluster would keep it if it had nothing but the manifest; absent while that is not known.
    pub alone: Option<&'a Value>,
}

/// The result of a comparison.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Compared {
    /// The generation of the object, 0 for a kind that has none; absent if there is no object.
    pub generation: Option<i64>,
    /// True if the object is the owner's.
    pub is_owned: bool,
    /// What differs.
    pub differences: Vec<Difference>,
}

impl Compared {
    /// Creates the result about an object that is not the owner's, or its absence.
    pub fn of(object: Option<&Value>, differences: Vec<Difference>) -> Self {
        Self {
            generation: object.map(|object| object.generation().unwrap_or_default()),
            is_owned: false,
            differences,
        }
    }
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
