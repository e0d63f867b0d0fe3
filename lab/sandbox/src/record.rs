//! Keeps the picture at what the facts say, for whoever wants to see.

use std::collections::VecDeque;
use std::sync::Arc;
use std::time::Duration;

use tokio::sync::watch;
use tokio::time::{Instant, interval};

use crate::facts::Told;
use crate::picture::{Happened, Picture, Sample, State};

/// How often the state is shown at least.
const SHOWN_EVERY: Duration = Duration::from_millis(250);
/// So many happenings are kept.
const KEPT: usize = 2000;
/// So many samples are kept: for 100 s, a little longer than the plots reach back.
const SAMPLES: usize = 400;

/// What can be seen of the fleet.
#[derive(Clone, Debug)]
pub(crate) struct Record {
    /// Everything as it is now.
    pub(crate) state: watch::Receiver<Arc<State>>,
    /// Everything that happened, the oldest of very many forgotten.
    pub(crate) story: watch::Receiver<Vec<Happened>>,
    /// What the plots of a page that opens now begin with.
    pub(crate) past: watch::Receiver<VecDeque<Sample>>,
}

/// A record, and the task that keeps it.
pub(crate) fn keep(mut picture: Picture, mut told: Told) -> (Record, impl Future<Output = ()>) {
    let (show, state) = watch::channel(Arc::new(picture.state(Instant::now())));
    let (happen, story) = watch::channel(Vec::new());
    let (sample, past) = watch::channel(VecDeque::new());
    let task = async move {
        let mut ticks = interval(SHOWN_EVERY);
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
                Some((at, fact)) = told.recv() => {
                    let happened = picture.take_in(at, fact);
                    if happened.is_empty() {
                        continue;
                    }
                    show.send_replace(Arc::new(picture.state(Instant::now())));
                    happen.send_modify(|story| {
                        story.extend(happened);
                        let excess = story.len().saturating_sub(KEPT);
                        story.drain(..excess);
                    });
                }
            }
        }
    };
    (Record { state, story, past }, task)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::facts;
    use crate::picture::ThresholdsState;

    #[tokio::test(start_paused = true)]
    async fn the_past_reaches_back_as_far_as_the_plots_and_no_farther() {
        let (_facts, told) = facts::channel();
        let names = ["member1".to_owned()];
        let picture = Picture::new(&names, ThresholdsState::default(), String::new());
        let (mut record, recording) = keep(picture, told);
        let recording = tokio::spawn(recording);
        for ticks in 1..=2 * SAMPLES {
            record.past.changed().await.unwrap();
            let samples = record.past.borrow_and_update().len();
            assert_eq!(samples, ticks.min(SAMPLES));
        }
        recording.abort();
    }
}
