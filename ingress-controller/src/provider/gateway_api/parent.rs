use std::sync::Arc;

use karmada_api::gateway_api::{Gateway, GatewayClass};
use karmada_runtime::cache::{Cache, Transition};
use karmada_runtime::watch::Decoded;
use kube::runtime::watcher::Event;
use objects::Key;
use traffic::ingress::Cached;

/// The Gateway that routes are attached to, and the classes of Gateways.
#[derive(Debug, Default)]
pub(super) struct Parent {
    gateways: Cache<Gateway>,
    classes: Cache<GatewayClass>,
}

impl Parent {
    /// Applies an event, and returns `true` if it may change what is said of routes. Most do not: a controller counts there
    /// the routes of each listener.
    pub(super) fn observe(&mut self, event: Event<Decoded<Gateway>>) -> bool {
        let changes = self.gateways.observe(event);
        differs(&changes, |old, new| {
            (&old.spec, &old.status) == (&new.spec, &new.status)
        })
    }

    /// Applies an event of the classes, and returns the same.
    pub(super) fn observe_class(&mut self, event: Event<Decoded<GatewayClass>>) -> bool {
        let changes = self.classes.observe(event);
        differs(&changes, |old, new| old.spec == new.spec)
    }

    /// Returns the Gateway `key`, and its class if that exists.
    pub(super) fn get(&self, key: &Key) -> (Cached<Arc<Gateway>>, Option<Arc<GatewayClass>>) {
        let Some(gateway) = self.gateways.get(key) else {
            let unread = self.gateways.unread().contains(key);
            let gateway = if unread {
                Cached::Unread
            } else {
                Cached::Absent
            };
            return (gateway, None);
        };
        let class = Key::cluster_scoped(&gateway.spec.gateway_class_name);
        let class = self.classes.get(&class).map(Arc::clone);
        (Cached::Present(Arc::clone(gateway)), class)
    }
}

/// Returns `true` unless all `changes` are between objects that are the `same`.
fn differs<K>(changes: &[Transition<K>], same: impl Fn(&K, &K) -> bool) -> bool {
    changes
        .iter()
        .any(|change| match (&change.old, &change.new) {
            (Some(old), Some(new)) => !same(old, new),
            _ => true,
        })
}
