//! Kubernetes Events, written by a task of their own once no reconcile has been in progress for a moment:
//! reconciles neither wait for them nor share the API server with them. They are for people, who read a few: beyond a
//! budget, warnings wait and others are dropped and counted.

mod budget;
mod form;
mod reason;

use std::collections::VecDeque;
use std::time::Duration;

use jiff::Timestamp;
use k8s_openapi::api::core::v1::ObjectReference;
use k8s_openapi::api::events::v1::Event as EventObject;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::MicroTime;
use kube::Client;
use kube::core::ObjectMeta;
use kube::runtime::events::{Event, EventType};
use objects::qualified_name::is_subdomain;
use prometheus_client::metrics::counter::Counter;
use prometheus_client::metrics::gauge::Gauge;
use tokio::sync::mpsc;
use tokio_util::sync::CancellationToken;

pub use self::budget::EventBudget;
pub use self::form::EventForm;
pub use self::reason::EventReason;

use self::budget::Allowance;

use crate::activity::Activity;
use crate::error::{BoxError, Chain};
use crate::program::Program;

/// The number of Events that may wait; any more are dropped and counted.
const CAPACITY: usize = 4096;
/// The longest note the API accepts, in bytes (`events.k8s.io/v1`).
const MAX_NOTE: usize = 1024;
/// The longest reason the API accepts, in bytes. That of a condition may be longer.
const MAX_REASON: usize = 128;
const WRITE_LIMIT: Duration = Duration::from_secs(10);
/// The time to write the Events that wait when the program stops: half of that in which a task has to end.
const STOP_LIMIT: Duration = Duration::from_secs(5);
/// The time without a reconcile after which a burst is over. Programs that wait for each other's writes
/// take turns in one.
const QUIET: Duration = Duration::from_millis(500);
/// The longest time that the next Event waits for that. A burst of thousands of writes takes less; under
/// constant load those that wait go out after each such time.
const MAX_WAIT: Duration = Duration::from_secs(15);
/// The number of free places in the queue below which Events no longer wait, so that none is dropped for
/// the sake of speed.
const SPARE: usize = CAPACITY / 2;

/// Records the Events of a program; clones share its queue.
#[derive(Clone, Debug)]
pub struct EventRecorder {
    queue: mpsc::Sender<(ObjectReference, Event)>,
    waiting: Gauge,
    dropped: Counter,
}

impl EventRecorder {
    /// Spawns the task that writes the Events of `program` through `client`, within `budget`. Events about
    /// cluster-scoped objects go to the namespace `default`, the only one the API accepts for them.
    pub fn spawn(program: &mut Program, client: Client, budget: EventBudget) -> Self {
        Self::spawn_in_form(program, client, budget, EventForm::Current)
    }

    /// Spawns a task like that of [`Self::spawn`], which writes Events in this form.
    pub fn spawn_in_form(
        program: &mut Program,
        client: Client,
        budget: EventBudget,
        form: EventForm,
    ) -> Self {
        let dropped: Counter = program.registry.register(
            "events_dropped",
            "Events that were not written: beyond the budget or the queue, or rejected by the API",
            Counter::default(),
        );
        let unwritten: Gauge = program.registry.register(
            "events_waiting",
            "Events that are not written yet",
            Gauge::default(),
        );
        let (queue, queued) = mpsc::channel(CAPACITY);
        let writing = Writing {
            client,
            form,
            reporter: program.identity.name,
            activity: program.activity.clone(),
            waiting: unwritten.clone(),
            dropped: dropped.clone(),
            allowance: Allowance::of(budget),
            backlog: Backlog::default(),
        };
        program
            .tasks
            .spawn_last("events", |drained| writing.run(queued, drained));
        Self {
            queue,
            waiting: unwritten,
            dropped,
        }
    }

    /// Queues `event` about the object `regarding`. A reason or note that is too long is truncated.
    pub fn record(&self, regarding: ObjectReference, mut event: Event) {
        if let Some(note) = &mut event.note {
            note.truncate(note.floor_char_boundary(MAX_NOTE));
        }
        let reason = event.reason.floor_char_boundary(MAX_REASON);
        event.reason.truncate(reason);
        // An Event informs; it must not slow down or fail the reconcile that records it.
        self.waiting.inc();
        if self.queue.try_send((regarding, event)).is_err() {
            self.waiting.dec();
            self.dropped.inc();
        }
    }
}

/// The task that writes Events.
struct Writing {
    client: Client,
    form: EventForm,
    reporter: &'static str,
    activity: Activity,
    waiting: Gauge,
    dropped: Counter,
    allowance: Allowance,
    backlog: Backlog,
}

/// The Events that wait, in the order in which they are written.
#[derive(Default)]
struct Backlog {
    warnings: VecDeque<(ObjectReference, Event)>,
    others: VecDeque<(ObjectReference, Event)>,
}

impl Backlog {
    fn push(&mut self, queued: (ObjectReference, Event)) {
        match queued.1.type_ {
            EventType::Warning => self.warnings.push_back(queued),
            EventType::Normal => self.others.push_back(queued),
        }
    }

