//! Reporters that have fallen silent: whose lease nobody renews any more.
//!
//! A lease expires its duration after its last *observed* renewal, by our own clock. Its timestamps are never
//! compared with that, so the clocks of the members need not agree with ours.

use std::collections::{BTreeMap, BTreeSet};
use std::time::{Duration, Instant};

use jiff::Timestamp;
use karmada_api::condition::{FALSE, REPORTER_LEASE, REPORTER_READY, REPORTER_SILENT_REASON};
use objects::condition::{find, transition};
use objects::lease::Renewal;
use serde_json::{Value, json};

/// The leases of all reporters, as far as they have been observed.
#[derive(Clone, Debug)]
pub struct Reporters {
    grace: Duration,
    by_cluster: BTreeMap<String, Heartbeat>,
    /// During a list, the clusters whose lease it has not returned yet.
    unlisted: BTreeSet<String>,
}

#[derive(Clone, Debug)]
struct Heartbeat {
    renewal: Renewal,
    /// The moment at which this renewal was first observed.
    observed: Instant,
    /// The duration of the lease and the grace period.
    patience: Duration,
}

impl Reporters {
    /// Creates an empty set of reporters, each of which may be silent for `grace` longer than its lease.
    pub fn new(grace: Duration) -> Self {
        Self {
            grace,
            by_cluster: BTreeMap::new(),
            unlisted: BTreeSet::new(),
        }
    }

    /// Takes in the start of a list of all leases.
    pub fn list(&mut self) {
        self.unlisted = self.by_cluster.keys().cloned().collect();
    }

    /// Takes in the end of a list: leases that it did not return are gone.
    pub fn listed(&mut self) {
        for cluster in std::mem::take(&mut self.unlisted) {
            self.remove(&cluster);
        }
    }

    /// Takes in the lease of `cluster`, which is valid for `duration` unless it says otherwise.
    pub fn observe(&mut self, cluster: &str, renewal: Renewal, duration: Duration, now: Instant) {
        self.unlisted.remove(cluster);
        let known = self.by_cluster.get(cluster);
        // A list or read that shows the same one again is no sign of life, and neither is what others write.
        if known.is_some_and(|known| known.renewal == renewal) {
            return;
        }
        let duration = renewal.duration.unwrap_or(duration);
        let heartbeat = Heartbeat {
            renewal,
            observed: now,
            patience: duration.saturating_add(self.grace),
        };
        self.by_cluster.insert(cluster.to_owned(), heartbeat);
    }

    /// Forgets the reporter of `cluster`. A reporter whose lease was deleted has been removed, not lost.
    pub fn remove(&mut self, cluster: &str) {
        self.by_cluster.remove(cluster);
    }

    /// Returns the time for which the reporter of `cluster` may be silent, if it has been for longer. A
    /// cluster that never had a reporter has no silent one.
    pub fn silent(&self, cluster: &str, now: Instant) -> Option<Duration> {
        let heartbeat = self.by_cluster.get(cluster)?;
        let silent = heartbeat.deadline().is_some_and(|deadline| deadline <= now);
        silent.then_some(heartbeat.patience)
    }

    /// Iterates over the clusters whose reporter is silent.
    pub fn all_silent(&self, now: Instant) -> impl Iterator<Item = &String> {
        self.by_cluster
            .keys()
            .filter(move |cluster| self.silent(cluster, now).is_some())
    }

    /// Returns the moment at which to look again: no reporter becomes silent before.
    pub fn next_look(&self, now: Instant) -> Option<Instant> {
        let deadlines = self.by_cluster.values().filter_map(Heartbeat::deadline);
        // A reporter that appears only now has at least the grace period.
        deadlines
            .filter(|deadline| *deadline > now)
            .chain(now.checked_add(self.grace))
            .min()
    }
}

impl Heartbeat {
    fn deadline(&self) -> Option<Instant> {
        self.observed.checked_add(self.patience)
    }
}

/// Returns the condition that marks the reporter of `cluster` as silent for longer than `patience`, or
/// `None` if `conditions`, raw as the server stores them, have it already. `time` becomes its transition
/// time if its status changes.
pub fn reporter_silent(
    cluster: &str,
    conditions: &[Value],
    patience: Duration,
    time: Timestamp,
) -> Option<Value> {
    let current = find(conditions, REPORTER_READY);
    if current.is_some_and(|current| {
        current["status"] == FALSE && current["reason"] == REPORTER_SILENT_REASON
    }) {
        return None;
    }
    let namespace = karmada_api::execution_namespace(cluster);
    let seconds = patience.as_secs();
    Some(json!({
        "type": REPORTER_READY,
        "status": FALSE,
        "reason": REPORTER_SILENT_REASON,
        "message": format!("the lease {namespace}/{REPORTER_LEASE} has not been renewed for more than {seconds}s: no agent reports, and the verdict keeps its last value"),
        "lastTransitionTime": transition(current, FALSE, time),
    }))
}

