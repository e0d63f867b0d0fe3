//! The delivery of a watch's events to its observer, for the whole life of a program.

use std::time::Duration;

use futures::StreamExt;
use kube::runtime::watcher::{Config, Error, Event};
use kube::{Api, Resource};
use tokio::time::{Instant, sleep_until};
use tokio_util::sync::CancellationToken;

use crate::decoded::RawObject;
use crate::error::BoxError;
use crate::readiness::Gate;
use crate::watch::{Decoded, WatchLog, attempts, is_not_served, raw};
use crate::watch_health::{UNABLE_AFTER, WatchHealth};

/// The time for which an API must not know a kind before that is believed: one that starts answers before it knows all of
/// its kinds.
const UNSERVED_AFTER: Duration = Duration::from_secs(5);

/// The objects of a watch, and the meaning of their absence.
pub(crate) struct Source {
    /// The kind, for the log.
    pub(crate) kind: String,
    pub(crate) api: Api<RawObject>,
    pub(crate) selected: Config,
    /// True if the gate also shows while the watch cannot read for a while.
    pub(crate) needed_to_lead: bool,
    /// True if there are none where the API does not serve the kind.
    pub(crate) may_be_unserved: bool,
}

impl Source {
    /// Selects objects of a kind that the API serves, and without which nobody leads.
    pub(crate) fn new<K: Resource>(
        (api, kind): (Api<Decoded<K>>, &K::DynamicType),
        selected: Config,
    ) -> Self {
        Self {
            kind: K::kind(kind).into_owned(),
            api: raw(api),
            selected,
            needed_to_lead: true,
            may_be_unserved: false,
        }
    }
}

/// Passes each event to `observe` until the program stops, and opens `gate` after the first complete
/// list.
pub(crate) async fn deliver(
    source: Source,
    gate: Gate,
    stopping: CancellationToken,
    mut observe: Box<dyn FnMut(Event<RawObject>) + Send>,
) -> Result<(), BoxError> {
    let mut log = WatchLog::new(&source.kind);
    let mut health = WatchHealth::new();
    let mut unserved_since = None;
    let mut is_served = true;
    loop {
        let mut attempts = attempts(source.api.clone(), source.selected.clone());
        loop {
            let able_at = health.able_at();
            let next = tokio::select! {
                biased;
                () = stopping.cancelled() => return Ok(()),
                next = attempts.next() => next,
                () = sleep_until(able_at.unwrap_or_else(Instant::now)), if able_at.is_some() => {
                    health = WatchHealth::new();
                    gate.set_unable(false);
                    tracing::info!(watch = gate.name(), "Can read again");
                    continue;
                }
            };
            let Some(result) = next else { break };
            if source.may_be_unserved && result.as_ref().is_err_and(is_not_served) {
                let since = *unserved_since.get_or_insert_with(Instant::now);
                if since.elapsed() < UNSERVED_AFTER {
                    continue;
                }
                if std::mem::take(&mut is_served) {
                    tracing::info!(
                        watch = gate.name(),
                        "The API does not serve this kind, taking it for empty until it does"
                    );
                }
                gate.open();
                continue;
            }
            let unable = source.needed_to_lead && note(&mut health, &result, Instant::now());
            if let Some(event) = log.filter(result) {
                let listed = matches!(event, Event::InitDone);
                // The observer goes first: whoever passes the gate must find the whole list.
                observe(event);
                if listed {
                    unserved_since = None;
                    is_served = true;
                    gate.open();
                }
            }
            if unable {
                gate.set_unable(true);
                tracing::warn!(
                    watch = gate.name(),
                    after = ?UNABLE_AFTER,
                    "Cannot read, leaving leadership to others"
                );
                // A new list proves that reading works as soon as it does; an idle watch that opens
                // again shows nothing.
                break;
            }
        }
    }
}

/// Takes in a result of the watch. Returns `true` if the watch is unable to read from now on.
fn note(health: &mut WatchHealth, result: &Result<Event<RawObject>, Error>, now: Instant) -> bool {
    match result {
        Ok(Event::Init) => health.listing(),
        // One page of a list that may still fail.
        Ok(Event::InitApply(_)) => {}
        Ok(Event::InitDone | Event::Apply(_) | Event::Delete(_)) => health.succeeded(now),
        Err(Error::WatchFailed(_)) => health.broke(),
        Err(_) => return health.failed(now),
    }
    false
}
