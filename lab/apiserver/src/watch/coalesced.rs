//! Several events of an object as one.

use crate::store::{Change, Event};

/// One event for each object: from what it was before the first to what it is after the last. Of one
/// that came and went its deletion is told, since who made it knows that it came.
pub(super) fn coalesced(events: Vec<Event>) -> Vec<Event> {
    let mut kept: Vec<Event> = Vec::new();
    for event in events {
        let earlier = kept.iter().position(|kept| {
            kept.object.key == event.object.key
                // A deletion and what has the name after it stay apart.
                && kept.change != Change::Deleted
        });
        match earlier.map(|index| kept.remove(index)) {
            Some(earlier) if earlier.before.is_none() && event.change == Change::Deleted => {
                kept.push(event);
            }
            Some(earlier) => kept.push(Event {
                before: earlier.before,
                ..event
            }),
            None => kept.push(event),
        }
    }
    kept
}
