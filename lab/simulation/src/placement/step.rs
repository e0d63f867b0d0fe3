//! The changes of a sequence: to objects and members.

use super::programs::Role;
use crate::harness;

/// A step of a sequence.
pub type Step = harness::Step<Change, Role>;

/// A change by users and others. The last application has a placement in its namespace, the others have one of the whole hub.
#[derive(Clone, Debug, PartialEq, Eq)]
#[expect(missing_docs, reason = "the variants explain their fields")]
pub enum Change {
    /// A map of an application is created or changed, and its namespace is there.
    PutMap { app: u8, map: u8, value: u8 },
    /// A map is deleted.
    DeleteMap { app: u8, map: u8 },
    /// The namespace of an application is deleted, with all that is in it.
    DeleteNamespace { app: u8 },
    /// A placement is created, or changed as far as the API allows.
    PutPlacement { app: u8, shape: PlacementShape },
    /// A placement is deleted.
    DeletePlacement { app: u8 },
    /// A cluster joins the fleet, or is moved to another region.
    Join { cluster: u8, region: u8 },
    /// A cluster gets a taint or loses it.
    Taint { cluster: u8, is_tainted: bool },
    /// A cluster is to leave the fleet.
    Leave { cluster: u8 },
    /// Somebody in a member creates the namespace of the last application, or deletes it with all that is in it.
    MemberNamespace { cluster: u8, is_there: bool },
    /// Somebody in a member changes or deletes a map that was placed there.
    Drift {
        cluster: u8,
        app: u8,
        map: u8,
        deletes: bool,
    },
    /// Somebody deletes the binding of an application to a cluster.
    DeleteBinding { cluster: u8, app: u8 },
    /// Somebody deletes the Work of an application in a cluster.
    DeleteWork { cluster: u8, app: u8 },
    /// Somebody deletes every snapshot of the resources of a placement.
    DeleteSnapshots { app: u8 },
}

/// The spec of a placement.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PlacementShape {
    /// The clusters.
    pub policy: Policy,
    /// The region of the clusters, unless they are named.
    pub region: Option<u8>,
    /// Set if the taint is tolerated. The API keeps tolerations.
    pub tolerates: bool,
    /// The maps that go with the namespace.
    pub scope: Scope,
    /// How it is written in members.
    pub apply: Apply,
}

/// How objects are written in members.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Apply {
    /// As where nothing is said.
    ClientSide,
    /// Applied by the server, where the fields of others are taken from them.
    ServerSide,
    /// Not at all: differences are reported.
    ReportDiff,
}

/// The clusters of a placement.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Policy {
    /// Every cluster.
    All,
    /// Some by their names, as bits.
    Named(u8),
    /// Some number of them.
    Number {
        /// The number.
        clusters: u8,
        /// Set if no region may have two more than another.
        spreads: bool,
    },
}

/// The maps that are placed with a namespace.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Scope {
    /// All that is in it.
    Whole,
    /// Nothing.
    Alone,
    /// Its maps with a label.
    Labelled,
}
