//! The election as a state machine: from the known lease and the time to the next action.

use std::time::Duration;

use objects::lease::Renewal;
use tokio::time::Instant;

/// The renewal interval of a held lease. A third of its duration leaves room for two failed attempts
/// (client-go renews every 2 s; with an agent in every cluster that is too much traffic).
pub(super) const RENEW_EVERY: Duration = Duration::from_secs(5);
/// The shortest delay before a failed request is retried (client-go's `RetryPeriod`).
pub(super) const RETRY_EVERY: Duration = Duration::from_secs(2);
/// The time between the end of leadership and the moment others may take the lease. It covers a write
/// that is on its way; client-go has its `RenewDeadline` for the same purpose.
pub(super) const MARGIN: Duration = Duration::from_secs(1);

/// The relevant part of a `Lease` object.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Record {
    pub(super) resource_version: String,
    pub(super) renewal: Renewal,
}

/// The lease as it was observed last.
#[derive(Debug)]
struct Observed {
    record: Record,
    /// The moment at which its holder was first seen to have renewed it so.
    renewed: Instant,
}

/// The next action of a replica.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Action {
    /// Wait until this instant or the next observation.
    Wait(Option<Instant>),
    /// Read the lease.
    Read,
    /// Create the lease, held by this replica.
    Create,
    /// Take the lease, which is free or has expired.
    Take(Record),
    /// Renew the lease.
    Renew(Record),
}

#[derive(Debug)]
pub(super) struct Election {
    identity: String,
    duration: Duration,
    /// `None` if the lease is absent or was never observed.
    last: Option<Observed>,
    /// Set while `last` may be acted on; otherwise the lease has to be read first.
    is_known: bool,
    /// The start of the last write that acquired or renewed the lease; `None` once another holds it.
    /// Counted from its start, because the API server stored it at some time after that.
    renewed: Option<Instant>,
    not_before: Option<Instant>,
    /// Set if a write met a changed lease since the last successful one.
    conflicted: bool,
}

impl Election {
    pub(super) fn new(identity: String, duration: Duration) -> Self {
        Self {
            identity,
            duration,
            last: None,
            is_known: false,
            renewed: None,
            not_before: None,
            conflicted: false,
        }
    }

    /// Returns the identity recorded as the holder.
    pub(super) fn holder(&self) -> &str {
        &self.identity
    }

    /// Returns the end of this replica's leadership, which may be in the past.
    pub(super) fn held_until(&self) -> Option<Instant> {
        Some(self.renewed? + self.duration.saturating_sub(MARGIN))
    }

    /// Takes in a state of the lease that a watch showed; `None` if it is absent.
    pub(super) fn watched(&mut self, now: Instant, seen: Option<Record>) {
        // A watch may lag behind the leader's own writes and reads, so it cannot end leadership. If it
        // shows another holder or no lease, a read decides: after a deletion another may lead already.
        if !self.leads(now) {
            self.read(now, seen);
        } else if !seen.is_some_and(|seen| self.is_ours(&seen)) {
            self.is_known = false;
        }
    }

    /// Takes in a state of the lease that was just read; `None` if it is absent.
    pub(super) fn read(&mut self, now: Instant, seen: Option<Record>) {
        if !seen.as_ref().is_some_and(|seen| self.is_ours(seen)) {
            self.renewed = None;
        }
        self.is_known = true;
        // The expiry counts from the last observed renewal: neither the same one again nor the writes of other clients
        // must extend it.
        let same = self.last.as_ref().filter(|last| {
            let renewal = seen.as_ref().map(|seen| &seen.renewal);
            renewal == Some(&last.record.renewal)
        });
        let renewed = same.map_or(now, |last| last.renewed);
        if same.is_none() {
            self.not_before = None;
        }
        self.last = seen.map(|record| Observed { record, renewed });
    }

    /// Returns the next action.
    pub(super) fn next(&self, now: Instant) -> Action {
        if let Some(until) = self.not_before
            && now < until
        {
            return Action::Wait(Some(until));
        }
        if !self.is_known {
            return Action::Read;
        }
        let Some(Observed { record, renewed }) = &self.last else {
            return Action::Create;
        };
        let expires = *renewed + record.renewal.duration.unwrap_or(self.duration);
        if let Some(renewed) = self.renewed.filter(|_| self.leads(now)) {
            return due(now, renewed + RENEW_EVERY, Action::Renew(record.clone()));
        }
        // Our own lease after leadership ended: nobody took it, so it need not expire first.
        if self.is_ours(record) || record.renewal.holder.is_none() {
            return Action::Take(record.clone());
        }
        due(now, expires, Action::Take(record.clone()))
    }

