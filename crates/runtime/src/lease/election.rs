//! The election as a state machine: what is known of the lease and the time → what to do next.

use std::time::Duration;

use tokio::time::Instant;

/// How often a held lease is renewed.
pub(super) const RENEW_EVERY: Duration = Duration::from_secs(5);
/// How soon a call that failed is made again, at the earliest.
pub(super) const RETRY_EVERY: Duration = Duration::from_secs(2);
/// Leadership ends this long before others may take the lease.
const MARGIN: Duration = Duration::from_secs(1);

/// What matters of a `Lease` object.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Record {
    pub(super) resource_version: String,
    /// None: given back.
    pub(super) holder: Option<String>,
    pub(super) duration: Duration,
    pub(super) transitions: i32,
}

/// What to do next.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Action {
    /// Nothing, until then or until something is observed.
    Wait(Option<Instant>),
    /// Read the lease.
    Read,
    /// Create it, held by us.
    Create,
    /// Take it over from nobody or from a holder whose time is up.
    Take(Record),
    /// Renew it.
    Renew(Record),
}

#[derive(Debug)]
pub(super) struct Election {
    identity: String,
    duration: Duration,
    lease: Known,
    /// When we began the last write that made the lease ours; none once it is another's.
    renewed: Option<Instant>,
    not_before: Option<Instant>,
    /// Whether a write was refused, because the lease was another one, since the last that was not.
    refused: bool,
}

#[derive(Debug)]
enum Known {
    Nothing,
    Absent,
    Present { record: Record, changed: Instant },
}

impl Election {
    pub(super) fn new(identity: String, duration: Duration) -> Self {
        Self {
            identity,
            duration,
            lease: Known::Nothing,
            renewed: None,
            not_before: None,
            refused: false,
        }
    }

    /// The name we are recorded under.
    pub(super) fn holder(&self) -> &str {
        &self.identity
    }

    /// Until when we lead; a time in the past means no longer.
    pub(super) fn held_until(&self) -> Option<Instant> {
        Some(self.renewed? + self.duration.saturating_sub(MARGIN))
    }

    /// The lease was seen, or seen to be absent. While we lead, only our own writes and reads count:
    /// a watch may show what was before them. But one that does not show the lease as ours is reason
    /// to read it at once: where it was deleted, another leads by now.
    pub(super) fn watched(&mut self, now: Instant, seen: Option<Record>) {
        if !self.leads(now) {
            self.read(now, seen);
        } else if seen.is_none_or(|seen| seen.holder.as_ref() != Some(&self.identity)) {
            self.lease = Known::Nothing;
        }
    }

    /// The lease was read, or found absent, just now.
    pub(super) fn read(&mut self, now: Instant, seen: Option<Record>) {
        let unchanged = matches!((&self.lease, &seen), (Known::Present { record, .. }, Some(seen)) if record == seen);
        if seen
            .as_ref()
            .is_none_or(|seen| seen.holder.as_ref() != Some(&self.identity))
        {
            self.renewed = None;
        }
        if !unchanged {
            self.not_before = None;
            self.lease = match seen {
                Some(record) => Known::Present {
                    record,
                    changed: now,
                },
                None => Known::Absent,
            };
        }
    }

    pub(super) fn next(&self, now: Instant) -> Action {
        if let Some(until) = self.not_before
            && now < until
        {
            return Action::Wait(Some(until));
        }
        let (record, changed) = match &self.lease {
            Known::Nothing => return Action::Read,
            Known::Absent => return Action::Create,
            Known::Present { record, changed } => (record, *changed),
        };
        if let Some(renewed) = self.renewed.filter(|_| self.leads(now)) {
            return due(now, renewed + RENEW_EVERY, Action::Renew(record.clone()));
        }
        let ours = record.holder.as_ref() == Some(&self.identity);
        if ours || record.holder.is_none() {
            return Action::Take(record.clone());
        }
        due(now, changed + record.duration, Action::Take(record.clone()))
    }

