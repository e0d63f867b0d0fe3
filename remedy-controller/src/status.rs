//! Lets each remedy say what it does: in its status, and in Events when it may not do what its author
//! means or has expired.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::Duration;

use karmada_api::{Remedy, RemedyStatus};
use karmada_runtime::controller::Controller;
use karmada_runtime::error::BoxError;
use karmada_runtime::events::EventRecorder;
use karmada_runtime::queue::Queue;
use karmada_runtime::write::{Refusals, WriteErrorKind, Writer};
use kube::api::{Patch, PatchParams};
use kube::runtime::events::{Event, EventType};
use kube::{Api, Client, Resource};
use objects::Key;
use parking_lot::Mutex;
use serde_json::Value;
use tokio::time::Instant;
use traffic::remedy::{Mode, Problem, has_expired, status, status_patch};

use crate::events::{expired, problem, refused};
use crate::index::View;
use crate::reason::Reason;
use crate::support::Support;
use crate::watch::SharedIndex;

/// The least time between two writes of one status: a fleet whose clusters fail one after the other
/// changes it many times.
const PACE: Duration = Duration::from_secs(1);

/// Reconciles remedies.
pub(crate) struct StatusReconciler {
    index: Arc<SharedIndex>,
    queue: Queue<Key>,
    remedies: Api<Remedy>,
    writer: Writer,
    events: EventRecorder,
    support: Support,
    /// Held by the one status that is written while clusters wait.
    lane: tokio::sync::Mutex<()>,
    reported: Mutex<BTreeMap<Key, Reported>>,
    /// What refuses our statuses.
    refusals: Refusals<Key>,
}

/// The news of a Remedy that have been recorded.
#[derive(Debug)]
struct Reported {
    /// The Remedy's uid: one that is made again under the same name is another.
    uid: Option<String>,
    /// The reasons of its problems. The clusters that one names may join one after the other, each of
    /// which would be an Event.
    problems: BTreeSet<&'static str>,
    expired: bool,
    /// The moment of the next write.
    next_write: Instant,
}

impl StatusReconciler {
    pub(crate) fn new(
        index: Arc<SharedIndex>,
        client: Client,
        writer: Writer,
        events: EventRecorder,
    ) -> Self {
        Self {
            queue: index.remedy_queue(),
            index,
            remedies: Api::all(client.clone()),
            writer,
            events,
            support: Support::new(client),
            lane: tokio::sync::Mutex::default(),
            reported: Mutex::default(),
            refusals: Refusals::default(),
        }
    }

    /// Returns the Events that are due, and takes them for recorded.
    fn due_events(&self, key: &Key, view: &View) -> Vec<Event> {
        let View {
            remedy,
            problems,
            now,
            ..
        } = view;
        let has_ended = Mode::of(remedy, *now) == Mode::Expired;
        let mut reported = self.reported.lock();
        let before = reported.remove(key);
        let before = before.filter(|before| before.uid == remedy.metadata.uid);
        let is_known = |problem: &&Problem| {
            let before = before.as_ref();
            before.is_some_and(|before| before.problems.contains(problem.reason()))
        };
        let new = problems.iter().filter(|problem| !is_known(problem));
        let mut events: Vec<Event> = new.map(problem).collect();
        let was_reported = match &before {
            Some(before) => before.expired,
            // A former leader may have reported of it.
            None => has_expired(remedy),
        };
        if has_ended && !was_reported {
            events.push(expired(remedy));
        }
        let now_reported = Reported {
            uid: remedy.metadata.uid.clone(),
            problems: problems.iter().map(Problem::reason).collect(),
            expired: has_ended,
            next_write: before.map_or_else(Instant::now, |before| before.next_write),
        };
        reported.insert(key.clone(), now_reported);
        events
    }

    /// Returns `true` if the status of the Remedy `key` may be written now. Otherwise it is looked at
    /// again when it may.
    fn may_write(&self, key: &Key) -> bool {
        let now = Instant::now();
        let mut reported = self.reported.lock();
        let Some(reported) = reported.get_mut(key) else {
            return false;
        };
        if now < reported.next_write {
            self.queue.add_at(key.clone(), reported.next_write);
            return false;
        }
        reported.next_write = now + PACE;
        true
    }

    async fn write(
        &self,
        remedy: &Remedy,
        patch: Value,
        status: &RemedyStatus,
    ) -> Result<(), BoxError> {
        let key = &Key::of(remedy);
        let parameters = PatchParams::default();
        let patch = Patch::Merge(patch);
        let call = self.remedies.patch_status(&key.name, &parameters, &patch);
        let written = self.writer.write("remedy_status", call).await;
        if let Some(message) = self.refusals.note(key.clone(), &written) {
            let event = refused(Reason::StatusRefused, "status", &message);
            self.events.record(remedy.object_ref(&()), event);
        }
        match written {
            Ok(stored) if stored.status.as_ref() == Some(status) => Ok(()),
            Ok(_) => {
                self.lacks(key, "its definition lacks fields of the status");
                Ok(())
            }
            // The Remedy was deleted meanwhile, or its definition was replaced.
            Err(error) if error.kind() == WriteErrorKind::Missing => {
                self.support.forget();
                self.queue.add(key.clone());
                Ok(())
            }
            Err(error) => Err(error.into()),
        }
    }

    /// Takes in the reason why the Remedy `key` has no status, and looks at it again later: no event may tell
    /// that the reason is gone.
    fn lacks(&self, key: &Key, reason: &str) {
        let next_look = self.support.lacks(reason);
        self.queue.add_at(key.clone(), next_look);
    }
}

impl Controller for StatusReconciler {
    type Key = Key;

    fn keys(&self) -> Vec<Key> {
        self.reported.lock().clear();
        self.index.remedies()
    }

    async fn reconcile(&self, key: &Key) -> Result<(), BoxError> {
        let Some(view) = self.index.view(key) else {
            self.reported.lock().remove(key);
            self.refusals.forget(key);
            return Ok(());
        };
        if view.remedy.metadata.deletion_timestamp.is_some() {
            return Ok(());
        }
        for event in self.due_events(key, &view) {
            let (reason, note) = (&event.reason, event.note.as_deref().unwrap_or_default());
            match event.type_ {
                EventType::Warning => {
                    tracing::warn!(remedy = key.name, reason, note, "Remedy may be a mistake");
                }
                EventType::Normal => tracing::info!(remedy = key.name, note, "Remedy expired"),
            }
            self.events.record(view.remedy.object_ref(&()), event);
        }
        if change(&view).is_none() {
            return Ok(());
        }
        if let Some(retry) = self.support.missing_until().await? {
            self.queue.add_at(key.clone(), retry);
            return Ok(());
        }
        if !self.may_write(key) {
            return Ok(());
        }
        // Actions come first: where the API server is what limits both, as many statuses as actions at once
        // would take half of it.
        let _lane = if self.index.clusters_wait() {
            Some(self.lane.lock().await)
        } else {
            None
        };
        // Of now: the wait may have taken a while.
        let Some(view) = self.index.view(key) else {
            return Ok(());
        };
        match change(&view) {
            Some((patch, status)) => self.write(&view.remedy, patch, &status).await,
            None => Ok(()),
        }
    }
}

/// Returns the patch of the status of a Remedy, and what it leads to; `None` if the status is up to date.
fn change(view: &View) -> Option<(Value, RemedyStatus)> {
    let status = status(&view.remedy, &view.problems, &view.reach, view.now);
    Some((status_patch(&view.remedy, &status)?, status))
}

#[cfg(test)]
mod tests;
