//! Faults on demand, counted and never random.
//!
//! A [`Fault`] happens to the requests that its [`Injection`] selects:
//!
//! ```
//! # use std::time::Duration;
//! # use embedded_apiserver::{ApiServer, Fault, Verb};
//! let server = ApiServer::new();
//! server.faults().inject(Fault::Conflict.every(3).kind("clusters").client("remedy-controller"));
//! server.faults().inject(Fault::Disconnect.lasting(Duration::from_secs(20)));
//! let slow = server.faults().inject(Fault::Slow(Duration::from_secs(2)).verbs([Verb::List]));
//! server.faults().remove(slow);
//! server.faults().clear();
//! ```
//!
//! `dispatch` asks for the faults of a request before it handles it, and a `watch` for those of each line and of the
//! time between; both are counted here.

mod injection;

use std::collections::BTreeMap;
use std::time::Duration;

use parking_lot::Mutex;
use tokio::time::Instant;

use crate::notify;

pub(crate) use self::injection::RequestInfo;
pub use self::injection::{Fault, Injection};

/// The identity of an injection, for [`Faults::remove`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct FaultId(u64);

/// The faults of a server.
#[derive(Debug, Default)]
pub struct Faults {
    active: Mutex<Active>,
    changed: notify::Sender,
}

#[derive(Debug, Default)]
struct Active {
    next: u64,
    faults: Vec<ActiveFault>,
    /// Number of times each fault was applied, by its name; removed ones included.
    hits: BTreeMap<&'static str, u64>,
}

#[derive(Debug)]
struct ActiveFault {
    id: FaultId,
    injection: Injection,
    until: Option<Instant>,
    /// Number of requests or lines that matched.
    opportunities: u64,
    /// Number of times it was applied.
    hits: u64,
}

impl ActiveFault {
    fn is_over(&self) -> bool {
        self.is_late() || self.is_used_up()
    }

    fn is_late(&self) -> bool {
        self.until.is_some_and(|until| until <= Instant::now())
    }

    fn is_used_up(&self) -> bool {
        (self.injection.times).is_some_and(|times| self.hits >= times)
    }

    /// Returns `true` if the fault can be forgotten. One that is used up may still hold back
    /// requests that met a [`Fault::Silence`].
    fn is_done(&self) -> bool {
        self.is_late() || (self.is_used_up() && self.injection.fault != Fault::Silence)
    }

    /// Returns `true` if the fault is permanent while it is active, and so also concerns watches
    /// that were already open.
    fn is_lasting(&self) -> bool {
        self.injection.every == 1 && self.injection.times.is_none() && !self.is_late()
    }

    /// Counts a match, and returns `true` if the fault is applied to it.
    fn hit(&mut self) -> bool {
        self.opportunities += 1;
        let hit = self.opportunities.is_multiple_of(self.injection.every);
        self.hits += u64::from(hit);
        hit
    }
}

/// A fault that ends an open watch between two lines.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Break {
    Disconnected,
    Silent,
}

