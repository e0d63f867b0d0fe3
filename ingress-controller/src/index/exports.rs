//! The facts that decide about the exports of Services.

use std::collections::BTreeSet;
use std::sync::Arc;

use karmada_api::MultiClusterIngress;
use objects::Key;
use objects::write::Plan;
use traffic::LeftToOthers;
use traffic::ingress::{
    BackendAddresses, ControllerName, Decision, ExportFacts, Exporter, Facts, Need, Settings,
    backend_addresses, bound_clusters, needs_local_endpoints, services,
};

use super::Index;
use crate::cached::cached;

impl Index {
    /// Notes the Services whose exports a change concerns.
    pub(crate) fn concern(&mut self, services: impl IntoIterator<Item = Key>) {
        if self.manages_exports() {
            self.concerned.extend(services);
        }
    }

    /// Notes that a change concerns every export.
    pub(crate) fn concern_all(&mut self) {
        let all = self.exportable();
        self.concern(all);
    }

    /// Returns the Services whose exports the last changes concern.
    pub(crate) fn take_concerned(&mut self) -> BTreeSet<Key> {
        std::mem::take(&mut self.concerned)
    }

    fn manages_exports(&self) -> bool {
        self.backends.is_some_and(|backends| backends.exports)
    }

    /// Returns the Services that may need an export, and those that have one of ours.
    pub(crate) fn exportable(&self) -> BTreeSet<Key> {
        if !self.manages_exports() {
            return BTreeSet::new();
        }
        let ingresses = self.ingresses.iter().chain(self.routes.ingresses());
        let named = ingresses.flat_map(|(key, ingress)| {
            services(&ingress.spec.ingress)
                .into_iter()
                .map(|service| Key::new(&key.namespace, service))
        });
        let exported = self.exports.keys().cloned();
        let propagated = self.policies.keys();
        let propagated = propagated.flat_map(|key| self.policies.targets(key).iter().cloned());
        named.chain(exported).chain(propagated).collect()
    }

    /// Plans the export of `service`. Returns `None` while not every export is known.
    pub(crate) fn plan_export(
        &self,
        service: &Key,
        settings: &Settings,
        exporter: &Exporter,
    ) -> Option<Plan<LeftToOthers>> {
        if !self.exports.is_listed() || !self.policies.is_listed() {
            return None;
        }
        let policy = Key::new(&service.namespace, Exporter::policy_name(&service.name));
        let binding = self.binding(&service.namespace, &service.name);
        let facts = ExportFacts {
            need: self.need(service, settings),
            template: self.template(&service.namespace, &service.name),
            clusters: binding.map(bound_clusters),
            export: cached(&self.exports, service).map(AsRef::as_ref),
            policy: cached(&self.policies, &policy).map(AsRef::as_ref),
        };
        Some(exporter.plan(service, &facts))
    }

    fn need(&self, service: &Key, settings: &Settings) -> Need {
        let unread = self.ingresses.unread().iter();
        let mut may_be = unread
            .filter(|ingress| ingress.namespace == service.namespace)
            .count()
            > 0;
        may_be |= self.routes.may_name_services(&service.namespace);
        // Without its template, nothing is decided about an export.
        let template = self.templates.get(service);
        let is_local = template.is_some_and(|template| needs_local_endpoints(template));
        for key in &self.naming(service) {
            if let Some(ingress) = self.get(key) {
                let needs_endpoints = match backend_addresses(ingress, settings) {
                    BackendAddresses::Endpoints => true,
                    // They tell the nodes that serve.
                    BackendAddresses::LoadBalancers => is_local,
                    BackendAddresses::Ingresses => false,
                };
                if !needs_endpoints {
                    continue;
                }
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
        let all = self.naming(service);
        let ours = all
            .iter()
            .filter_map(|key| match self.decide(key, controller) {
                (ingress, Decision::Serve(_)) => ingress,
                _ => None,
            });
        ours.collect()
    }
}
