//! What a scenario prints.

use std::time::Duration;

use tokio::time::Instant;

use crate::picture::{Happened, State};
use crate::record::Record;
use crate::terminal::say;

/// Prints what happens, as it happens, for ever. Times count from when it `began`.
pub(super) async fn print(mut record: Record, began: Instant) {
    let mut seen = 0;
    loop {
        for happened in record.story.borrow_and_update().iter() {
            if happened.id > seen {
                seen = happened.id;
                say(&line(happened, began));
            }
        }
        if record.story.changed().await.is_err() {
            return;
        }
    }
}

fn line(happened: &Happened, began: Instant) -> String {
    let at = stamp(happened.at.saturating_duration_since(began));
    let after = match happened.after_ms {
        Some(after) => format!("+{:>6.3} s", Duration::from_millis(after).as_secs_f64()),
        None => " ".repeat(9),
    };
    let cluster = happened.cluster.as_deref().unwrap_or_default();
    format!("{at}  {after}  {cluster:<8} {}", happened.text)
}

/// How long after the beginning.
pub(super) fn stamp(at: Duration) -> String {
    format!("{:>9.3} s", at.as_secs_f64())
}

/// How the requests went.
pub(super) fn counts(state: &State) -> String {
    let clusters = state.clusters.iter();
    let served = clusters.map(|c| format!("{} {}", c.name, c.requests - c.errors));
    let served: Vec<_> = served.collect();
    let failed = state.errors();
    format!("requests served: {}; failed: {failed}", served.join(", "))
}
