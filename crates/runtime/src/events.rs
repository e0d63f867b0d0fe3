//! Kubernetes Events, written by a task of their own once no reconcile has been in progress for a moment:
//! reconciles neither wait for them nor share the API server with them.

mod reason;

use std::time::Duration;

use jiff::Timestamp;
use k8s_openapi::api::core::v1::ObjectReference;
use k8s_openapi::api::events::v1::Event as EventObject;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::MicroTime;
use kube::api::PostParams;
use kube::core::ObjectMeta;
use kube::runtime::events::{Event, EventType};
use kube::{Api, Client};
use prometheus_client::metrics::counter::Counter;
use prometheus_client::metrics::gauge::Gauge;
use tokio::sync::mpsc;
use tokio_util::sync::CancellationToken;

pub use self::reason::EventReason;

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
/// The time to write what waits when the program stops: half of that in which a task has to end.
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
    /// Spawns the task that writes the Events of `program` through `client`. Events about
    /// cluster-scoped objects go to the namespace `default`, the only one the API accepts for them.
    pub fn spawn(program: &mut Program, client: Client) -> Self {
        let dropped = Counter::default();
        program.registry.register(
            "events_dropped",
            "Events that were not written, because too many were queued or the API rejected them",
            dropped.clone(),
        );
        let unwritten = Gauge::default();
        program.registry.register(
            "events_waiting",
            "Events that are not written yet",
            unwritten.clone(),
        );
        let (queue, queued) = mpsc::channel(CAPACITY);
        let writing = Writing {
            client,
            reporter: program.identity.name,
            activity: program.activity.clone(),
            waiting: unwritten.clone(),
            failed: dropped.clone(),
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
    reporter: &'static str,
    activity: Activity,
    waiting: Gauge,
    failed: Counter,
}

impl Writing {
    async fn run(
        self,
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
        &self,
        queued: &mut mpsc::Receiver<(ObjectReference, Event)>,
        drained: &CancellationToken,
    ) {
        // The number of Events that have waited long enough. One reconcile that hangs must not hold up
        // each of them in turn.
        let mut overdue = 0_usize;
        loop {
            let next = tokio::select! {
                // Queued Events come first, so that a shutdown writes those of the last reconciles.
                biased;
                next = queued.recv() => next,
                () = drained.cancelled() => return,
            };
            let Some((regarding, event)) = next else {
                return drained.cancelled().await;
            };
            if overdue > 0 {
                overdue -= 1;
            } else if queued.capacity() > SPARE {
                tokio::select! {
                    biased;
                    () = drained.cancelled() => {}
                    () = self.activity.quiet(QUIET) => {}
                    () = tokio::time::sleep(MAX_WAIT) => overdue = queued.len(),
                }
            }
            self.write(&regarding, &event).await;
            self.waiting.dec();
        }
    }

    async fn write(&self, regarding: &ObjectReference, event: &Event) {
        let namespace = regarding.namespace.as_deref().unwrap_or("default");
        let events: Api<EventObject> = Api::namespaced(self.client.clone(), namespace);
        let object = self.object(regarding, event);
        let parameters = PostParams::default();
        let call = events.create(&parameters, &object);
        match tokio::time::timeout(WRITE_LIMIT, call).await {
            Ok(Ok(_)) => {}
            Ok(Err(error)) => {
                self.failed.inc();
                tracing::warn!(error = %Chain(&error), reason = event.reason, "Could not write an Event");
            }
            Err(_) => {
                self.failed.inc();
                tracing::warn!(reason = event.reason, "Could not write an Event in time");
            }
        }
    }

    /// Returns the object of an Event. kube's recorder would merge Events of one reason within some
    /// minutes into a series that has only the first note.
    fn object(&self, regarding: &ObjectReference, event: &Event) -> EventObject {
        let now = Timestamp::now();
        let name_after = |name: &str| format!("{name}.{:x}", now.as_nanosecond());
        let name = regarding.name.as_deref().map(name_after);
        // Some objects have names that no Event may have, such as `system:node`.
        let name = name.filter(|name| is_subdomain(name));
        let type_ = match event.type_ {
            EventType::Normal => "Normal",
            EventType::Warning => "Warning",
        };
        EventObject {
            metadata: ObjectMeta {
                name: name.or_else(|| Some(name_after(self.reporter))),
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

/// Returns `true` for a DNS-1123 subdomain, as Kubernetes wants the names of most objects.
fn is_subdomain(name: &str) -> bool {
    let is_alphanumeric = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit();
    let is_label = |label: &str| {
        label.starts_with(is_alphanumeric)
            && label.ends_with(is_alphanumeric)
            && label.chars().all(|c| is_alphanumeric(c) || c == '-')
    };
    name.len() <= 253 && name.split('.').all(is_label)
}

#[cfg(test)]
mod tests {
    use embedded_apiserver::{ApiServer, Fault};
    use kube::api::ListParams;
    use tokio::time::{Instant, sleep};

    use super::*;
    use crate::program::Identity;

    fn event(note: &str) -> Event {
        Event {
            type_: EventType::Normal,
            reason: "Test".to_owned(),
            note: Some(note.to_owned()),
            action: "Test".to_owned(),
            secondary: None,
        }
    }

    fn recorder(queue: mpsc::Sender<(ObjectReference, Event)>) -> EventRecorder {
        EventRecorder {
            queue,
            waiting: Gauge::default(),
            dropped: Counter::default(),
        }
    }

    #[tokio::test]
    async fn long_texts_are_truncated_between_characters_to_what_an_event_may_hold() {
        let (queue, mut queued) = mpsc::channel(1);
        let events = recorder(queue);
        let note = format!("a{}", "ü".repeat(MAX_NOTE));
        let reason = format!("a{}", "ü".repeat(MAX_REASON));
        let long = Event {
            reason,
            ..event(&note)
        };
        events.record(ObjectReference::default(), long);
        let (_, Event { note, reason, .. }) = queued.recv().await.unwrap();
        assert_eq!(reason.len(), MAX_REASON - 1);
        let note = note.unwrap();
        assert_eq!(note.len(), MAX_NOTE - 1);
        assert!(note.ends_with('ü'));
    }

    #[tokio::test]
    async fn an_event_beyond_the_capacity_is_dropped_and_counted() {
        let (queue, _queued) = mpsc::channel(1);
        let events = recorder(queue);
        let counts = || (events.waiting.get(), events.dropped.get());
        events.record(ObjectReference::default(), event("first"));
        assert_eq!(counts(), (1, 0));
        events.record(ObjectReference::default(), event("second"));
        assert_eq!(counts(), (1, 1));
    }

    /// A program that records Events in an API, and the number of those the API has.
    struct Recording {
        server: ApiServer,
        program: Program,
        events: EventRecorder,
    }

    impl Recording {
        fn start() -> Self {
            let server = ApiServer::new();
            let mut program = Program::new(Identity::for_tests(), ([127, 0, 0, 1], 0).into());
            let client = Client::new(server.service(), "default");
            let events = EventRecorder::spawn(&mut program, client);
            Self {
                server,
                program,
                events,
            }
        }

        fn record(&self, count: usize) {
            for number in 0..count {
                let event = event(&number.to_string());
                self.events.record(regarding("m1"), event);
            }
        }

        async fn objects(&self) -> Vec<EventObject> {
            let client = Client::new(self.server.service(), "default");
            let events: Api<EventObject> = Api::all(client);
            events.list(&ListParams::default()).await.unwrap().items
        }

        async fn written(&self) -> usize {
            self.objects().await.len()
        }
    }

    fn regarding(name: &str) -> ObjectReference {
        ObjectReference {
            name: Some(name.to_owned()),
            kind: Some("Cluster".to_owned()),
            ..ObjectReference::default()
        }
    }

    #[tokio::test(start_paused = true)]
    async fn an_event_is_written_about_an_object_of_any_name() {
        let recording = Recording::start();
        for name in ["m1", "system:node", "Upper", "-", &"long".repeat(63)] {
            recording.events.record(regarding(name), event(name));
        }
        sleep(2 * QUIET).await;
        let mut written: Vec<_> = recording
            .objects()
            .await
            .into_iter()
            .map(|event| {
                let name = event.metadata.name.unwrap();
                let regarding = event.regarding.unwrap().name.unwrap();
                (regarding, name.split('.').next().unwrap().to_owned())
            })
            .collect();
        written.sort();
        let expected = [
            ("-", "test"),
            ("Upper", "test"),
            (&*"long".repeat(63), "test"),
            ("m1", "m1"),
            ("system:node", "test"),
        ];
        let expected = expected.map(|(regarding, name)| (regarding.to_owned(), name.to_owned()));
        assert_eq!(written, expected);
        assert_eq!(recording.events.dropped.get(), 0);
    }

    #[tokio::test(start_paused = true)]
    async fn events_wait_until_no_reconcile_has_been_in_progress_for_a_moment() {
        let recording = Recording::start();
        let (one, other) = (
            recording.program.activity.begin(),
            recording.program.activity.begin(),
        );
        recording.record(3);
        sleep(MAX_WAIT / 2).await;
        drop(one);
        sleep(MAX_WAIT / 4).await;
        assert_eq!(recording.written().await, 0);
        assert_eq!(recording.events.waiting.get(), 3);
        drop(other);
        sleep(QUIET / 2).await;
        drop(recording.program.activity.begin());
        sleep(QUIET * 3 / 4).await;
        assert_eq!(recording.written().await, 0);
        sleep(QUIET / 2).await;
        assert_eq!(recording.written().await, 3);
        assert_eq!(recording.events.waiting.get(), 0);
    }

    #[tokio::test(start_paused = true)]
    async fn events_go_out_under_constant_load_too() {
        let recording = Recording::start();
        let _constant = recording.program.activity.begin();
        recording.record(1_000);
        sleep(2 * MAX_WAIT).await;
        assert_eq!(recording.written().await, 1_000);
    }

    #[tokio::test(start_paused = true)]
    async fn a_queue_that_fills_up_is_written_without_a_wait() {
        let recording = Recording::start();
        let _constant = recording.program.activity.begin();
        recording.record(SPARE + 100);
        sleep(MAX_WAIT / 2).await;
        assert!(recording.written().await >= 100);
        assert_eq!(recording.events.dropped.get(), 0);
    }

    #[tokio::test(start_paused = true)]
    async fn a_shutdown_writes_what_waits() {
        let mut recording = Recording::start();
        let reconcile = recording.program.activity.begin();
        recording.record(3);
        recording.program.stopping.cancel();
        assert!(recording.program.tasks.drain(Duration::from_secs(1)).await);
        assert_eq!(recording.written().await, 3);
        drop(reconcile);
    }

    #[tokio::test(start_paused = true)]
    async fn a_shutdown_does_not_wait_for_an_api_that_is_slow() {
        let mut recording = Recording::start();
        let slow = Fault::Slow(Duration::from_secs(1)).kind("events");
        recording.server.faults().inject(slow);
        recording.record(100);
        recording.program.stopping.cancel();
        let begun = Instant::now();
        assert!(recording.program.tasks.drain(2 * STOP_LIMIT).await);
        let elapsed = begun.elapsed();
        assert!(
            (STOP_LIMIT..2 * STOP_LIMIT).contains(&elapsed),
            "{elapsed:?}"
        );
        assert!(recording.events.waiting.get() > 90);
    }
}
