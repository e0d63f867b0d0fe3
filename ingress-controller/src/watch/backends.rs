//! The changes to what is behind an ingress, which wake those that name it.

use k8s_openapi::api::core::v1::{Secret, Service, ServicePort};
use k8s_openapi::api::discovery::v1::EndpointSlice;
use karmada_api::ResourceBinding;
use karmada_runtime::cache::Transition;
use karmada_runtime::watch::Decoded;
use kube::runtime::watcher::Event;
use objects::Key;
use traffic::endpoints::{slice_cluster, slice_service};
use traffic::ingress::http_route::served_key;
use traffic::ingress::{bound_clusters, bound_ingress, bound_service, same_reports};

use super::exports::life;
use crate::index::Index;

impl Index {
    /// Applies an event of a binding. If its Service is placed elsewhere, the ingresses that name the
    /// Service are woken.
    pub(crate) fn observe_binding(&mut self, event: Event<Decoded<ResourceBinding>>) -> Vec<Key> {
        // Bindings of other kinds are most of them, and would only take memory.
        let event = match event {
            Event::Apply(Decoded::Valid(binding)) | Event::InitApply(Decoded::Valid(binding))
                if bound_service(&binding).is_none() && bound_ingress(&binding).is_none() =>
            {
                Event::Delete(Decoded::Valid(binding))
            }
            event => event,
        };
        let mut woken = Vec::new();
        for Transition { key, old, new } in self.bindings.observe(event) {
            self.index_binding(&key);
            let versions = [old.as_deref(), new.as_deref()];
            let [before, now] = versions.map(|binding| {
                binding.map(|binding| (bound_service(binding), bound_clusters(binding)))
            });
            let same = match versions {
                [Some(old), Some(new)] => same_reports(old, new),
                _ => false,
            };
            if before == now && same {
                continue;
            }
            let ingresses = versions.into_iter().flatten().filter_map(bound_ingress);
            let ingresses = ingresses.map(|name| Key::new(&key.namespace, name));
            for ingress in ingresses {
                let route = served_key(&ingress);
                woken.extend(self.route(&route).map(|_| route));
                woken.push(ingress);
            }
            for service in versions.into_iter().flatten().filter_map(bound_service) {
                let service = Key::new(&key.namespace, service);
                self.index_service(&service);
                woken.extend(self.naming(&service));
                self.concern([service]);
            }
        }
        woken
    }

    /// Applies an event of a Service template. If its ports changed, the ingresses that name it are
    /// woken.
    pub(crate) fn observe_template(&mut self, event: Event<Decoded<Service>>) -> Vec<Key> {
        let Some(backends) = &mut self.backends else {
            return Vec::new();
        };
        let mut woken = Vec::new();
        for Transition { key, old, new } in backends.templates.observe(event) {
            let [old, new] = [old.as_deref(), new.as_deref()];
            if old.map(ports) != new.map(ports) {
                woken.extend(self.naming(&key));
            }
            if old.map(life) != new.map(life) {
                self.concern([key]);
            }
        }
        woken
    }

    /// Applies an event of a TLS Secret. If its data changed, the ingresses that name it are woken.
    pub(crate) fn observe_secret(&mut self, event: Event<Decoded<Secret>>) -> Vec<Key> {
        let backends = self.backends.as_mut();
        let Some(secrets) = backends.and_then(|backends| backends.secrets.as_mut()) else {
            return Vec::new();
        };
        let mut woken = Vec::new();
        for Transition { key, old, new } in secrets.observe(event) {
            let [before, now] = [&old, &new].map(|secret| secret.as_ref().map(|s| &s.data));
            if before != now {
                woken.extend(self.by_secret.sources(&key).cloned());
            }
        }
        woken
    }

    /// Applies an event of a slice. If its endpoints changed, the ingresses that name its Service are
    /// woken.
    pub(crate) fn observe_slice(&mut self, event: Event<Decoded<EndpointSlice>>) -> Vec<Key> {
        let Some(backends) = &mut self.backends else {
            return Vec::new();
        };
        let mut concerned = Vec::new();
        for Transition { key, old, new } in backends.slices.observe(event) {
            if let (Some(old), Some(new)) = (&old, &new)
                && same_endpoints(old, new)
            {
                continue;
            }
            backends.index_slice(&key);
            let versions = [&old, &new].into_iter().flatten();
            let services = versions.filter_map(|slice| slice_service(slice));
            concerned.extend(services.map(|service| Key::new(&key.namespace, service)));
        }
        let woken = concerned.iter().flat_map(|service| self.naming(service));
        woken.collect()
    }
}

fn ports(template: &Service) -> Option<&Vec<ServicePort>> {
    template.spec.as_ref()?.ports.as_ref()
}

fn same_endpoints(a: &EndpointSlice, b: &EndpointSlice) -> bool {
    slice_service(a) == slice_service(b)
        && slice_cluster(a) == slice_cluster(b)
        && a.address_type == b.address_type
        && a.endpoints == b.endpoints
        && a.ports == b.ports
}
