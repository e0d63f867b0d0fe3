//! Reporters that have fallen silent: nobody renews their leases any more.
//!
//! A lease expires its duration after its last *observed* renewal, by our own clock. Its timestamps are never
//! compared with that, so the clocks of the members need not agree with ours.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::time::{Duration, Instant};

use jiff::Timestamp;
use karmada_api::condition::{
    FALSE, GATEWAY_REPORTER_NAMESPACE, GATEWAY_REPORTER_READY, REPORTER_LEASE, REPORTER_READY,
    REPORTER_SILENT_REASON,
};
use objects::condition::{find, transition};
use objects::lease::Renewal;
use serde_json::{Value, json};

use crate::ClusterKind;

/// Whose agents elect a reporter.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum ReporterOf {
    /// Those of a member, who report on it.
    Member(String),
    /// Those on the nodes of gateways, who report on every member.
    Gateway,
}

impl ReporterOf {
    /// Returns the reporter of the lease in this namespace, where clusters are of this `kind`. No gateway reports on the members of
    /// a hub.
    pub fn of_namespace(kind: ClusterKind, namespace: &str) -> Option<Self> {
        if kind == ClusterKind::Cluster && namespace == GATEWAY_REPORTER_NAMESPACE {
            return Some(Self::Gateway);
        }
        let (of, member) = ClusterKind::of_namespace(namespace)?;
        (of == kind).then(|| Self::Member(member.to_owned()))
    }

    /// Returns the namespace of the lease, where clusters are of this `kind`.
    pub fn namespace(&self, kind: ClusterKind) -> String {
        match self {
            Self::Member(member) => kind.namespace(member),
            Self::Gateway => GATEWAY_REPORTER_NAMESPACE.to_owned(),
        }
    }

    /// Returns the type of the condition that tells whether the verdicts are fresh.
    pub fn freshness(&self) -> &'static str {
        match self {
            Self::Member(_) => REPORTER_READY,
            Self::Gateway => GATEWAY_REPORTER_READY,
        }
    }
}

impl fmt::Display for ReporterOf {
    /// Writes the name of the member. No member can be called as the gateway is.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Member(member) => f.write_str(member),
            Self::Gateway => f.write_str("(gateway)"),
        }
    }
}

