//! Which ingresses and exports a change concerns.

use std::collections::BTreeSet;

use fleet_api::Placement;
use jiff::Timestamp;
use k8s_openapi::api::core::v1::{Secret, Service};
use k8s_openapi::api::discovery::v1::EndpointSlice;
use k8s_openapi::api::networking::v1::IngressClass;
use karmada_api::{Cluster, MultiClusterIngress, Remedy, ResourceBinding};
use karmada_runtime::cache::Transition;
use objects::{Key, Metadata};
use traffic::endpoints::{slice_cluster, slice_service};
use traffic::ingress::http_route::served_key;
use traffic::ingress::{
    Admission, BACKEND_ADDRESSES_ANNOTATION, bound_clusters, bound_service, has_node_ports,
    needs_local_endpoints, only_family, placed_services, same_reports, services,
};
use traffic::remedy::Scope;

use crate::index::{Bound, Index};

impl Index {
    /// Takes in the references of an ingress, and notes the exports of its Services.
    pub(super) fn follow_ingress(&mut self, change: &Transition<MultiClusterIngress>) {
        if change.differs(refers_otherwise) {
            self.index_ingress(&change.key);
        }
        if change.differs(routes_otherwise) {
            self.concern_services(&change.key, change.versions());
        }
    }

    /// Notes the exports of the Services that these versions of the ingress `key` name.
    pub(super) fn concern_services<'a>(
        &mut self,
        key: &Key,
        versions: impl Iterator<Item = &'a MultiClusterIngress>,
    ) {
        let named = versions.flat_map(|ingress| services(&ingress.spec.ingress));
        self.concern(named.map(|service| Key::new(&key.namespace, service)));
    }

    /// Notes all exports if a class may decide about an ingress.
    pub(super) fn follow_class(&mut self, change: &Transition<IngressClass>) {
        if !self.of_class(&change.key.name).is_empty() {
            self.concern_all();
        }
    }

    /// Takes in where a Service runs now, and notes its export.
    pub(super) fn follow_binding(&mut self, change: &Transition<ResourceBinding>) {
        if !change.differs(is_elsewhere) {
            return;
        }
        for bound in self.bindings.concerned(change) {
            if let Bound::Service(service) = bound {
                for ingress in self.naming(&service) {
                    self.index_ingress(&ingress);
                }
                self.concern([service]);
            }
        }
    }

    /// Returns the ingresses behind which is the object of a binding, if that is placed elsewhere.
    pub(super) fn behind(&self, change: &Transition<ResourceBinding>) -> Vec<Key> {
        let mut woken = Vec::new();
        if !change.differs(is_elsewhere) {
            return woken;
        }
        for bound in self.bindings.concerned(change) {
            match bound {
                Bound::Service(service) => woken.extend(self.naming(&service)),
                Bound::Ingress(ingress) => {
                    let route = served_key(&ingress);
                    woken.extend(self.route(&route).map(|_| route));
                    woken.push(ingress);
                }
            }
        }
        woken
    }

    /// Takes in where a placement brings Services now, and returns the ingresses that name one of them.
    pub(super) fn follow_placement(&mut self, change: &Transition<Placement>) -> Vec<Key> {
        let services: BTreeSet<Key> = change.versions().flat_map(placed_services).collect();
        let naming = services.iter().flat_map(|service| self.naming(service));
        let woken: Vec<Key> = naming.collect();
        for ingress in &woken {
            self.index_ingress(ingress);
        }
        woken
    }

    /// Returns the ingresses of a Service with other endpoints.
    pub(super) fn collected(&self, change: &Transition<EndpointSlice>) -> Vec<Key> {
        let service = |slice: &EndpointSlice| slice_service(self.kind, slice);
        if !change.differs(|old, new| service(old) != service(new) || has_other_endpoints(old, new))
        {
            return Vec::new();
        }
        let services = self.slices.concerned(change);
        let naming = services.iter().flat_map(|service| self.naming(service));
        naming.collect()
    }

    /// Returns the ingresses that are served at nodes of the cluster of a slice, if these change.
    pub(super) fn at_nodes(&self, change: &Transition<EndpointSlice>) -> Vec<Key> {
        if !change.differs(has_other_endpoints) {
            return Vec::new();
        }
        let clusters = self.node_slices.concerned(change);
        let located = clusters.iter().flat_map(|cluster| self.located_in(cluster));
        located.filter(|key| self.may_be_at_nodes(key)).collect()
    }

    /// Returns `true` if a Service that the ingress `key` names has node ports.
    fn may_be_at_nodes(&self, key: &Key) -> bool {
        let ingress = self.get(key);
        let mut named = ingress
            .into_iter()
            .flat_map(|ingress| services(&ingress.spec.ingress));
        named.any(|service| {
            let template = self.templates.get(&Key::new(&key.namespace, service));
            template.is_some_and(|template| has_node_ports(template))
        })
    }

    /// Takes in a person's decision, and returns the ingresses in blocked clusters that it concerns.
    pub(super) fn redecide(&mut self, change: &Transition<Remedy>) -> Vec<Key> {
        let (old, new) = (change.old.as_deref(), change.new.as_deref());
        let concerned = self.decided.change(&change.key.name, old, new);
        self.blocked_in(&concerned)
    }

    /// Takes in a look at the clock, and returns the ingresses in blocked clusters of the Remedies that have expired since. Their
    /// clusters may stay blocked by a condition, and be readmitted then, which no change of an object shows.
    pub(super) fn expire(&mut self, now: Timestamp) -> Vec<Key> {
        let remedies = &self.remedies;
        let concerned = self.decided.look(now, |name| {
            let remedy = remedies.get(&Key::cluster_scoped(name));
            remedy.map(|remedy| &**remedy)
        });
        self.blocked_in(&concerned)
    }

    /// Returns the ingresses in blocked clusters that one of `scopes` covers.
    fn blocked_in(&self, scopes: &[Scope]) -> Vec<Key> {
        if scopes.is_empty() {
            return Vec::new();
        }
        let blocked = self.clusters.iter().filter(|(key, cluster)| {
            Admission::of(cluster) == Admission::Blocked
                && scopes.iter().any(|scope| scope.covers(&key.name))
        });
        blocked
            .flat_map(|(key, _)| self.located_in(&key.name))
            .chain(self.left())
            .collect()
    }
}

