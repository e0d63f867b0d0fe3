//! The silence of a cluster of mode Pull, whose programs renew a Lease.

use std::time::Duration;

use serde_json::Value;

use super::Report;

/// The validity of the Lease, as Karmada's agent has it.
pub const LEASE: Duration = Duration::from_secs(40);
/// The time from one renewal to the next.
pub const RENEWAL: Duration = Duration::from_secs(10);
/// The time in which a cluster that has said nothing yet must begin.
const START: Duration = Duration::from_mins(1);
const UNKNOWN: &str = "Unknown";

/// Returns the health of a cluster of which nothing has been heard for as long as this, and `None` while it may still
/// speak. `ready` is its condition `Ready`, or null.
pub(super) fn silence(ready: &Value, lasts: Duration) -> Option<Report> {
    if ready["status"] == UNKNOWN || lasts < patience(ready) {
        return None;
    }
    let (reason, message) = if ready.is_null() {
        (
            "ClusterStatusNeverUpdated",
            "Cluster status controller never posted cluster status.",
        )
    } else {
        (
            "ClusterStatusUnknown",
            "Cluster status controller stopped posting cluster status.",
        )
    };
    Some(Report {
        status: UNKNOWN,
        reason,
        message: message.to_owned(),
    })
}

/// Returns the time for which a cluster may be silent. `ready` is its condition `Ready`, or null.
pub fn patience(ready: &Value) -> Duration {
    if ready.is_null() { START } else { LEASE }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn reason(ready: &Value, seconds: u64) -> Option<(&'static str, &'static str)> {
        let silence = silence(ready, Duration::from_secs(seconds));
        silence.map(|report| (report.status, report.reason))
    }

    /// Case I100: a cluster that speaks no more is unknown once its Lease has run out, one that never spoke a while later.
    #[test]
    fn silent_cluster_is_unknown() {
        let posted = json!({ "type": "Ready", "status": "True" });
        assert_eq!(reason(&posted, 39), None);
        assert_eq!(reason(&posted, 40), Some((UNKNOWN, "ClusterStatusUnknown")));
        assert_eq!(reason(&Value::Null, 59), None);
        let never = Some((UNKNOWN, "ClusterStatusNeverUpdated"));
        assert_eq!(reason(&Value::Null, 60), never);
        assert_eq!(reason(&json!({ "status": "Unknown" }), 600), None);
    }
}
