//! Kubernetes Events: told to a queue, written behind the reconciles' back, so that they cost the
//! reconciles no time.

use std::time::Duration;

use k8s_openapi::api::core::v1::ObjectReference;
use kube::Client;
use kube::runtime::events::{Event, Recorder, Reporter};
use prometheus_client::metrics::counter::Counter;
use tokio::sync::mpsc;
use tokio_util::sync::CancellationToken;

use crate::error::{BoxError, Chain};
use crate::program::Program;

/// Events that may wait; more than that are dropped, and counted.
const WAITING: usize = 4096;
/// The API refuses longer notes, in bytes.
const LONGEST_NOTE: usize = 1024;
const WRITE_LIMIT: Duration = Duration::from_secs(10);

/// Where a controller tells its Events.
#[derive(Clone, Debug)]
pub struct Events {
    waiting: mpsc::Sender<(ObjectReference, Event)>,
    dropped: Counter,
}

impl Events {
    /// Starts the task that writes the Events of `program` to the API of `client`. Those about an
    /// object without a namespace go to `default`, where alone the API accepts them.
    pub fn new(program: &mut Program, client: Client) -> Self {
        let dropped = Counter::default();
        program.registry.register(
            "events_dropped",
            "Events that were not written, for too many were waiting or the API refused them",
            dropped.clone(),
        );
        let (waiting, told) = mpsc::channel(WAITING);
        let reporter = Reporter {
            controller: program.name.to_owned(),
            instance: None,
        };
        let failed = dropped.clone();
        program.tasks.spawn_last("events", |drained| {
            write(client, reporter, told, failed, drained)
        });
        Self { waiting, dropped }
    }

    /// Tells of `event`; `regarding` is the object it is about. A note that is too long is cut.
    pub fn tell(&self, regarding: ObjectReference, mut event: Event) {
        if let Some(note) = &mut event.note {
            note.truncate(note.floor_char_boundary(LONGEST_NOTE));
        }
        if self.waiting.try_send((regarding, event)).is_err() {
            self.dropped.inc();
        }
    }
}

/// A recorder of its own for each: one that is kept joins Events of the same reason within minutes
/// into one, and keeps only the first one's note.
async fn write(
    client: Client,
    reporter: Reporter,
    mut told: mpsc::Receiver<(ObjectReference, Event)>,
    failed: Counter,
    drained: CancellationToken,
) -> Result<(), BoxError> {
    loop {
        let next = tokio::select! {
            biased;
            next = told.recv() => next,
            () = drained.cancelled() => return Ok(()),
        };
        let Some((regarding, event)) = next else {
            drained.cancelled().await;
            return Ok(());
        };
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

    fn told(note: &str) -> Event {
        Event {
            type_: EventType::Normal,
            reason: "Test".to_owned(),
            note: Some(note.to_owned()),
            action: "Test".to_owned(),
            secondary: None,
        }
    }

    #[tokio::test]
    async fn a_long_note_is_cut_between_characters_to_what_an_event_may_hold() {
        let (waiting, mut told_of) = mpsc::channel(1);
        let dropped = Counter::default();
        let events = Events { waiting, dropped };
        let note = format!("a{}", "ü".repeat(LONGEST_NOTE));
        events.tell(ObjectReference::default(), told(&note));
        let cut = told_of
            .recv()
            .await
            .and_then(|(_, event)| event.note)
            .unwrap();
        assert_eq!(cut.len(), LONGEST_NOTE - 1);
        assert!(cut.ends_with('ü'));
    }

    #[tokio::test]
    async fn an_event_too_many_is_dropped_and_counted() {
        let (waiting, _told_of) = mpsc::channel(1);
        let dropped = Counter::default();
        let events = Events {
            waiting,
            dropped: dropped.clone(),
        };
        events.tell(ObjectReference::default(), told("first"));
        assert_eq!(dropped.get(), 0);
        events.tell(ObjectReference::default(), told("second"));
        assert_eq!(dropped.get(), 1);
    }
}