/// Returns `true` if a cluster gets requests now, or no more. A blocked one may be readmitted, but not one that begins to
/// leave.
pub(super) fn is_flip(old: &Cluster, new: &Cluster) -> bool {
    let [before, now] = [old, new].map(|cluster| {
        let is_leaving = cluster.metadata.deletion_timestamp.is_some();
        (Admission::of(cluster), is_leaving)
    });
    before != now
}

/// Returns `true` if an ingress refers to other objects.
fn refers_otherwise(old: &MultiClusterIngress, new: &MultiClusterIngress) -> bool {
    let [before, now] = [old, new].map(|ingress| {
        let status = ingress.status.as_ref();
        let locations = status.and_then(|status| status.service_locations.as_ref());
        (&ingress.spec, locations)
    });
    before != now
}

/// Returns `true` if the fields that decide about the exports of an ingress's Services differ.
fn routes_otherwise(old: &MultiClusterIngress, new: &MultiClusterIngress) -> bool {
    let [before, now] = [old, new].map(|ingress| {
        let metadata = &ingress.metadata;
        (
            &ingress.spec,
            metadata.annotation(BACKEND_ADDRESSES_ANNOTATION),
            &metadata.finalizers,
            &metadata.deletion_timestamp,
        )
    });
    before != now
}

/// Returns `true` if the object of a binding is another, in other clusters, or reported otherwise.
fn is_elsewhere(old: &ResourceBinding, new: &ResourceBinding) -> bool {
    let [before, now] = [old, new].map(|binding| (bound_service(binding), bound_clusters(binding)));
    before != now || !same_reports(old, new)
}

/// Returns `true` if two Services of a name are not the same.
pub(super) fn is_another(old: &Service, new: &Service) -> bool {
    let [before, now] = [old, new].map(|service| {
        let metadata = &service.metadata;
        (&metadata.uid, &metadata.deletion_timestamp)
    });
    before != now
}

/// Returns `true` if a Service has other ports, or is served in another way.
pub(super) fn is_served_otherwise(old: &Service, new: &Service) -> bool {
    let [before, now] = [old, new].map(|service| {
        let spec = service.spec.as_ref();
        let ports = spec.and_then(|spec| spec.ports.as_ref());
        (
            ports,
            has_node_ports(service),
            needs_local_endpoints(service),
            only_family(service),
        )
    });
    before != now
}

pub(super) fn has_other_data(old: &Secret, new: &Secret) -> bool {
    old.data != new.data
}

fn has_other_endpoints(old: &EndpointSlice, new: &EndpointSlice) -> bool {
    slice_cluster(old) != slice_cluster(new)
        || old.address_type != new.address_type
        || old.endpoints != new.endpoints
        || old.ports != new.ports
}