    fn len(&self) -> usize {
        self.warnings.len() + self.others.len()
    }
}

impl Writing {
    async fn run(
        mut self,
        mut queued: mpsc::Receiver<(ObjectReference, Event)>,
        drained: CancellationToken,
    ) -> Result<(), BoxError> {
        let stopped = async {
            drained.cancelled().await;
            tokio::time::sleep(STOP_LIMIT).await;
        };
        tokio::select! {
            biased;
            () = self.write_until(&mut queued, &drained) => {}
            () = stopped => {
                let left = self.waiting.get();
                tracing::warn!(left, "Stopping before all Events are written");
            }
        }
        Ok(())
    }

    /// Writes Events until the token is cancelled and none waits.
    async fn write_until(
        &mut self,
        queued: &mut mpsc::Receiver<(ObjectReference, Event)>,
        drained: &CancellationToken,
    ) {
        // The number of Events that have waited long enough. One reconcile that hangs must not hold up
        // each of them in turn.
        let mut overdue = 0_usize;
        loop {
            if self.backlog.len() == 0 {
                let next = tokio::select! {
                    // Queued Events come first, so that a shutdown writes those of the last reconciles.
                    biased;
                    next = queued.recv() => next,
                    () = drained.cancelled() => return,
                };
                let Some(next) = next else {
                    return drained.cancelled().await;
                };
                self.backlog.push(next);
            }
            if overdue > 0 {
                overdue -= 1;
            } else if self.backlog.len() + queued.len() < CAPACITY - SPARE {
                tokio::select! {
                    biased;
                    () = drained.cancelled() => {}
                    () = self.activity.quiet(QUIET) => {}
                    () = tokio::time::sleep(MAX_WAIT) => overdue = self.backlog.len() + queued.len(),
                }
            }
            self.receive(queued);
            self.write_next(queued).await;
        }
    }

    /// Takes the queued Events, as far as there is room.
    fn receive(&mut self, queued: &mut mpsc::Receiver<(ObjectReference, Event)>) {
        while self.backlog.len() < CAPACITY
            && let Ok(next) = queued.try_recv()
        {
            self.backlog.push(next);
        }
    }

    /// Writes the next Event, warnings first, or drops it if the budget has nothing left for it.
    async fn write_next(&mut self, queued: &mut mpsc::Receiver<(ObjectReference, Event)>) {
        while let Some((regarding, event)) = self.backlog.warnings.pop_front() {
            if let Err(free_at) = self.allowance.take() {
                self.backlog.warnings.push_front((regarding, event));
                self.drop_others();
                tokio::time::sleep_until(free_at).await;
                self.receive(queued);
                continue;
            }
            self.write(&regarding, &event).await;
            self.waiting.dec();
            return;
        }
        if let Some((regarding, event)) = self.backlog.others.pop_front() {
            if self.allowance.take().is_ok() {
                self.write(&regarding, &event).await;
            } else {
                self.dropped.inc();
            }
            self.waiting.dec();
        }
    }

    /// Drops all but the warnings, which take the rest of the budget.
    fn drop_others(&mut self) {
        for _ in self.backlog.others.drain(..) {
            self.dropped.inc();
            self.waiting.dec();
        }
    }

    async fn write(&self, regarding: &ObjectReference, event: &Event) {
        let namespace = regarding.namespace.as_deref().unwrap_or("default");
        let object = self.object(regarding, event);
        let client = self.client.clone();
        let call = self.form.create(client, self.reporter, namespace, object);
        match tokio::time::timeout(WRITE_LIMIT, call).await {
            Ok(Ok(())) => {}
            Ok(Err(error)) => {
                self.dropped.inc();
                tracing::warn!(error = %Chain(&error), reason = event.reason, "Could not write an Event");
            }
            Err(_) => {
                self.dropped.inc();
                tracing::warn!(reason = event.reason, "Could not write an Event in time");
            }
        }
    }

    /// Returns the object of an Event. kube's recorder would merge Events of one reason within some
    /// minutes into a series that has only the first note.
    fn object(&self, regarding: &ObjectReference, event: &Event) -> EventObject {
        let now = Timestamp::now();
        let names = [regarding.name.as_deref(), Some(self.reporter)];
        let names = names.into_iter().flatten();
        let mut names = names.map(|name| format!("{name}.{:x}", now.as_nanosecond()));
        let type_ = match event.type_ {
            EventType::Normal => "Normal",
            EventType::Warning => "Warning",
        };
        EventObject {
            metadata: ObjectMeta {
                // Some objects have names that no Event may have, such as `system:node`.
                name: names.find(|name| is_subdomain(name)),
                ..ObjectMeta::default()
            },
            event_time: Some(MicroTime(now)),
            type_: Some(type_.to_owned()),
            reason: Some(event.reason.clone()),
            note: event.note.clone(),
            action: Some(event.action.clone()),
            regarding: Some(regarding.clone()),
            related: event.secondary.clone(),
            reporting_controller: Some(self.reporter.to_owned()),
            reporting_instance: Some(self.reporter.to_owned()),
            ..EventObject::default()
        }
    }
}

#[cfg(test)]
mod tests;
