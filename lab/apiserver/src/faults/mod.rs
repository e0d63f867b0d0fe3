//! Faults on demand: everything an API server may do to its clients, counted and never random.
//!
//! A [`Fault`] says what happens, an [`Injection`] to which requests and how often:
//!
//! ```
//! # use std::time::Duration;
//! # use apiserver::{ApiServer, Fault, Verb};
//! let server = ApiServer::new();
//! server.faults().inject(Fault::Conflict.every(3).kind("clusters").client("remedy-controller"));
//! server.faults().inject(Fault::Disconnect.lasting(Duration::from_secs(20)));
//! let slow = server.faults().inject(Fault::Slow(Duration::from_secs(2)).verbs([Verb::List]));
//! server.faults().remove(slow);
//! server.faults().clear();
//! ```

mod injection;

use std::time::Duration;

use parking_lot::Mutex;
use tokio::time::Instant;

use crate::news;
use crate::request::Verb;

pub use injection::{Fault, Injection};

/// Which injection: what [`Faults::remove`] takes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct FaultId(u64);

/// The faults of a server.
#[derive(Debug, Default)]
pub struct Faults {
    active: Mutex<Active>,
    changed: news::Sender,
}

#[derive(Debug, Default)]
struct Active {
    next: u64,
    faults: Vec<ActiveFault>,
}

#[derive(Debug)]
struct ActiveFault {
    id: FaultId,
    injection: Injection,
    until: Option<Instant>,
    /// How often it could have happened.
    occasions: u64,
    /// How often it did.
    hits: u64,
}

impl ActiveFault {
    /// Whether it happens no more.
    fn is_over(&self) -> bool {
        self.is_late() || self.is_used_up()
    }

    fn is_late(&self) -> bool {
        self.until.is_some_and(|until| until <= Instant::now())
    }

    fn is_used_up(&self) -> bool {
        (self.injection.times).is_some_and(|times| self.hits >= times)
    }

    /// Whether nobody needs it any more: requests that met a silence wait for its end.
    fn is_done(&self) -> bool {
        self.is_late() || (self.is_used_up() && self.injection.fault != Fault::Silence)
    }

    /// Whether it lasts, and so concerns a watch that was open before.
    fn is_lasting(&self) -> bool {
        self.injection.every == 1 && self.injection.times.is_none() && !self.is_late()
    }

    /// Counts an occasion.
    fn hit(&mut self) -> bool {
        self.occasions += 1;
        let hit = self.occasions.is_multiple_of(self.injection.every);
        self.hits += u64::from(hit);
        hit
    }
}

/// What a fault might happen to.
#[derive(Clone, Debug)]
pub(crate) struct Occasion {
    pub(crate) verb: Verb,
    /// Empty for what is not about objects.
    pub(crate) plural: String,
    /// Empty for a collection.
    pub(crate) name: String,
    /// The `User-Agent`.
    pub(crate) client: String,
}

/// What breaks an open watch between two lines.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Break {
    Disconnected,
    Silent,
}

impl Faults {
    /// Begins a fault.
    pub fn inject(&self, injection: impl Into<Injection>) -> FaultId {
        let injection = injection.into();
        let mut active = self.active.lock();
        let id = FaultId(active.next);
        active.next += 1;
        let until = injection
            .duration
            .and_then(|d| Instant::now().checked_add(d));
        active.faults.push(ActiveFault {
            id,
            injection,
            until,
            occasions: 0,
            hits: 0,
        });
        drop(active);
        self.changed.tell();
        id
    }

    /// Ends a fault; one that is over already is no error.
    pub fn remove(&self, id: FaultId) {
        self.active.lock().faults.retain(|fault| fault.id != id);
        self.changed.tell();
    }

    /// Ends all faults.
    pub fn clear(&self) {
        self.active.lock().faults.clear();
        self.changed.tell();
    }

