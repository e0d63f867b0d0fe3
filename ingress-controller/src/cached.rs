//! The state of an object in a store, as the rules ask for it.

use std::sync::Arc;

use karmada_runtime::store::Store;
use objects::Key;
use traffic::ingress::Cached;

/// Returns the object `key`.
pub(crate) fn cached<'a, K, T>(store: &'a Store<K, T>, key: &Key) -> Cached<&'a Arc<K>> {
    match store.get(key) {
        Some(object) => Cached::Present(object),
        None if store.unread().contains(key) => Cached::Unread,
        None => Cached::Absent,
    }
}
