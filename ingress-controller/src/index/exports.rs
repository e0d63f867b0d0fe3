//! What decides about the exports of Services.

use std::collections::BTreeSet;
use std::sync::Arc;

use karmada_api::MultiClusterIngress;
use objects::Key;
use traffic::ingress::{
    BackendAddresses, ControllerName, Decision, ExportChange, ExportFacts, Exporter, Facts, Need,
    Settings, backend_addresses, bound_clusters, services,
};

use super::{Exports, Index};
use crate::cached::cached;
use crate::routes::Routes;

impl Index {
    /// Notes the Services whose exports a change concerns.
    pub(crate) fn concern(&mut self, services: impl IntoIterator<Item = Key>) {
        if let Some(exports) = self.exports_mut() {
            exports.concerned.extend(services);
        }
    }

    /// Returns the Services whose exports the last changes concern.
    pub(crate) fn take_concerned(&mut self) -> BTreeSet<Key> {
        let exports = self.exports_mut();
        exports.map_or_else(BTreeSet::new, |exports| {
            std::mem::take(&mut exports.concerned)
        })
    }

    fn exports_mut(&mut self) -> Option<&mut Exports> {
        self.backends.as_mut()?.exports.as_mut()
    }

    /// Returns the Services that may need an export, and those that have one of ours.
    pub(crate) fn exportable(&self) -> BTreeSet<Key> {
        let Some(exports) = self.backends.as_ref().and_then(|b| b.exports.as_ref()) else {
            return BTreeSet::new();
        };
        let routes = self.routes.iter().flat_map(Routes::ingresses);
        let ingresses = self.ingresses.iter().chain(routes);
        let named = ingresses.flat_map(|(key, ingress)| {
            services(&ingress.spec.ingress)
                .into_iter()
                .map(|service| Key::new(&key.namespace, service))
        });
        let exported = exports.objects.iter().map(|(key, _)| key.clone());
        let propagated = exports.policies.iter().filter_map(|(key, policy)| {
            let service = Exporter::exported(policy)?;
            Some(Key::new(&key.namespace, service))
        });
        named.chain(exported).chain(propagated).collect()
    }

    /// Plans the export of `service`. Returns `None` while not every export is known.
    pub(crate) fn plan_export(
        &self,
        service: &Key,
        settings: &Settings,
        exporter: &Exporter,
    ) -> Option<ExportChange> {
        let exports = self.backends.as_ref()?.exports.as_ref()?;
        if exports.listed != [true, true] {
            return None;
        }
        let policy = Key::new(&service.namespace, Exporter::policy_name(&service.name));
        let binding = self.binding(&service.namespace, &service.name);
        let facts = ExportFacts {
            need: self.need(service, settings),
            template: self.template(&service.namespace, &service.name),
            clusters: binding.map(bound_clusters),
            export: cached(&exports.objects, service).map(AsRef::as_ref),
            policy: cached(&exports.policies, &policy).map(AsRef::as_ref),
        };
        Some(exporter.plan(service, &facts))
    }

    fn need(&self, service: &Key, settings: &Settings) -> Need {
        let unread = self.ingresses.unread().iter();
        let mut may_be = unread
            .filter(|ingress| ingress.namespace == service.namespace)
            .count()
            > 0;
        may_be |= self
            .routes
            .as_ref()
            .is_some_and(|routes| routes.may_name_services(&service.namespace));
        for key in self.by_service.sources(service) {
            if let Some(ingress) = self.get(key)
                && backend_addresses(ingress, settings.backend_addresses)
                    != BackendAddresses::Endpoints
            {
                continue;
            }
            match self.decide(key, &settings.controller).1 {
                Decision::Serve(_) => return Need::Needed,
                Decision::Leave => may_be = true,
                Decision::Release(_) => {}
            }
        }
        if may_be {
            Need::Unclear
        } else {
            Need::Unneeded
        }
    }

    /// Returns the ingresses of ours that route to `service`.
    pub(crate) fn routing_to(
        &self,
        service: &Key,
        controller: &ControllerName,
    ) -> Vec<Arc<MultiClusterIngress>> {
        let all = self.by_service.sources(service);
        let ours = all.filter_map(|key| match self.decide(key, controller) {
            (ingress, Decision::Serve(_)) => ingress,
            _ => None,
        });
        ours.collect()
    }

    /// Returns the exports and the policies that never decoded.
    pub(crate) fn unread_exports(&self) -> Option<[BTreeSet<Key>; 2]> {
        let exports = self.backends.as_ref()?.exports.as_ref()?;
        let unread = [exports.objects.unread(), exports.policies.unread()];
        Some(unread.map(BTreeSet::clone))
    }
}
