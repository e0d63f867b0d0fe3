//! What a step of a run writes beside the status of the run.

use fleet_api::ApprovalRequest;
use serde_json::Value;

use crate::rollout::RolloutWrite;

/// A write of a run.
#[derive(Clone, Debug, PartialEq)]
pub enum UpdateWrite {
    /// Of a binding.
    Binding(RolloutWrite),
    /// A person is asked for an approval.
    Ask(Box<ApprovalRequest>),
    /// An approval is taken up, and cannot be taken back.
    Accept {
        /// The name of the request.
        name: String,
        /// The merge patch of its status, guarded.
        patch: Value,
    },
    /// A request of an earlier run of this name is deleted: its approval is none of this one.
    Withdraw {
        /// The name.
        name: String,
        /// The uid that is deleted.
        uid: String,
    },
}