#[cfg(test)]
mod tests {
    use k8s_openapi::apimachinery::pkg::apis::meta::v1::MicroTime;

    use super::*;

    const LEASE: Duration = Duration::from_secs(15);
    const GRACE: Duration = Duration::from_mins(1);

    fn renewal(second: i64) -> Renewal {
        Renewal {
            holder: Some("n1".to_owned()),
            renewed: Some(MicroTime(Timestamp::from_second(second).unwrap())),
            ..Renewal::default()
        }
    }

    fn reporters() -> (Reporters, Instant) {
        (Reporters::new(GRACE), Instant::now())
    }

    /// A reporter is silent a grace period after its lease has run out.
    #[test]
    fn silence_follows_grace_period() {
        let (mut reporters, start) = reporters();
        reporters.observe("m1", renewal(1), LEASE, start);
        let renewed = start + Duration::from_secs(40);
        reporters.observe("m1", renewal(2), LEASE, renewed);
        let limit = renewed + LEASE + GRACE;
        let almost = LEASE + GRACE.mul_f64(0.999);
        assert_eq!(reporters.silent("m1", renewed + almost), None);
        assert_eq!(reporters.silent("m1", limit), Some(LEASE + GRACE));
        assert_eq!(reporters.all_silent(limit).collect::<Vec<_>>(), ["m1"]);
        reporters.observe("m1", renewal(3), LEASE, limit);
        assert_eq!(reporters.silent("m1", limit), None);
    }

    /// Seeing the same renewal again is no sign of life.
    #[test]
    fn same_renewal_shows_no_life() {
        let (mut reporters, start) = reporters();
        reporters.observe("m1", renewal(1), LEASE, start);
        let limit = start + LEASE + GRACE;
        reporters.list();
        reporters.observe("m1", renewal(1), LEASE, limit);
        reporters.listed();
        assert!(reporters.silent("m1", limit).is_some());
    }

    /// A cluster without a lease has no silent reporter.
    #[test]
    fn no_lease_no_silence() {
        let (mut reporters, start) = reporters();
        let late = start + Duration::from_hours(1);
        assert_eq!(reporters.silent("m1", late), None);
        for cluster in ["m1", "m2"] {
            reporters.observe(cluster, renewal(1), LEASE, start);
        }
        reporters.remove("m1");
        reporters.list();
        reporters.listed();
        assert_eq!(reporters.all_silent(late).count(), 0);
    }

    /// The next look is when the first becomes silent and at most a grace period away.
    #[test]
    fn next_look_meets_first_silence() {
        let (mut reporters, start) = reporters();
        assert_eq!(reporters.next_look(start), Some(start + GRACE));
        reporters.observe("m1", renewal(1), LEASE, start);
        let later = start + Duration::from_secs(70);
        reporters.observe("m2", renewal(1), LEASE, later);
        assert_eq!(reporters.next_look(later), Some(start + LEASE + GRACE));
        let both = later + LEASE + GRACE;
        assert_eq!(reporters.next_look(both), Some(both + GRACE));
    }

    /// The condition is false with the time of its change and is made once.
    #[test]
    fn silence_condition_is_written_once() {
        let time: Timestamp = "2026-11-20T08:00:00.5Z".parse().unwrap();
        let patience = LEASE + GRACE;
        let silent = |conditions: &[Value]| reporter_silent("m1", conditions, patience, time);
        let other = json!({ "type": "Ready", "status": "True" });
        let made = silent(std::slice::from_ref(&other)).unwrap();
        assert_eq!(made["status"], FALSE);
        assert_eq!(made["reason"], REPORTER_SILENT_REASON);
        assert_eq!(made["lastTransitionTime"], "2026-11-20T08:00:00Z");
        assert_eq!(
            made["message"],
            "the lease karmada-es-m1/cluster-health-agent has not been renewed for more than 75s: no agent reports, and the verdict keeps its last value"
        );
        assert_eq!(silent(&[other, made]), None);
    }

    /// A condition that is false already keeps its transition time unless it is null.
    #[test]
    fn transition_time_is_kept() {
        let before = json!("2026-11-19T08:00:00Z");
        for (status, since, kept) in [
            ("False", before.clone(), true),
            ("False", Value::Null, false),
            ("True", before.clone(), false),
        ] {
            let current = json!({ "type": REPORTER_READY, "status": status,
                "reason": "Other", "lastTransitionTime": since });
            let time = Timestamp::UNIX_EPOCH;
            let made = reporter_silent("m1", &[current], GRACE, time).unwrap();
            assert_eq!(made["lastTransitionTime"] == before, kept, "{status}");
            assert!(made["lastTransitionTime"].is_string());
        }
    }
}
