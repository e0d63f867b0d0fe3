//! The output of a scenario.

use std::time::Duration;

use tokio::time::Instant;

use crate::picture::{State, TimelineEntry};
use crate::record::Record;
use crate::terminal::print;

/// Prints the timeline as it grows, and never returns. Times count from when it `began`.
pub(super) async fn entries(mut record: Record, began: Instant) {
    let mut seen = 0;
    loop {
        for entry in record.timeline.borrow_and_update().iter() {
            if entry.id > seen {
                seen = entry.id;
                print(&line(entry, began));
            }
        }
        if record.timeline.changed().await.is_err() {
            return;
        }
    }
}

fn line(entry: &TimelineEntry, began: Instant) -> String {
    let at = stamp(entry.at.saturating_duration_since(began));
    let after = match entry.after_ms {
        Some(after) => format!("+{:>6.3} s", Duration::from_millis(after).as_secs_f64()),
        None => " ".repeat(9),
    };
    let cluster = entry.cluster.as_deref().unwrap_or_default();
    format!("{at}  {after}  {cluster:<8} {}", entry.text)
}

/// Formats a time since the beginning.
pub(super) fn stamp(at: Duration) -> String {
    format!("{:>9.3} s", at.as_secs_f64())
}

/// Describes the requests between two moments.
pub(super) fn counts(before: &State, now: &State) -> String {
    let clusters = now.clusters.iter().map(|cluster| {
        let name = &cluster.name;
        format!("{name} {}", served(now, name) - served(before, name))
    });
    let clusters: Vec<_> = clusters.collect();
    let failed = now.errors() - before.errors();
    format!("requests served: {}; failed: {failed}", clusters.join(", "))
}

fn served(state: &State, name: &str) -> u64 {
    let cluster = state.cluster(name);
    cluster.map_or(0, |cluster| cluster.requests - cluster.errors)
}