    /// Takes in a successful write that began at `started` and made the lease `record`.
    pub(super) fn wrote(&mut self, started: Instant, record: Record) {
        self.renewed = Some(started);
        self.not_before = None;
        self.conflicted = false;
        self.is_known = true;
        self.last = Some(Observed {
            record,
            renewed: started,
        });
    }

    /// Takes in a write that failed because the lease had changed (409, 404). The lease is read again:
    /// at once after the first such failure, because the reason may be a renewal of ours whose response
    /// was lost, and with a delay after further ones.
    pub(super) fn stale(&mut self, now: Instant) {
        self.is_known = false;
        if std::mem::replace(&mut self.conflicted, true) {
            self.not_before = Some(now + RETRY_EVERY);
        }
    }

    /// Takes in any other failure; the next request follows after `retry`.
    pub(super) fn unreachable(&mut self, now: Instant, retry: Duration) {
        self.not_before = Some(now + retry);
    }

    /// Moves the next request forward to `at` if it is later.
    pub(super) fn retry_by(&mut self, at: Instant) {
        self.not_before = self.not_before.map(|not_before| not_before.min(at));
    }

    /// Forgets the lease: without observation its state goes stale.
    pub(super) fn forget(&mut self) {
        self.last = None;
        self.is_known = false;
        self.renewed = None;
        self.not_before = None;
        self.conflicted = false;
    }

    /// Returns `true` if this replica has held the lease and a read must show whether it still does.
    pub(super) fn is_unknown_after_holding(&self) -> bool {
        !self.is_known && self.renewed.is_some()
    }

    /// Returns the record to release, if this replica may hold the lease.
    pub(super) fn to_release(&self) -> Option<&Record> {
        let known = self.last.as_ref().filter(|_| self.is_known);
        let record = known.map(|last| &last.record);
        record.filter(|record| self.is_ours(record))
    }

    fn is_ours(&self, record: &Record) -> bool {
        record.renewal.holder.as_ref() == Some(&self.identity)
    }

    fn leads(&self, now: Instant) -> bool {
        self.held_until().is_some_and(|until| now < until)
    }
}

fn due(now: Instant, at: Instant, action: Action) -> Action {
    if now < at {
        Action::Wait(Some(at))
    } else {
        action
    }
}

#[cfg(test)]
mod tests {
    use jiff::Timestamp;
    use k8s_openapi::apimachinery::pkg::apis::meta::v1::MicroTime;

    use super::*;

    const LEASE: Duration = Duration::from_secs(15);

    /// Returns a lease that was renewed in this version.
    fn record(version: &str, holder: Option<&str>) -> Record {
        let renewed = Timestamp::from_second(version.parse().unwrap()).unwrap();
        Record {
            resource_version: version.to_owned(),
            renewal: Renewal {
                holder: holder.map(ToOwned::to_owned),
                renewed: Some(MicroTime(renewed)),
                duration: Some(LEASE),
                transitions: 0,
            },
        }
    }

    /// Returns the lease after a write of a client that is not its holder.
    fn touched(record: &Record, version: &str) -> Record {
        Record {
            resource_version: version.to_owned(),
            ..record.clone()
        }
    }

    fn seconds(s: u64) -> Duration {
        Duration::from_secs(s)
    }

    fn election() -> (Election, Instant) {
        (Election::new("me".to_owned(), LEASE), Instant::now())
    }

    /// An absent lease is created and then renewed every five seconds.
    #[tokio::test]
    async fn absent_lease_is_created() {
        let (mut e, t) = election();
        assert_eq!(e.next(t), Action::Read);
        e.read(t, None);
        assert_eq!(e.next(t), Action::Create);
        e.wrote(t, record("1", Some("me")));
        assert_eq!(e.held_until(), Some(t + seconds(14)));
        assert_eq!(e.next(t), Action::Wait(Some(t + seconds(5))));
        assert_eq!(
            e.next(t + seconds(5)),
            Action::Renew(record("1", Some("me")))
        );
    }

    /// A lease of another is taken only a whole duration after its last observed change.
    #[tokio::test]
    async fn foreign_lease_must_expire() {
        let (mut e, t) = election();
        e.read(t, Some(record("1", Some("other"))));
        assert_eq!(e.next(t + seconds(14)), Action::Wait(Some(t + LEASE)));
        e.watched(t + seconds(14), Some(record("2", Some("other"))));
        assert_eq!(e.next(t + LEASE), Action::Wait(Some(t + seconds(29))));
        e.watched(t + seconds(20), Some(record("2", Some("other"))));
        assert_eq!(
            e.next(t + seconds(29)),
            Action::Take(record("2", Some("other")))
        );
    }

