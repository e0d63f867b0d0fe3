//! The record of the fleet: its state, its timeline and its samples, kept up to date for any number of
//! readers.

use std::collections::VecDeque;
use std::sync::Arc;
use std::time::Duration;

use tokio::sync::watch;
use tokio::time::{Instant, interval};

use crate::picture::{Picture, Sample, State, TimelineEntry};
use crate::update::UpdateReceiver;

/// The state is published at least this often, for its rates and times change by themselves.
const PUBLISH_EVERY: Duration = Duration::from_millis(250);
/// The most timeline entries that are kept.
const KEPT: usize = 2000;
/// The most samples that are kept: 100 s of them, a little more than the plots show.
const SAMPLES: usize = 400;

/// A reader's view of the fleet.
#[derive(Clone, Debug)]
pub(crate) struct Record {
    /// The fleet as it is now.
    pub(crate) state: watch::Receiver<Arc<State>>,
    /// The newest entries of the timeline.
    pub(crate) timeline: watch::Receiver<Vec<TimelineEntry>>,
    /// The samples that the plots of a new page begin with.
    pub(crate) past: watch::Receiver<VecDeque<Sample>>,
}

/// Returns a record and the task that keeps it up to date.
pub(crate) fn keep(
    mut picture: Picture,
    mut updates: UpdateReceiver,
) -> (Record, impl Future<Output = ()>) {
    let (show, state) = watch::channel(Arc::new(picture.state(Instant::now())));
    let (append, timeline) = watch::channel(Vec::new());
    let (sample, past) = watch::channel(VecDeque::new());
    let task = async move {
        let mut ticks = interval(PUBLISH_EVERY);
        loop {
            tokio::select! {
                biased;
                _ = ticks.tick() => {
                    let state = Arc::new(picture.state(Instant::now()));
                    sample.send_modify(|past| {
                        past.push_back(Sample::of(&state));
                        past.drain(..past.len().saturating_sub(SAMPLES));
                    });
                    show.send_replace(state);
                }
                Some((at, update)) = updates.recv() => {
                    let entries = picture.apply(at, update);
                    if entries.is_empty() {
                        continue;
                    }
                    show.send_replace(Arc::new(picture.state(Instant::now())));
                    append.send_modify(|timeline| {
                        timeline.extend(entries);
                        let excess = timeline.len().saturating_sub(KEPT);
                        timeline.drain(..excess);
                    });
                }
            }
        }
    };
    let record = Record {
        state,
        timeline,
        past,
    };
    (record, task)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::picture::ThresholdsState;
    use crate::update;

    /// The past reaches back as far as the plots and no farther.
    #[tokio::test(start_paused = true)]
    async fn past_covers_the_plots() {
        let (_updates, received) = update::channel();
        let names = ["member1".to_owned()];
        let picture = Picture::new(&names, ThresholdsState::default(), String::new());
        let (mut record, recording) = keep(picture, received);
        let recording = tokio::spawn(recording);
        for ticks in 1..=2 * SAMPLES {
            record.past.changed().await.unwrap();
            let samples = record.past.borrow_and_update().len();
            assert_eq!(samples, ticks.min(SAMPLES));
        }
        recording.abort();
    }
}
