use std::collections::BTreeSet;
use std::sync::Arc;

use karmada_api::gateway_api::HttpRoute;
use karmada_runtime::cache::{Cache, Transition};
use karmada_runtime::watch::Decoded;
use kube::runtime::watcher::Event;
use objects::Key;
use objects::reverse_index::ReverseIndex;
use traffic::ingress::gateway_api::hosts;

/// The routes in a gateway cluster that are not ours.
#[derive(Debug, Default)]
pub(super) struct OtherRoutes {
    routes: Cache<HttpRoute>,
    by_host: ReverseIndex<Key, String>,
}

impl OtherRoutes {
    /// Applies an event, and returns the hosts of the routes concerned, before it and after it.
    pub(super) fn observe(&mut self, event: Event<Decoded<HttpRoute>>) -> BTreeSet<String> {
        let mut concerned = BTreeSet::new();
        for Transition { key, old, new } in self.routes.observe(event) {
            // Their controllers write to the status.
            let specs = [&old, &new].map(|route| route.as_ref().map(|route| &route.spec));
            if specs[0] == specs[1] {
                continue;
            }
            let now = new.as_deref().map(hosts).unwrap_or_default();
            concerned.extend(old.as_deref().map(hosts).unwrap_or_default());
            concerned.extend(now.iter().cloned());
            self.by_host.replace(&key, now);
        }
        concerned
    }

    /// Returns the routes of `host`; of all hosts if it is empty.
    pub(super) fn with_host(&self, host: &str) -> impl Iterator<Item = &Arc<HttpRoute>> {
        let keys = self.by_host.sources(host);
        keys.filter_map(|key| self.routes.get(key))
    }
}