    /// The write begun at `started` made the lease ours, as `record` says.
    pub(super) fn wrote(&mut self, started: Instant, record: Record) {
        self.renewed = Some(started);
        self.not_before = None;
        self.refused = false;
        self.lease = Known::Present {
            record,
            changed: started,
        };
    }

    /// A write failed because the lease is not as we thought: it must be read again, at once if this
    /// is the first such failure in a row.
    pub(super) fn stale(&mut self, now: Instant) {
        self.lease = Known::Nothing;
        if std::mem::replace(&mut self.refused, true) {
            self.not_before = Some(now + RETRY_EVERY);
        }
    }

    /// A call failed otherwise: the next one comes after `retry`.
    pub(super) fn unreachable(&mut self, now: Instant, retry: Duration) {
        self.not_before = Some(now + retry);
    }

    /// The next call comes no later than `at`.
    pub(super) fn retry_by(&mut self, at: Instant) {
        self.not_before = self.not_before.map(|not_before| not_before.min(at));
    }

    /// We no longer look: what was known will be out of date.
    pub(super) fn forget(&mut self) {
        self.lease = Known::Nothing;
        self.renewed = None;
        self.not_before = None;
        self.refused = false;
    }

    /// What to write to give the lease back, if it may be ours.
    pub(super) fn to_release(&self) -> Option<&Record> {
        match &self.lease {
            Known::Present { record, .. } if record.holder.as_ref() == Some(&self.identity) => {
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

    #[tokio::test]
    async fn an_absent_lease_is_created_and_then_renewed_every_five_seconds() {
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

    #[tokio::test]
    async fn a_lease_of_another_is_taken_only_a_whole_duration_after_its_last_observed_change() {
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

    #[tokio::test]
    async fn a_lease_given_back_is_taken_at_once() {
        let (mut e, t) = election();
        e.read(t, Some(record("1", Some("other"))));
        e.watched(t + seconds(1), Some(record("2", None)));
        assert_eq!(e.next(t + seconds(1)), Action::Take(record("2", None)));
    }

    #[tokio::test]
    async fn leadership_ends_before_the_lease_when_renewing_fails() {
        let (mut e, t) = election();
        e.read(t, None);
        e.wrote(t, record("1", Some("me")));
        e.unreachable(t + seconds(5), RETRY_EVERY);
        assert_eq!(e.next(t + seconds(5)), Action::Wait(Some(t + seconds(7))));
        assert!(e.leads(t + seconds(13)));
        assert!(!e.leads(t + seconds(14)));
        assert!(e.held_until().unwrap() < t + LEASE);
    }

    #[tokio::test]
    async fn a_stale_renewal_reads_again_and_ends_leadership_if_another_holds_the_lease() {
        let (mut e, t) = election();
        e.read(t, None);
        e.wrote(t, record("1", Some("me")));
        e.stale(t);
        assert_eq!(e.next(t + seconds(5)), Action::Read);
        e.read(t + seconds(5), Some(record("9", Some("thief"))));
        assert_eq!(e.held_until(), None);
        assert_eq!(e.next(t + seconds(5)), Action::Wait(Some(t + seconds(20))));
    }

    #[tokio::test]
    async fn a_renewal_that_was_stored_but_never_answered_is_made_again_at_once() {
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

    #[tokio::test]
    async fn a_late_event_does_not_unseat_a_leader() {
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

    #[tokio::test]
    async fn a_leader_whose_lease_was_deleted_and_taken_ends_as_soon_as_it_has_looked() {
        let (mut e, t) = election();
        e.read(t, None);
        e.wrote(t, record("1", Some("me")));
        e.watched(t + seconds(2), Some(record("9", Some("other"))));
        assert_eq!(e.next(t + seconds(2)), Action::Read);
        e.read(t + seconds(2), Some(record("9", Some("other"))));
        assert!(!e.leads(t + seconds(2)));
    }

    #[tokio::test]
    async fn only_a_lease_of_ours_is_given_back() {
        let (mut e, t) = election();
        e.read(t, Some(record("1", Some("other"))));
        assert_eq!(e.to_release(), None);
        e.wrote(t, record("2", Some("me")));
        assert_eq!(e.to_release(), Some(&record("2", Some("me"))));
    }
}
