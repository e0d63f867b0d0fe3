//! The election as a state machine: from the known lease and the time to the next action.

use std::time::Duration;

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
    /// `None` if the lease was released.
    pub(super) holder: Option<String>,
    pub(super) duration: Duration,
    pub(super) transitions: i32,
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
    lease: LeaseState,
    /// The start of the last write that acquired or renewed the lease; `None` once another holds it.
    /// Counted from its start, because the API server stored it at some time after that.
    renewed: Option<Instant>,
    not_before: Option<Instant>,
    /// Set if a write met a changed lease since the last successful one.
    conflicted: bool,
}

#[derive(Debug)]
enum LeaseState {
    Unknown,
    Absent,
    Present { record: Record, changed: Instant },
}

impl Election {
    pub(super) fn new(identity: String, duration: Duration) -> Self {
        Self {
            identity,
            duration,
            lease: LeaseState::Unknown,
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
        } else if seen.is_none_or(|seen| seen.holder.as_ref() != Some(&self.identity)) {
            self.lease = LeaseState::Unknown;
        }
    }

    /// Takes in a state of the lease that was just read; `None` if it is absent.
    pub(super) fn read(&mut self, now: Instant, seen: Option<Record>) {
        let unchanged = matches!((&self.lease, &seen), (LeaseState::Present { record, .. }, Some(seen)) if record == seen);
        if seen
            .as_ref()
            .is_none_or(|seen| seen.holder.as_ref() != Some(&self.identity))
        {
            self.renewed = None;
        }
        // The expiry counts from the last observed change: showing the same version again must not
        // extend it.
        if !unchanged {
            self.not_before = None;
            self.lease = match seen {
                Some(record) => LeaseState::Present {
                    record,
                    changed: now,
                },
                None => LeaseState::Absent,
            };
        }
    }

    /// Returns the next action.
    pub(super) fn next(&self, now: Instant) -> Action {
        if let Some(until) = self.not_before
            && now < until
        {
            return Action::Wait(Some(until));
        }
        let (record, changed) = match &self.lease {
            LeaseState::Unknown => return Action::Read,
            LeaseState::Absent => return Action::Create,
            LeaseState::Present { record, changed } => (record, *changed),
        };
        if let Some(renewed) = self.renewed.filter(|_| self.leads(now)) {
            return due(now, renewed + RENEW_EVERY, Action::Renew(record.clone()));
        }
        // Our own lease after leadership ended: nobody took it, so it need not expire first.
        let ours = record.holder.as_ref() == Some(&self.identity);
        if ours || record.holder.is_none() {
            return Action::Take(record.clone());
        }
        due(now, changed + record.duration, Action::Take(record.clone()))
    }

    /// Takes in a successful write that began at `started` and made the lease `record`.
    pub(super) fn wrote(&mut self, started: Instant, record: Record) {
        self.renewed = Some(started);
        self.not_before = None;
        self.conflicted = false;
        self.lease = LeaseState::Present {
            record,
            changed: started,
        };
    }

    /// Takes in a write that failed because the lease had changed (409, 404). The lease is read again:
    /// at once after the first such failure, because the reason may be a renewal of ours whose response
    /// was lost, and with a delay after further ones.
    pub(super) fn stale(&mut self, now: Instant) {
        self.lease = LeaseState::Unknown;
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
        self.lease = LeaseState::Unknown;
        self.renewed = None;
        self.not_before = None;
        self.conflicted = false;
    }

    /// Returns `true` if this replica has held the lease and a read must show whether it still does.
    pub(super) fn is_unknown_after_holding(&self) -> bool {
        matches!(self.lease, LeaseState::Unknown) && self.renewed.is_some()
    }

    /// Returns the record to release, if this replica may hold the lease.
    pub(super) fn to_release(&self) -> Option<&Record> {
        match &self.lease {
            LeaseState::Present { record, .. }
                if record.holder.as_ref() == Some(&self.identity) =>
            {
                Some(record)
            }
            _ => None,
        }
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
    use super::*;

    const LEASE: Duration = Duration::from_secs(15);

    fn record(version: &str, holder: Option<&str>) -> Record {
        Record {
            resource_version: version.to_owned(),
            holder: holder.map(ToOwned::to_owned),
            duration: LEASE,
            transitions: 0,
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