/// The leases of all reporters, as far as they have been observed.
#[derive(Clone, Debug)]
pub struct Reporters {
    grace: Duration,
    heartbeats: BTreeMap<ReporterOf, Heartbeat>,
    /// During a list, those with a lease that it has not returned yet.
    unlisted: BTreeSet<ReporterOf>,
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
            heartbeats: BTreeMap::new(),
            unlisted: BTreeSet::new(),
        }
    }

    /// Takes in the start of a list of all leases.
    pub fn list(&mut self) {
        self.unlisted = self.heartbeats.keys().cloned().collect();
    }

    /// Takes in the end of a list: leases that it did not return are gone.
    pub fn listed(&mut self) {
        for reporter in std::mem::take(&mut self.unlisted) {
            self.remove(&reporter);
        }
    }

    /// Takes in the lease of `reporter`, which is valid for `duration` unless it says otherwise.
    pub fn observe(
        &mut self,
        reporter: &ReporterOf,
        renewal: Renewal,
        duration: Duration,
        now: Instant,
    ) {
        self.unlisted.remove(reporter);
        let known = self.heartbeats.get(reporter);
        // A list or read that shows the same one again is no sign of life, and neither is a write of others.
        if known.is_some_and(|known| known.renewal == renewal) {
            return;
        }
        let duration = renewal.duration.unwrap_or(duration);
        let heartbeat = Heartbeat {
            renewal,
            observed: now,
            patience: duration.saturating_add(self.grace),
        };
        self.heartbeats.insert(reporter.clone(), heartbeat);
    }

    /// Forgets `reporter`. One whose lease was deleted has been removed, not lost.
    pub fn remove(&mut self, reporter: &ReporterOf) {
        self.heartbeats.remove(reporter);
    }

    /// Returns the time for which `reporter` may be silent, if it has been for longer. One that never was is not silent.
    pub fn silent(&self, reporter: &ReporterOf, now: Instant) -> Option<Duration> {
        let heartbeat = self.heartbeats.get(reporter)?;
        let silent = heartbeat.deadline().is_some_and(|deadline| deadline <= now);
        silent.then_some(heartbeat.patience)
    }

    /// Iterates over those that are silent.
    pub fn all_silent(&self, now: Instant) -> impl Iterator<Item = &ReporterOf> {
        self.heartbeats
            .keys()
            .filter(move |reporter| self.silent(reporter, now).is_some())
    }

    /// Returns the moment at which to look again: no reporter becomes silent before.
    pub fn next_look(&self, now: Instant) -> Option<Instant> {
        let deadlines = self.heartbeats.values().filter_map(Heartbeat::deadline);
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

/// Returns the condition that marks `reporter`, with its lease in `namespace`, as silent for longer than `patience`, or
/// `None` if `conditions` of a cluster, raw as the server stores them, have it already. `time` becomes its transition
/// time if its status changes.
pub fn reporter_silent(
    reporter: &ReporterOf,
    namespace: &str,
    conditions: &[Value],
    patience: Duration,
    time: Timestamp,
) -> Option<Value> {
    let kind = reporter.freshness();
    let current = find(conditions, kind);
    if current.is_some_and(|current| {
        current["status"] == FALSE && current["reason"] == REPORTER_SILENT_REASON
    }) {
        return None;
    }
    let seconds = patience.as_secs();
    Some(json!({
        "type": kind,
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

    fn of(member: &str) -> ReporterOf {
        ReporterOf::Member(member.to_owned())
    }

    fn reporters() -> (Reporters, Instant) {
        (Reporters::new(GRACE), Instant::now())
    }

    /// A reporter is silent a grace period after its lease has run out.
    #[test]
    fn silence_follows_grace_period() {
        let (mut reporters, start) = reporters();
        reporters.observe(&of("m1"), renewal(1), LEASE, start);
        let renewed = start + Duration::from_secs(40);
        reporters.observe(&of("m1"), renewal(2), LEASE, renewed);
        let limit = renewed + LEASE + GRACE;
        let almost = LEASE + GRACE.mul_f64(0.999);
        assert_eq!(reporters.silent(&of("m1"), renewed + almost), None);
        assert_eq!(reporters.silent(&of("m1"), limit), Some(LEASE + GRACE));
        assert_eq!(reporters.all_silent(limit).collect::<Vec<_>>(), [&of("m1")]);
        reporters.observe(&of("m1"), renewal(3), LEASE, limit);
        assert_eq!(reporters.silent(&of("m1"), limit), None);
    }

    /// Seeing the same renewal again is no sign of life.
    #[test]
    fn same_renewal_shows_no_life() {
        let (mut reporters, start) = reporters();
        reporters.observe(&of("m1"), renewal(1), LEASE, start);
        let limit = start + LEASE + GRACE;
        reporters.list();
        reporters.observe(&of("m1"), renewal(1), LEASE, limit);
        reporters.listed();
        assert!(reporters.silent(&of("m1"), limit).is_some());
    }

    /// A cluster without a lease has no silent reporter.
    #[test]
    fn no_lease_no_silence() {
        let (mut reporters, start) = reporters();
        let late = start + Duration::from_hours(1);
        assert_eq!(reporters.silent(&of("m1"), late), None);
        for cluster in ["m1", "m2"] {
            reporters.observe(&of(cluster), renewal(1), LEASE, start);
        }
        reporters.remove(&of("m1"));
        reporters.list();
        reporters.listed();
        assert_eq!(reporters.all_silent(late).count(), 0);
    }

    /// The next look is when the first becomes silent and at most a grace period away.
    #[test]
    fn next_look_meets_first_silence() {
        let (mut reporters, start) = reporters();
        assert_eq!(reporters.next_look(start), Some(start + GRACE));
        reporters.observe(&of("m1"), renewal(1), LEASE, start);
        let later = start + Duration::from_secs(70);
        reporters.observe(&of("m2"), renewal(1), LEASE, later);
        assert_eq!(reporters.next_look(later), Some(start + LEASE + GRACE));
        let both = later + LEASE + GRACE;
        assert_eq!(reporters.next_look(both), Some(both + GRACE));
    }

    /// The condition is false with the time of its change and is made once.
    #[test]
    fn silence_condition_is_written_once() {
        let time: Timestamp = "2026-11-20T08:00:00.5Z".parse().unwrap();
        let patience = LEASE + GRACE;
        let mut found = vec![json!({ "type": "Ready", "status": "True" })];
        let made = reporter_silent(&of("m1"), "karmada-es-m1", &found, patience, time).unwrap();
        assert_eq!(made["status"], FALSE);
        assert_eq!(made["reason"], REPORTER_SILENT_REASON);
        assert_eq!(made["lastTransitionTime"], "2026-11-20T08:00:00Z");
        assert_eq!(
            made["message"],
            "the lease karmada-es-m1/cluster-health-agent has not been renewed for more than 75s: no agent reports, and the verdict keeps its last value"
        );
        found.push(made.clone());
        let again = reporter_silent(&of("m1"), "karmada-es-m1", &found, patience, time);
        assert_eq!(again, None);
        // The agents of a gateway have a lease and a condition of their own.
        let gateway = ReporterOf::Gateway;
        let gateway = reporter_silent(&gateway, "karmada-system", &[made], patience, time).unwrap();
        assert_eq!(gateway["type"], GATEWAY_REPORTER_READY);
    }

    /// A lease belongs to the reporter of its namespace.
    #[test]
    fn namespace_tells_whose_lease() {
        use ClusterKind::{Cluster, MemberCluster};
        for (kind, namespace, expected) in [
            (Cluster, "karmada-es-m1", Some(of("m1"))),
            (Cluster, "karmada-system", Some(ReporterOf::Gateway)),
            (Cluster, "default", None),
            (Cluster, "fleet-member-m1", None),
            (MemberCluster, "fleet-member-m1", Some(of("m1"))),
            (MemberCluster, "karmada-es-m1", None),
            (MemberCluster, "karmada-system", None),
        ] {
            assert_eq!(ReporterOf::of_namespace(kind, namespace), expected);
            let back = expected.map(|reporter| reporter.namespace(kind));
            assert!(back.is_none_or(|back| back == namespace));
        }
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
            let made = reporter_silent(&of("m1"), "n", &[current], GRACE, time).unwrap();
            assert_eq!(made["lastTransitionTime"] == before, kept, "{status}");
            assert!(made["lastTransitionTime"].is_string());
        }
    }
}
