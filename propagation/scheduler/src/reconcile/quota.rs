//! The refusals of a quota.

use jiff::Timestamp;
use karmada_runtime::write::WriteError;
use objects::message::bounded;
use propagation_rules::binding_ref::BindingRef;
use propagation_rules::schedule::StatusWrite;

/// Returns the status after `error` if a quota's admission webhook refused the clusters, and the status
/// does not show it yet.
pub(super) fn quota_exceeded(
    binding: BindingRef<'_>,
    error: &WriteError,
    at: Timestamp,
) -> Option<StatusWrite> {
    let WriteError::Api(kube::Error::Api(refusal)) = error else {
        return None;
    };
    // The reason is that of Karmada's webhook, the message that of a Kubernetes `ResourceQuota`.
    let is_of_quota =
        refusal.reason == "QuotaExceeded" || refusal.message.contains("exceeded quota");
    if refusal.code != 403 || !is_of_quota {
        return None;
    }
    let refused = StatusWrite::Failed {
        reason: "QuotaExceeded",
        message: bounded(refusal.message.clone()),
        at,
    };
    (!refused.is_shown(binding)).then_some(refused)
}
