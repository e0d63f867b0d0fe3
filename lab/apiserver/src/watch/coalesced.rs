//! Coalescing of several events of an object.

use crate::store::{Change, Event};

/// Merges events into one per object, from its state before the first to its state after the last.
/// An object that was added and deleted still has a deletion event: the client that created it
/// knows of it.
pub(super) fn coalesced(events: Vec<Event>) -> Vec<Event> {
    let mut kept: Vec<Event> = Vec::new();
    for event in events {
        let earlier = kept.iter().position(|kept| {
            kept.object.key == event.object.key
                // A deletion is not merged with the re-creation under the same name.
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
