//! The topics of our writes: a loop waits for those about the keys that it decides about, and for no others.

/// The writes for a cluster.
pub(crate) const MEMBERS: &str = "members";
/// The profile that was written of a cluster.
pub(crate) const PROFILES: &str = "profiles";
/// The snapshots that were written for a placement, when its policy or its selection changed, and the steps of its end.
pub(crate) const SNAPSHOTS: &str = "snapshots";
/// The snapshots that were written for an override.
pub(crate) const OVERRIDES: &str = "overrides";
/// The bindings that were written for a placement, the decisions about them, and the approvals that runs ask for.
pub(crate) const BINDINGS: &str = "bindings";
/// The writes for a binding: its Works, and its status about them.
pub(crate) const WORKS: &str = "works";
/// The status of a placement, and the copy of it.
pub(crate) const STATUSES: &str = "statuses";
/// The writes of a run itself.
pub(crate) const RUNS: &str = "runs";
