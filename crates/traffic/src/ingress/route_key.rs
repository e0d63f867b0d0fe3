//! The key of an `HTTPRoute` among the ingresses.

use objects::Key;

/// A name with a colon is no name of an object: no `MultiClusterIngress` can have it.
const PREFIX: &str = "httproute:";

/// Returns the key under which the `HTTPRoute` of the key `route` is served.
pub fn served_key(route: &Key) -> Key {
    Key::new(&route.namespace, format!("{PREFIX}{}", route.name))
}

/// Returns the key of the `HTTPRoute` that is served under `key`; `None` for that of a `MultiClusterIngress`.
pub fn route_of(key: &Key) -> Option<Key> {
    let name = key.name.strip_prefix(PREFIX)?;
    Some(Key::new(&key.namespace, name))
}

/// Returns the name of the object that is served under `key`: a `MultiClusterIngress`, or an `HTTPRoute`.
pub fn own_name(key: &Key) -> &str {
    key.name.strip_prefix(PREFIX).unwrap_or(&key.name)
}
