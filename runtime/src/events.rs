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
        let recorder = Recorder::new(client, reporter);
        let failed = dropped.clone();
        program
            .tasks
            .spawn_last("events", |drained| write(recorder, told, failed, drained));
        Self { waiting, dropped }
    }

    /// Tells of `event`; `regarding` is the object it is about.
    pub fn tell(&self, regarding: ObjectReference, event: Event) {
        if self.waiting.try_send((regarding, event)).is_err() {
            self.dropped.inc();
        }
    }
}

async fn write(
    recorder: Recorder,
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
