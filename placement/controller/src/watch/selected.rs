//! The changes of objects that may be placed, which wake the placements that may select it.

use std::sync::Weak;

use fleet_api::Placement;
use karmada_runtime::dynamic::{DynamicEvent, DynamicWatches};
use kube::Client;
use kube::runtime::watcher::Config;
use objects::{GroupVersionKind, Key};

use crate::inventory::depends_on;
use crate::shared::SharedIndex;

/// Returns the watches of the objects that may be placed, and the future that runs them.
pub(super) fn watches(
    client: &Client,
    shared: Weak<SharedIndex>,
) -> (DynamicWatches, impl Future<Output = ()> + Send + use<>) {
    DynamicWatches::new(
        client.clone(),
        |_| Config::default(),
        move |kind, event| {
            if let Some(shared) = shared.upgrade() {
                shared.read(|index| {
                    for (key, placement) in index.placements.iter() {
                        wake(&shared, (key, placement), kind, &event);
                    }
                });
            }
        },
    )
}

/// Wakes a placement if it may select objects that have changed, once the burst of their changes is over.
fn wake(
    shared: &SharedIndex,
    (key, placement): (&Key, &Placement),
    kind: &GroupVersionKind,
    event: &DynamicEvent,
) {
    let queue = &shared.queues.snapshots;
    match event {
        DynamicEvent::Changed(changes) => {
            let mut changes = changes.iter();
            if changes.any(|change| shared.hub.may_select(placement, kind, &change.key))
                && let Some(end) = shared.debounce.note(key)
            {
                queue.add_at(key.clone(), end);
            }
        }
        DynamicEvent::Unkept(..) => {}
        // Only now everything that it selects may be known.
        DynamicEvent::Listed
        | DynamicEvent::NotServed
        | DynamicEvent::Forbidden
        | DynamicEvent::Failing => {
            if depends_on(placement, kind) {
                queue.add(key.clone());
            }
        }
    }
}
