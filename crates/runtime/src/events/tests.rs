use embedded_apiserver::{ApiServer, Fault};
use kube::Api;
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

/// Long texts are truncated between characters to the length that an event may have.
#[tokio::test]
async fn long_texts_are_truncated() {
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

/// An event beyond the capacity is dropped and counted.
#[tokio::test]
async fn excess_event_is_dropped() {
    let (queue, _queued) = mpsc::channel(1);
    let events = recorder(queue);
    events.record(ObjectReference::default(), event("first"));
    assert_eq!((events.waiting.get(), events.dropped.get()), (1, 0));
    events.record(ObjectReference::default(), event("second"));
    assert_eq!((events.waiting.get(), events.dropped.get()), (1, 1));
}

/// A program that records Events in an API, and the number of those the API has.
struct Recording {
    server: ApiServer,
    program: Program,
    events: EventRecorder,
}

/// A budget for all Events of a test.
const AMPLE: EventBudget = EventBudget {
    burst: 10_000,
    per_second: 10_000,
};

impl Recording {
    fn start() -> Self {
        Self::within(AMPLE)
    }

    fn within(budget: EventBudget) -> Self {
        let server = ApiServer::new();
        let mut program = Program::new(Identity::for_tests(), ([127, 0, 0, 1], 0).into());
        let client = Client::new(server.service(), "default");
        let events = EventRecorder::spawn(&mut program, client, budget);
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

    /// Returns the numbers of the warnings and the others that are written.
    async fn types(&self) -> (usize, usize) {
        let written = self.objects().await;
        let warnings = written.iter();
        let warnings = warnings.filter(|event| event.type_.as_deref() == Some("Warning"));
        let warnings = warnings.count();
        (warnings, written.len() - warnings)
    }
}

fn regarding(name: &str) -> ObjectReference {
    ObjectReference {
        name: Some(name.to_owned()),
        kind: Some("Cluster".to_owned()),
        ..ObjectReference::default()
    }
}

/// An event is written about an object of any name.
#[tokio::test(start_paused = true)]
async fn any_object_name_is_accepted() {
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
        ("-", "test-program"),
        ("Upper", "test-program"),
        (&*"long".repeat(63), "test-program"),
        ("m1", "m1"),
        ("system:node", "test-program"),
    ];
    let expected = expected.map(|(regarding, name)| (regarding.to_owned(), name.to_owned()));
    assert_eq!(written, expected);
    assert_eq!(recording.events.dropped.get(), 0);
}

/// Events wait until no reconcile has been in progress for a moment.
#[tokio::test(start_paused = true)]
async fn events_wait_for_quiet() {
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

/// Events go out under constant load too.
#[tokio::test(start_paused = true)]
async fn constant_load_delays_events_boundedly() {
    let recording = Recording::start();
    let _constant = recording.program.activity.begin();
    recording.record(1_000);
    sleep(2 * MAX_WAIT).await;
    assert_eq!(recording.written().await, 1_000);
}

/// A queue that fills up is written without a wait.
#[tokio::test(start_paused = true)]
async fn full_queue_is_written_early() {
    let recording = Recording::start();
    let _constant = recording.program.activity.begin();
    recording.record(SPARE + 100);
    sleep(MAX_WAIT / 2).await;
    assert!(recording.written().await >= 100);
    assert_eq!(recording.events.dropped.get(), 0);
}

/// Beyond the budget, successes are dropped and counted, and warnings, which come first, are written when there is room.
#[tokio::test(start_paused = true)]
async fn warnings_come_before_successes() {
    let recording = Recording::within(EventBudget {
        burst: 10,
        per_second: 1,
    });
    recording.record(50);
    for number in 0..15 {
        let warning = Event {
            type_: EventType::Warning,
            ..event(&number.to_string())
        };
        recording.events.record(regarding("m1"), warning);
    }
    sleep(2 * QUIET).await;
    assert_eq!(recording.types().await, (10, 0));
    sleep(Duration::from_secs(20)).await;
    assert_eq!(recording.types().await, (15, 0));
    assert_eq!(recording.events.dropped.get(), 50);
    assert_eq!(recording.events.waiting.get(), 0);
    recording.record(5);
    sleep(Duration::from_secs(20)).await;
    assert_eq!(recording.types().await, (15, 5));
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

/// A shutdown does not wait for an API that is slow.
#[tokio::test(start_paused = true)]
async fn shutdown_abandons_slow_api() {
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
