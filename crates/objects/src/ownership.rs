//! An object in a cluster, to an owner that has a manifest for it.

use std::collections::BTreeSet;

use serde_json::Value;

use crate::comparison::Comparison;
use crate::managed_fields::TakeOver;

/// The fate of a manifest, by the object that is found where it goes.
#[derive(Clone, Debug)]
pub struct Instruction {
    /// How the object is written.
    pub style: WriteStyle,
    /// Whether it may be; if none was found, whether one may that is there by the time of its creation.
    pub adopt: Adoption,
    /// When it is compared with the manifest. One that a comparison keeps from being written, or that is only compared, must
    /// be among those that the watches are sent.
    pub compare: Comparison,
    /// The part that it keeps of its cluster.
    pub retain: Retain,
    /// The wave of the manifest, whatever was found: it is applied once all of earlier waves have been tried, and together
    /// with those of its own.
    pub wave: usize,
}

/// The way to write an object.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum WriteStyle {
    /// Server-side apply: fields that others own stay, and a field that leaves the manifest goes.
    Apply,
    /// The same, but a field that another has set otherwise is not taken from it: that is an error.
    ApplyUnforced,
    /// Replacement, at the version that was read, by the manifest and the fields of the cluster: whatever else was there
    /// goes.
    Replace,
}

impl WriteStyle {
    /// Returns `true` if the write is a replacement, and not an application.
    pub fn replaces(self) -> bool {
        match self {
            Self::Apply | Self::ApplyUnforced => false,
            Self::Replace => true,
        }
    }

    /// Returns `true` if the write takes a field that another has set otherwise.
    pub fn is_forced(self) -> bool {
        match self {
            Self::Apply | Self::Replace => true,
            Self::ApplyUnforced => false,
        }
    }
}

/// The part that an object keeps of the fields that programs in its cluster have set.
#[derive(Clone, Debug, Default)]
pub struct Retain {
    /// True if another controller in the cluster sets the replicas.
    pub replicas: bool,
    /// The node ports of the manifest that a cluster which refuses them may have otherwise.
    pub node_ports: BTreeSet<u16>,
    /// Who else names fields that a replacement keeps.
    pub by: Retainer,
}

/// Who names the fields that the replacement of an object keeps.
#[derive(Clone, Copy, Debug, Default)]
pub enum Retainer {
    /// Nobody.
    #[default]
    Nobody,
    /// A rule, which edits the replacement of the object.
    Rule(fn(&mut Value, &Value)),
    /// A script or a webhook, which has this fingerprint.
    Interpreter(u64),
}

impl Retainer {
    /// Returns the fingerprint of the script or the webhook.
    pub fn fingerprint(self) -> Option<u64> {
        match self {
            Self::Nobody | Self::Rule(_) => None,
            Self::Interpreter(fingerprint) => Some(fingerprint),
        }
    }
}

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
    /// The cluster was not reached: the findings of before stand.
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
