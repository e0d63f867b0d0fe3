//! Keeps the picture at what the facts say, for whoever wants to see.

use std::sync::Arc;
use std::time::Duration;

use tokio::sync::watch;
use tokio::time::{Instant, interval};

use crate::facts::Told;
use crate::picture::{Happened, Picture, State};

/// How often the state is shown at least.
const SHOWN_EVERY: Duration = Duration::from_millis(250);
/// So many happenings are kept.
const KEPT: usize = 2000;

/// What can be seen of the fleet.
#[derive(Clone, Debug)]
pub(crate) struct Record {
    /// Everything as it is now.
    pub(crate) state: watch::Receiver<Arc<State>>,
    /// Everything that happened, the oldest of very many forgotten.
    pub(crate) story: watch::Receiver<Vec<Happened>>,
}

/// A record, and the task that keeps it.
pub(crate) fn keep(mut picture: Picture, mut told: Told) -> (Record, impl Future<Output = ()>) {
    let (show, state) = watch::channel(Arc::new(picture.state(Instant::now())));
    let (happen, story) = watch::channel(Vec::new());
    let task = async move {
        let mut ticks = interval(SHOWN_EVERY);
        loop {
            tokio::select! {
                biased;
                _ = ticks.tick() => {
                    show.send_replace(Arc::new(picture.state(Instant::now())));
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
    (Record { state, story }, task)
}
