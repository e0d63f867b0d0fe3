//! The changes in a cluster that wake a set.

use std::collections::BTreeSet;

use karmada_runtime::cache::Transition;
use karmada_runtime::untyped::Untyped;
use objects::Key;
use objects::drift::Settled;

use crate::ownership::Ownership;

/// A change in a cluster that concerns a set.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Wake {
    /// Content of ours changed, or the lists for which the set waited are known.
    Now(Key),
    /// Only the status changed: many such changes may be taken together.
    Paced(Key),
}

/// Returns the sets that the change concerns: those that the object names and named.
pub(crate) fn woken(ownership: &impl Ownership, change: &Transition<Untyped>) -> Vec<Wake> {
    let versions = [&change.old, &change.new];
    let [old, new] = versions.map(|object| object.as_ref().map(|object| object.value()));
    let versions = old.iter().chain(&new);
    let sets: BTreeSet<_> = versions
        .filter_map(|object| ownership.set_of(object))
        .collect();
    let wake = match (&old, &new) {
        (Some(old), Some(new)) if Settled::of(old) == Settled::of(new) => Wake::Paced,
        _ => Wake::Now,
    };
    sets.into_iter().map(wake).collect()
}

/// Returns the set that the object names after the change, if it names one.
pub(crate) fn set_named(ownership: &impl Ownership, change: &Transition<Untyped>) -> BTreeSet<Key> {
    let new = change.new.as_ref().map(|object| object.value());
    let set = new.and_then(|object| ownership.set_of(&object));
    set.into_iter().collect()
}