    /// The faults that are not over, in the order they were injected, and how often each happened.
    pub fn active(&self) -> Vec<(FaultId, Injection, u64)> {
        let mut active = self.active.lock();
        active.faults.retain(|fault| !fault.is_done());
        (active.faults.iter())
            .filter(|fault| !fault.is_over())
            .map(|fault| (fault.id, fault.injection.clone(), fault.hits))
            .collect()
    }

    /// What happens to a request, in the order it was injected.
    pub(crate) fn of_request(&self, occasion: &Occasion) -> Vec<Fault> {
        self.count(|injection| {
            injection.fault.happens_to(occasion.verb) && injection.concerns(occasion)
        })
    }

    /// What happens to the next line of a watch.
    pub(crate) fn of_line(&self, occasion: &Occasion) -> Option<Fault> {
        let hits = self.count(|injection| {
            matches!(injection.fault, Fault::CutWatch { .. } | Fault::ExpireWatch)
                && injection.concerns(occasion)
        });
        hits.into_iter().next()
    }

    /// Whether a bookmark is withheld.
    pub(crate) fn withhold_bookmark(&self, occasion: &Occasion) -> bool {
        let hits = self.count(|injection| {
            injection.fault == Fault::WithholdBookmarks && injection.concerns(occasion)
        });
        !hits.is_empty()
    }

    /// How long events wait, and whether they are coalesced.
    pub(crate) fn delay(&self, occasion: &Occasion) -> Option<(Duration, bool)> {
        let hits = self.count(|injection| {
            matches!(injection.fault, Fault::DelayEvents { .. }) && injection.concerns(occasion)
        });
        hits.into_iter().find_map(|fault| match fault {
            Fault::DelayEvents { by, coalesce } => Some((by, coalesce)),
            _ => None,
        })
    }

    /// What ails an open watch now; this is no occasion of its own.
    pub(crate) fn of_open_watch(&self, occasion: &Occasion) -> Option<Break> {
        let active = self.active.lock();
        let mut concerned = (active.faults.iter())
            .filter(|fault| fault.is_lasting())
            .filter(|fault| fault.injection.concerns(occasion));
        concerned.find_map(|fault| match fault.injection.fault {
            Fault::Disconnect => Some(Break::Disconnected),
            Fault::Silence => Some(Break::Silent),
            _ => None,
        })
    }

    /// Whether no connection is taken at all.
    pub(crate) fn refuses_connections(&self) -> bool {
        let active = self.active.lock();
        active.faults.iter().any(|fault| {
            fault.injection.fault == Fault::Disconnect
                && fault.injection.concerns_everything()
                && fault.is_lasting()
        })
    }

    /// Until no [`Fault::Silence`] concerns the occasion any more.
    pub(crate) async fn silence_over(&self, occasion: &Occasion) {
        let mut changed = self.changed.subscribe();
        loop {
            let active = {
                let active = self.active.lock();
                (active.faults.iter())
                    .filter(|fault| fault.injection.fault == Fault::Silence)
                    .filter(|fault| fault.injection.concerns(occasion))
                    .filter(|fault| fault.until.is_none_or(|until| until > Instant::now()))
                    .map(|fault| fault.until)
                    .collect::<Vec<_>>()
            };
            let Some(until) = active.first() else { return };
            tokio::select! {
                biased;
                () = changed.changed() => {}
                () = sleep_until(*until) => {}
            }
        }
    }

    /// Tells when faults begin or are removed (not when they end by themselves).
    pub(crate) fn changes(&self) -> news::Receiver {
        self.changed.subscribe()
    }

    fn count(&self, concerned: impl Fn(&Injection) -> bool) -> Vec<Fault> {
        let mut active = self.active.lock();
        active.faults.retain(|fault| !fault.is_done());
        (active.faults.iter_mut())
            .filter(|fault| !fault.is_over() && concerned(&fault.injection))
            .filter_map(|fault| fault.hit().then(|| fault.injection.fault.clone()))
            .collect()
    }
}

async fn sleep_until(until: Option<Instant>) {
    match until {
        Some(until) => tokio::time::sleep_until(until).await,
        None => futures::future::pending().await,
    }
}
