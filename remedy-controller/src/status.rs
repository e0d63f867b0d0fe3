//! Lets each remedy tell its effect: in its status, and in Events when it may not act as its author
//! means or has expired.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::Duration;

use karmada_runtime::commit::{Committer, Outcome};
use karmada_runtime::controller::Controller;
use karmada_runtime::error::BoxError;
use karmada_runtime::events::EventRecorder;
use karmada_runtime::expectations::Subject;
use kube::runtime::events::{Event, EventType};
use kube::{Client, Resource};
use objects::Key;
use objects::write::Write;
use parking_lot::Mutex;
use tokio::time::Instant;
use traffic::remedy::{Mode, Problem, has_expired, status, status_write};

use crate::events::{expired, problem};
use crate::index::{Index, REMEDY, View};
use crate::support::Support;
use crate::watch::Queues;

/// The least time between two writes of one status: a fleet whose clusters fail one after the other
/// changes it many times.
const PACE: Duration = Duration::from_secs(1);

/// Reconciles remedies.
pub(crate) struct StatusReconciler {
    index: Arc<Mutex<Index>>,
    queues: Queues,
    committer: Committer,
    events: EventRecorder,
    support: Support,
    /// Held by the one status that is written while clusters wait.
    lane: tokio::sync::Mutex<()>,
    reported: Mutex<BTreeMap<Key, Reported>>,
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
        index: Arc<Mutex<Index>>,
        queues: Queues,
        client: Client,
        committer: Committer,
        events: EventRecorder,
    ) -> Self {
        Self {
            index,
            queues,
            committer,
            events,
            support: Support::new(client),
            lane: tokio::sync::Mutex::default(),
            reported: Mutex::default(),
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
        let new = problems.iter().filter(|problem| {
            let before = before.as_ref();
            before.is_none_or(|before| !before.problems.contains(problem.reason()))
        });
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
            (self.queues.remedies).add_at(key.clone(), reported.next_write);
            return false;
        }
        reported.next_write = now + PACE;
        true
    }

    async fn write(&self, key: &Key, write: &Write) -> Result<(), BoxError> {
        let subject = Subject::new(REMEDY, key);
        match self.committer.write(write, Some(&subject)).await? {
            // It differs from the present one.
            Outcome::Unchanged => self.lacks(key, "its definition lacks fields of the status"),
            // The Remedy was deleted meanwhile, or its definition was replaced.
            Outcome::Gone(_) => {
                self.support.forget();
                self.queues.remedies.add(key.clone());
            }
            _ => {}
        }
        Ok(())
    }

    /// Takes in the reason why the Remedy `key` has no status, and looks at it again later: no event may tell
    /// that the reason is gone.
    fn lacks(&self, key: &Key, reason: &str) {
        let next_look = self.support.lacks(reason);
        self.queues.remedies.add_at(key.clone(), next_look);
    }
}

impl Controller for StatusReconciler {
    type Key = Key;

    fn keys(&self) -> Vec<Key> {
        self.reported.lock().clear();
        self.index.lock().remedies.keys().cloned().collect()
    }

    fn held_until(&self, key: &Key) -> Option<Instant> {
        self.committer.held_until([Subject::new(REMEDY, key)])
    }

    async fn reconcile(&self, key: &Key) -> Result<(), BoxError> {
        let view = self.index.lock().view(key);
        let Some(view) = view else {
            self.reported.lock().remove(key);
            self.committer.forget("remedy_status", key);
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
            self.queues.remedies.add_at(key.clone(), retry);
            return Ok(());
        }
        if !self.may_write(key) {
            return Ok(());
        }
        // Actions come first: where the API server limits both, as many statuses as actions at once
        // would take half of it.
        let _lane = if self.queues.clusters.has_backlog() {
            Some(self.lane.lock().await)
        } else {
            None
        };
        // Of now: the wait may have taken a while.
        let view = self.index.lock().view(key);
        let Some(view) = view else {
            return Ok(());
        };
        match change(&view) {
            Some(write) => self.write(key, &write).await,
            None => Ok(()),
        }
    }
}

/// Returns the write of the status of a Remedy; `None` if that is up to date.
fn change(view: &View) -> Option<Write> {
    let status = status(&view.remedy, &view.problems, &view.reach, view.now);
    status_write(&view.remedy, &status)
}

#[cfg(test)]
mod tests;
