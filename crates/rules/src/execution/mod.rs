//! The manifests of a Work in its member cluster: what is applied, retained, repaired, deleted and reported.

mod apply;
mod deletion;
mod drift;
mod managed_fields;
mod retain;
mod status;
#[cfg(test)]
mod tests;

pub use apply::{APPLY_MANAGER, ApplyPlan, names_work, plan, reapply, replacement};
pub use deletion::{Deletion, deletion};
pub use drift::{Settled, contains};
pub use managed_fields::is_ours_alone;
pub use status::{Outcome, Seen, StatusPlan, status};
