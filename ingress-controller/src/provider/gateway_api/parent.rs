use std::sync::Arc;

use karmada_api::gateway_api::{Gateway, GatewayClass, GatewayStatus};
use karmada_runtime::store::Store;
use karmada_runtime::watch::Decoded;
use kube::runtime::watcher::Event;
use objects::Key;
use traffic::ingress::Cached;

use crate::cached::cached;

/// The Gateway that routes are attached to, and the classes of Gateways.
#[derive(Debug, Default)]
pub(super) struct Parent {
    gateways: Store<Gateway>,
    classes: Store<GatewayClass>,
}

impl Parent {
    /// Applies an event, and returns `true` if it may change the report about routes. Most do not: a controller counts there
    /// the routes of each listener.
    pub(super) fn observe(&mut self, event: Event<Decoded<Gateway>>) -> bool {
        let changes = self.gateways.observe(event).objects;
        changes.iter().any(|change| change.differs(differ))
    }

    /// Applies an event of the classes, and returns the same.
    pub(super) fn observe_class(&mut self, event: Event<Decoded<GatewayClass>>) -> bool {
        let changes = self.classes.observe(event).objects;
        let mut changes = changes.iter();
        changes.any(|change| change.differs(|old, new| old.spec != new.spec))
    }

    /// Returns the Gateway `key`, and its class if that exists.
    pub(super) fn get(&self, key: &Key) -> (Cached<Arc<Gateway>>, Option<Arc<GatewayClass>>) {
        let gateway = cached(&self.gateways, key).map(Arc::clone);
        let class = match &gateway {
            Cached::Present(gateway) => {
                let class = Key::cluster_scoped(&gateway.spec.gateway_class_name);
                self.classes.get(&class).map(Arc::clone)
            }
            Cached::Absent | Cached::Unread => None,
        };
        (gateway, class)
    }
}

fn differ(old: &Gateway, new: &Gateway) -> bool {
    old.spec != new.spec || without_counts(old) != without_counts(new)
}

fn without_counts(gateway: &Gateway) -> Option<GatewayStatus> {
    let mut status = gateway.status.clone()?;
    for listener in &mut status.listeners {
        listener.attached_routes = 0;
    }
    Some(status)
}
