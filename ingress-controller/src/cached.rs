//! The state of an object in a cache, as the rules ask for it.

use std::sync::Arc;

use karmada_runtime::cache::Cache;
use kube::Resource;
use objects::Key;
use traffic::ingress::Cached;

/// Returns the object `key`.
pub(crate) fn cached<'a, K: Resource>(cache: &'a Cache<K>, key: &Key) -> Cached<&'a Arc<K>> {
    match cache.get(key) {
        Some(object) => Cached::Present(object),
        None if cache.unread().contains(key) => Cached::Unread,
        None => Cached::Absent,
    }
}
