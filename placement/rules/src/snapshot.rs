//! The snapshots of a placement, of its policy and of its selection, and those of overrides: as they were at one
//! moment.
//!
//! Nothing in a snapshot ever changes. A new content is a new group of snapshots with the next index, created part
//! by part and its master last; only a group that is whole can be the latest, so a crash between two writes leaves
//! one. The labels that say which is the latest are written for others and repaired; nothing here reads them.
//!
//! - `split`: the parts of a selection.
//! - `sequence`: the groups that exist, which is the latest, and which may go.
//! - `plan_resources`, `plan_policies`, `plan_overrides`: the writes that bring them up to date. `tidy_resources`: those that
//!   were left, where the selectors are not as they may be.

mod overrides;
mod policies;
mod resources;
mod sequence;
mod split;
#[cfg(test)]
mod tests;

pub use overrides::{is_snapshotted, latest_override, may_go, plan_end, plan_overrides};
pub use policies::{has_same_policy, latest_policy, plan_policies};
pub use resources::{
    has_lost_part, is_of_last, latest_resources, plan_resources, tidy_resources, whole_group,
};
