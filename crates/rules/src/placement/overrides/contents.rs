//! The objects that are placed.

use fleet_api::ResourceSnapshot;
use fleet_api::placement::ResourceIdentifier;

use crate::envelope::{Opening, open};
use crate::select::identifier;

/// Returns the objects in a group of snapshots: of an envelope those that it holds. One that cannot be opened holds none
/// here; it is told of when its Work is made.
pub fn contents(snapshots: &[ResourceSnapshot], opening: Opening) -> Vec<ResourceIdentifier> {
    let selected = snapshots
        .iter()
        .flat_map(|snapshot| &snapshot.spec.selected_resources);
    let (envelopes, objects): (Vec<_>, Vec<_>) =
        selected.partition(|object| opening.applies_to(object));
    let scope = snapshots.first().map(ResourceSnapshot::scope);
    let scope = scope.unwrap_or_default();
    let opened = envelopes
        .iter()
        .filter_map(|envelope| open(envelope, scope).ok());
    let opened = opened.flat_map(|opened| opened.manifests);
    let objects = objects.into_iter().map(identifier);
    objects
        .chain(opened.map(|object| identifier(&object)))
        .collect()
}
