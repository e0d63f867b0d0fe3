//! Kubernetes Events, written by a task of their own so that reconciles do not wait for them.

use std::time::Duration;

use k8s_openapi::api::core::v1::ObjectReference;
use kube::Client;
use kube::runtime::events::{Event, Recorder, Reporter};
use prometheus_client::metrics::counter::Counter;
use tokio::sync::mpsc;
use tokio_util::sync::CancellationToken;

use crate::error::{BoxError, Chain};
use crate::program::Program;

/// The number of Events that may wait; any more are dropped and counted.
const CAPACITY: usize = 4096;
/// The longest note the API accepts, in bytes (`events.k8s.io/v1`).
const MAX_NOTE: usize = 1024;
/// The longest reason the API accepts, in bytes. That of a condition may be longer.
const MAX_REASON: usize = 128;
const WRITE_LIMIT: Duration = Duration::from_secs(10);

/// Records the Events of a program; clones share its queue.
#[derive(Clone, Debug)]
pub struct EventRecorder {
    queue: mpsc::Sender<(ObjectReference, Event)>,
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
        let (queue, queued) = mpsc::channel(CAPACITY);
        let reporter = Reporter {
            controller: program.name.to_owned(),
            instance: None,
        };
        let failed = dropped.clone();
        program.tasks.spawn_last("events", |drained| {
            write(client, reporter, queued, failed, drained)
        });
        Self { queue, dropped }
    }

    /// Queues `event` about the object `regarding`. A reason or note that is too long is truncated.
    pub fn record(&self, regarding: ObjectReference, mut event: Event) {
        if let Some(note) = &mut event.note {
            note.truncate(note.floor_char_boundary(MAX_NOTE));
        }
        let reason = event.reason.floor_char_boundary(MAX_REASON);
        event.reason.truncate(reason);
        // An Event informs; it must not slow down or fail the reconcile that records it.
        if self.queue.try_send((regarding, event)).is_err() {
            self.dropped.inc();
        }
    }
}

async fn write(
    client: Client,
    reporter: Reporter,
    mut queued: mpsc::Receiver<(ObjectReference, Event)>,
    failed: Counter,
    drained: CancellationToken,
) -> Result<(), BoxError> {
    loop {
        let next = tokio::select! {
            // Queued Events come first, so that a shutdown writes those of the last reconciles.
            biased;
            next = queued.recv() => next,
            () = drained.cancelled() => return Ok(()),
        };
        let Some((regarding, event)) = next else {
            drained.cancelled().await;
            return Ok(());
        };
        // A recorder that is kept merges Events of one reason within some minutes into a series that
        // has only the first note; a new one for each Event keeps every note.
        let recorder = Recorder::new(client.clone(), reporter.clone());
        match tokio::time::timeout(WRITE_LIMIT, recorder.publish(&event, &regarding)).await {
            Ok(Ok(())) => {}
            Ok(Err(error)) => {
                failed.inc();
                tracing::warn!(error = %Chain(&error), reason = event.reason, "Could not write an Event");
            }
            Err(_) => {
                failed.inc();
                tracing::warn!(reason = event.reason, "Could not write an Event in time");
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use kube::runtime::events::EventType;

    use super::*;

    fn event(note: &str) -> Event {
        Event {
            type_: EventType::Normal,
            reason: "Test".to_owned(),
            note: Some(note.to_owned()),
            action: "Test".to_owned(),
            secondary: None,
        }
    }

    #[tokio::test]
    async fn long_texts_are_truncated_between_characters_to_what_an_event_may_hold() {
        let (queue, mut queued) = mpsc::channel(1);
        let dropped = Counter::default();
        let events = EventRecorder { queue, dropped };
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
        let dropped = Counter::default();
        let events = EventRecorder {
            queue,
            dropped: dropped.clone(),
        };
        events.record(ObjectReference::default(), event("first"));
        assert_eq!(dropped.get(), 0);
        events.record(ObjectReference::default(), event("second"));
        assert_eq!(dropped.get(), 1);
    }
}
