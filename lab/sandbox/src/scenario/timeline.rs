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

/// How the requests went between two moments.
pub(super) fn counts(before: &State, now: &State) -> String {
    let served = |state: &State, name: &str| {
        let cluster = state.cluster(name);
        cluster.map_or(0, |cluster| cluster.requests - cluster.errors)
    };
    let clusters = now.clusters.iter().map(|cluster| {
        let name = &cluster.name;
        format!("{name} {}", served(now, name) - served(before, name))
    });
    let clusters: Vec<_> = clusters.collect();
    let failed = now.errors() - before.errors();
    format!("requests served: {}; failed: {failed}", clusters.join(", "))
}