impl Faults {
    /// Starts an injection.
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
            opportunities: 0,
            hits: 0,
        });
        drop(active);
        self.changed.notify();
        id
    }

    /// Removes an injection; one that is already over is ignored.
    pub fn remove(&self, id: FaultId) {
        self.active.lock().faults.retain(|fault| fault.id != id);
        self.changed.notify();
    }

    /// Removes all injections.
    pub fn clear(&self) {
        self.active.lock().faults.clear();
        self.changed.notify();
    }

    /// Returns the injections that are not over, in the order of their start, each with the number
    /// of times it was applied.
    pub fn active(&self) -> Vec<(FaultId, Injection, u64)> {
        let mut active = self.active.lock();
        active.faults.retain(|fault| !fault.is_done());
        (active.faults.iter())
            .filter(|fault| !fault.is_over())
            .map(|fault| (fault.id, fault.injection.clone(), fault.hits))
            .collect()
    }

    /// Returns the number of times each fault was applied since the server started, by its
    /// [name](Fault::name). An open watch that a fault ends counts as well.
    pub fn hits(&self) -> BTreeMap<&'static str, u64> {
        self.active.lock().hits.clone()
    }

    /// Returns the faults of a request, in the order of their injection.
    pub(crate) fn of_request(&self, info: &RequestInfo) -> Vec<Fault> {
        self.count(|injection| injection.fault.happens_to(info.verb) && injection.concerns(info))
    }

    /// Returns the fault of the next line of a watch.
    pub(crate) fn of_line(&self, info: &RequestInfo) -> Option<Fault> {
        let hits = self.count(|injection| {
            matches!(
                injection.fault,
                Fault::CutWatch { .. } | Fault::ExpireWatch | Fault::FailWatch
            ) && injection.concerns(info)
        });
        hits.into_iter().next()
    }

    /// Returns `true` if a bookmark is withheld.
    pub(crate) fn withhold_bookmark(&self, info: &RequestInfo) -> bool {
        let hits = self.count(|injection| {
            injection.fault == Fault::WithholdBookmarks && injection.concerns(info)
        });
        !hits.is_empty()
    }

    /// Returns the delay of events, and `true` if they are coalesced.
    pub(crate) fn delay(&self, info: &RequestInfo) -> Option<(Duration, bool)> {
        let hits = self.count(|injection| {
            matches!(injection.fault, Fault::DelayEvents { .. }) && injection.concerns(info)
        });
        hits.into_iter().find_map(|fault| match fault {
            Fault::DelayEvents { by, coalesce } => Some((by, coalesce)),
            _ => None,
        })
    }

    /// Returns the fault that ends an open watch. It is no opportunity of that fault.
    pub(crate) fn of_open_watch(&self, info: &RequestInfo) -> Option<Break> {
        let mut active = self.active.lock();
        let mut concerned = (active.faults.iter())
            .filter(|fault| fault.is_lasting())
            .filter(|fault| fault.injection.concerns(info));
        let (broken, name) = concerned.find_map(|fault| match &fault.injection.fault {
            fault @ Fault::Disconnect => Some((Break::Disconnected, fault.name())),
            fault @ Fault::Silence => Some((Break::Silent, fault.name())),
            _ => None,
        })?;
        *active.hits.entry(name).or_default() += 1;
        Some(broken)
    }

    /// Returns `true` if the socket accepts no connections.
    pub(crate) fn refuses_connections(&self) -> bool {
        let active = self.active.lock();
        active.faults.iter().any(|fault| {
            fault.injection.fault == Fault::Disconnect
                && fault.injection.concerns_everything()
                && fault.is_lasting()
        })
    }

    /// Waits until no [`Fault::Silence`] concerns the request any more.
    pub(crate) async fn silence_over(&self, info: &RequestInfo) {
        let mut changed = self.changed.subscribe();
        loop {
            let active = {
                let active = self.active.lock();
                (active.faults.iter())
                    .filter(|fault| fault.injection.fault == Fault::Silence)
                    .filter(|fault| fault.injection.concerns(info))
                    // Used-up silences count as well: they hold the requests that met them.
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

    /// Subscribes to faults being injected or removed. One that ends by itself does not notify.
    pub(crate) fn changes(&self) -> notify::Receiver {
        self.changed.subscribe()
    }

    fn count(&self, concerned: impl Fn(&Injection) -> bool) -> Vec<Fault> {
        let mut active = self.active.lock();
        active.faults.retain(|fault| !fault.is_done());
        let hit: Vec<Fault> = (active.faults.iter_mut())
            .filter(|fault| !fault.is_over() && concerned(&fault.injection))
            .filter_map(|fault| fault.hit().then(|| fault.injection.fault.clone()))
            .collect();
        for fault in &hit {
            *active.hits.entry(fault.name()).or_default() += 1;
        }
        hit
    }
}

async fn sleep_until(until: Option<Instant>) {
    match until {
        Some(until) => tokio::time::sleep_until(until).await,
        None => futures::future::pending().await,
    }
}