    /// A tool annotates the lease of a dead leader again and again: it is taken all the same, at its newest version, even
    /// if that has changed just before.
    #[tokio::test]
    async fn others_extend_no_lease() {
        let (mut e, t) = election();
        let held = record("1", Some("other"));
        e.read(t, Some(held.clone()));
        for (second, version) in [(3, "2"), (6, "3"), (9, "4"), (12, "5"), (14, "6")] {
            e.watched(t + seconds(second), Some(touched(&held, version)));
            let wait = Action::Wait(Some(t + LEASE));
            assert_eq!(e.next(t + seconds(second)), wait);
        }
        let newest = touched(&held, "6");
        assert_eq!(e.next(t + LEASE), Action::Take(newest));
        e.stale(t + LEASE);
        assert_eq!(e.next(t + LEASE), Action::Read);
        let newest = touched(&held, "7");
        e.read(t + LEASE, Some(newest.clone()));
        assert_eq!(e.next(t + LEASE), Action::Take(newest));
    }

    /// A released lease is taken at once.
    #[tokio::test]
    async fn released_lease_is_taken() {
        let (mut e, t) = election();
        e.read(t, Some(record("1", Some("other"))));
        e.watched(t + seconds(1), Some(record("2", None)));
        assert_eq!(e.next(t + seconds(1)), Action::Take(record("2", None)));
    }

    /// Leadership ends before the lease when renewing fails.
    #[tokio::test]
    async fn leadership_ends_before_lease() {
        let (mut e, t) = election();
        e.read(t, None);
        e.wrote(t, record("1", Some("me")));
        e.unreachable(t + seconds(5), RETRY_EVERY);
        assert_eq!(e.next(t + seconds(5)), Action::Wait(Some(t + seconds(7))));
        assert!(e.leads(t + seconds(13)));
        assert!(!e.leads(t + seconds(14)));
        assert!(e.held_until().unwrap() < t + LEASE);
    }

    /// A stale renewal reads again and ends leadership if another holds the lease.
    #[tokio::test]
    async fn stale_renewal_reads_again() {
        let (mut e, t) = election();
        e.read(t, None);
        e.wrote(t, record("1", Some("me")));
        e.stale(t);
        assert_eq!(e.next(t + seconds(5)), Action::Read);
        e.read(t + seconds(5), Some(record("9", Some("thief"))));
        assert_eq!(e.held_until(), None);
        assert_eq!(e.next(t + seconds(5)), Action::Wait(Some(t + seconds(20))));
    }

    /// A renewal whose response was lost is repeated at once.
    #[tokio::test]
    async fn lost_renewal_is_repeated() {
        let (mut e, t) = election();
        e.read(t, None);
        e.wrote(t, record("1", Some("me")));
        e.unreachable(t + seconds(10), RETRY_EVERY);
        e.stale(t);
        e.read(t + seconds(12), Some(record("2", Some("me"))));
        assert!(e.leads(t + seconds(12)));
        let renewal = Action::Renew(record("2", Some("me")));
        assert_eq!(e.next(t + seconds(12)), renewal);
    }

    /// A late event does not end leadership.
    #[tokio::test]
    async fn late_event_is_harmless() {
        let (mut e, t) = election();
        e.read(t, Some(record("1", None)));
        e.wrote(t, record("2", Some("me")));
        e.watched(t, Some(record("0", Some("former"))));
        assert!(e.leads(t));
        assert_eq!(e.next(t), Action::Read);
        e.read(t, Some(record("2", Some("me"))));
        assert!(e.leads(t));
        assert_eq!(e.next(t), Action::Wait(Some(t + seconds(5))));
    }

    /// A leader whose lease was deleted and taken stops as soon as it has read it.
    #[tokio::test]
    async fn stolen_lease_ends_leadership() {
        let (mut e, t) = election();
        e.read(t, None);
        e.wrote(t, record("1", Some("me")));
        e.watched(t + seconds(2), Some(record("9", Some("other"))));
        assert_eq!(e.next(t + seconds(2)), Action::Read);
        e.read(t + seconds(2), Some(record("9", Some("other"))));
        assert!(!e.leads(t + seconds(2)));
    }

    /// Only a lease of our own is released.
    #[tokio::test]
    async fn only_own_lease_is_released() {
        let (mut e, t) = election();
        e.read(t, Some(record("1", Some("other"))));
        assert_eq!(e.to_release(), None);
        e.wrote(t, record("2", Some("me")));
        assert_eq!(e.to_release(), Some(&record("2", Some("me"))));
    }
}
