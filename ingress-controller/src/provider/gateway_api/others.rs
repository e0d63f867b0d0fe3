use std::collections::BTreeSet;
use std::sync::Arc;

use karmada_api::gateway_api::HttpRoute;
use karmada_runtime::store::Store;
use karmada_runtime::watch::Decoded;
use kube::runtime::watcher::Event;
use traffic::ingress::gateway_api::hosts;

/// The routes in a gateway cluster that are not ours, by their hosts.
#[derive(Debug)]
pub(super) struct OtherRoutes(Store<HttpRoute, String>);

impl Default for OtherRoutes {
    fn default() -> Self {
        Self(Store::by(hosts))
    }
}

impl OtherRoutes {
    /// Applies an event, and returns the hosts of the routes concerned, before it and after it. Their controllers write to the
    /// status, which concerns nobody.
    pub(super) fn observe(&mut self, event: Event<Decoded<HttpRoute>>) -> BTreeSet<String> {
        let changes = self.0.observe(event).objects;
        let changes = changes
            .iter()
            .filter(|change| change.differs(|old, new| old.spec != new.spec));
        changes
            .flat_map(|change| self.0.concerned(change))
            .collect()
    }

    /// Returns the routes of `host`; of all hosts if it is empty.
    pub(super) fn with_host(&self, host: &str) -> Vec<Arc<HttpRoute>> {
        self.0.of(&host.to_owned()).cloned().collect()
    }
}
