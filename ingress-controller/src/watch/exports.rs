//! The changes to exports and their policies, which wake the Service that is exported.

use k8s_openapi::api::core::v1::Service;
use karmada_api::{MultiClusterIngress, PropagationPolicy, ServiceExport};
use karmada_runtime::cache::{Cache, Transition};
use karmada_runtime::watch::Decoded;
use kube::Resource;
use kube::runtime::watcher::Event;
use objects::{Key, Metadata};
use traffic::ingress::{BACKEND_ADDRESSES_ANNOTATION, Exporter};

use crate::index::{Exports, Index};

impl Index {
    /// Applies an event of an export, which wakes no ingress.
    pub(crate) fn observe_export(&mut self, event: Event<Decoded<ServiceExport>>) -> Vec<Key> {
        let exports = self.observe_exports(0, |exports| &mut exports.objects, event);
        self.concern(exports.into_iter().map(|export| export.key));
        Vec::new()
    }

    /// Applies an event of a policy, which wakes no ingress.
    pub(crate) fn observe_policy(&mut self, event: Event<Decoded<PropagationPolicy>>) -> Vec<Key> {
        let policies = self.observe_exports(1, |exports| &mut exports.policies, event);
        let versions = policies.iter().flat_map(|Transition { key, old, new }| {
            let versions = [old, new].into_iter().flatten();
            versions.map(|policy| (&key.namespace, Exporter::exported(policy)))
        });
        let services =
            versions.filter_map(|(namespace, service)| Some(Key::new(namespace, service?)));
        self.concern(services);
        Vec::new()
    }

    /// Applies an event to the `nth` of the two caches. Its first complete list concerns every Service.
    fn observe_exports<K: Resource + Clone + Default>(
        &mut self,
        nth: usize,
        cache: fn(&mut Exports) -> &mut Cache<K>,
        event: Event<Decoded<K>>,
    ) -> Vec<Transition<K>> {
        let backends = self.backends.as_mut();
        let Some(exports) = backends.and_then(|backends| backends.exports.as_mut()) else {
            return Vec::new();
        };
        let is_listed = matches!(event, Event::InitDone);
        let transitions = cache(exports).observe(event);
        if is_listed && !std::mem::replace(&mut exports.listed[nth], true) {
            let all = self.exportable();
            self.concern(all);
        }
        transitions
    }
}

/// Returns what of an ingress decides about the exports of its Services.
pub(super) fn routing(ingress: &MultiClusterIngress) -> impl PartialEq + '_ {
    let metadata = &ingress.metadata;
    (
        &ingress.spec,
        metadata.annotation(BACKEND_ADDRESSES_ANNOTATION),
        &metadata.finalizers,
        &metadata.deletion_timestamp,
    )
}

/// Returns what tells one Service of a name from the next.
pub(super) fn life(template: &Service) -> impl PartialEq + '_ {
    (
        &template.metadata.uid,
        &template.metadata.deletion_timestamp,
    )
}
