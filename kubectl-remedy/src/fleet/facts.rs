//! The questions of the rules of traffic to a fleet, answered from the objects that were read.

use std::collections::BTreeSet;
use std::net::IpAddr;
use std::sync::Arc;

use fleet_api::Placement;
use k8s_openapi::api::core::v1::{Secret, Service};
use k8s_openapi::api::discovery::v1::EndpointSlice;
use k8s_openapi::api::networking::v1::IngressClass;
use karmada_api::{Cluster, ResourceBinding};
use karmada_runtime::store::Store;
use kube::Resource;
use objects::Key;
use traffic::ClusterKind;
use traffic::endpoints::slice_service;
use traffic::ingress::{
    Cached, ClusterFacts, Facts, binding_names, binding_of, decided_scope, placed_services,
};

use super::FleetSnapshot;

impl ClusterFacts for FleetSnapshot {
    fn cluster(&self, name: &str) -> Cached<&Cluster> {
        find(&self.clusters, &Key::cluster_scoped(name))
    }

    fn is_blocked_manually(&self, cluster: &str) -> bool {
        let mut remedies = self.remedies.iter();
        // One that cannot be read may be a person's decision.
        !self.remedies.unread().is_empty()
            || remedies.any(|(_, remedy)| {
                decided_scope(remedy, self.now).is_some_and(|scope| scope.covers(cluster))
            })
    }
}

impl Facts for FleetSnapshot {
    fn classes(&self) -> impl Iterator<Item = Cached<&IngressClass>> {
        let read = self.classes.iter();
        read.map(|(_, class)| Cached::Present(&**class))
            .chain(self.classes.unread().iter().map(|_| Cached::Unread))
    }

    fn class(&self, name: &str) -> Cached<&IngressClass> {
        find(&self.classes, &Key::cluster_scoped(name))
    }

    fn cluster_kind(&self) -> ClusterKind {
        self.kind
    }

    fn placements(&self, service: &Key) -> Option<impl Iterator<Item = &Placement>> {
        let mut all = self.placements.iter();
        let is_read = all.all(|placements| placements.unread().is_empty());
        let placements = self.placements.iter().flat_map(Store::iter);
        let placements = placements.map(|(_, placement)| &**placement);
        let bringing =
            placements.filter(move |placement| placed_services(placement).contains(service));
        is_read.then_some(bringing)
    }

    fn binding(&self, namespace: &str, service: &str) -> Cached<&ResourceBinding> {
        let here = self.bindings.iter();
        let here = here.filter(|(key, _)| key.namespace == namespace);
        if let Some(binding) = binding_of(here.map(|(_, binding)| &**binding), service) {
            return Cached::Present(binding);
        }
        let mut keys = binding_names(service).map(|name| Key::new(namespace, name));
        if keys.any(|key| self.bindings.unread().contains(&key)) {
            Cached::Unread
        } else {
            Cached::Absent
        }
    }

    /// Without templates, the addresses that members report say nothing, so they are left out.
    fn ingress_binding(&self, _: &str, _: &str) -> Cached<&ResourceBinding> {
        Cached::Unread
    }

    fn addresses(&self, _: &str) -> Option<Cached<Vec<IpAddr>>> {
        Some(Cached::Unread)
    }

    fn nodes(&self, _: &str) -> Cached<Vec<Arc<EndpointSlice>>> {
        Cached::Unread
    }

    /// Nothing that is shown here depends on templates, so they are not read.
    fn template(&self, _: &str, _: &str) -> Cached<&Service> {
        Cached::Unread
    }

    /// Nothing that is shown here depends on Secrets, so they are not read.
    fn secret(&self, _: &str, _: &str) -> Cached<Arc<Secret>> {
        Cached::Unread
    }

    fn slices(&self, namespace: &str, service: &str) -> Vec<Arc<EndpointSlice>> {
        let service = Key::new(namespace, service);
        let all = self.slices.iter().map(|(_, slice)| slice);
        all.filter(|slice| slice_service(self.kind, slice).as_ref() == Some(&service))
            .cloned()
            .collect()
    }

    fn unread_slices(&self, namespace: &str) -> BTreeSet<String> {
        let unread = self.slices.unread().iter();
        // On a hub, those of all namespaces are in one.
        let is_of =
            |key: &&Key| self.kind == ClusterKind::MemberCluster || key.namespace == namespace;
        unread.filter(is_of).map(|key| key.name.clone()).collect()
    }
}

fn find<'a, K: Resource>(store: &'a Store<K>, key: &Key) -> Cached<&'a K> {
    match store.get(key) {
        Some(object) => Cached::Present(object),
        None if store.unread().contains(key) => Cached::Unread,
        None => Cached::Absent,
    }
}
