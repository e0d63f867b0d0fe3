//! The table of wakes: for each kind in the Karmada API, the ingresses, the exports and the classes of Gateways that its changes
//! wake. `changes` has which of them are concerned, `shared` the objects that the loops read.

mod changes;
pub(crate) mod routes;
mod shared;

use std::collections::BTreeSet;
use std::sync::Arc;

use fleet_api::Placement;
use k8s_openapi::api::core::v1::{Secret, Service};
use k8s_openapi::api::discovery::v1::EndpointSlice;
use k8s_openapi::api::networking::v1::IngressClass;
use karmada_api::{
    Cluster, MultiClusterIngress, PropagationPolicy, Remedy, ResourceBinding, ServiceExport,
};
use karmada_runtime::alarm;
use karmada_runtime::program::Program;
use karmada_runtime::wakes::Watch;
use karmada_runtime::watch::Decoded;
use kube::runtime::watcher::Config;
use kube::{Api, Client, Resource};
use objects::{Key, Scope};
use traffic::ClusterKind;
use traffic::endpoints::{COLLECTED, NODE_SLICES, collect_from_hub};
use traffic::remedy::{StoredCluster, cluster_of};

use self::changes::{has_other_data, is_another, is_flip, is_served_otherwise};
use self::shared::wake;
pub(crate) use self::shared::{Queues, SharedIndex};
use crate::index::{Bound, Index};

impl SharedIndex {
    /// Watches every kind that decides about ingresses.
    pub(crate) fn watch(self: &Arc<Self>, program: &mut Program, client: &Client) {
        self.ingresses().start(program, client, "ingresses");
        self.classes().start(program, client, "classes");
        let (kind, backends) = self.read(|index| (index.kind, index.backends));
        match kind {
            ClusterKind::Cluster => {
                self.clusters().start(program, client, "clusters");
                self.bindings().start(program, client, "bindings");
            }
            ClusterKind::MemberCluster => self.watch_hub(program, client),
        }
        let Some(backends) = backends else {
            return;
        };
        if backends.secrets {
            // No other type: those of clients and of registries are nobody's business.
            let tls = Config::default().fields("type=kubernetes.io/tls");
            let secrets = self.secrets();
            secrets.start_selected(program, client, "secrets", tls);
        }
        self.templates().start(program, client, "services");
        let collected = Config::default().labels(COLLECTED);
        let all = (Api::all(client.clone()), &());
        let read = move |mut slice: Decoded<EndpointSlice>| {
            if kind == ClusterKind::MemberCluster {
                collect_from_hub(slice.meta_mut());
            }
            slice
        };
        (self.slices()).start_as(program, "slices", all, collected, read);
        let nodes = Config::default().labels(NODE_SLICES);
        let node_slices = self.node_slices();
        node_slices.start_selected(program, client, "node_slices", nodes);
        // A hub need not have the kind: then nobody's decision blocks a cluster.
        let remedies = (Api::all(client.clone()), &());
        (self.remedies()).start_if_served(program, "remedies", remedies);
        let (shared, changed) = (Arc::clone(self), Arc::clone(&self.expiries));
        alarm::spawn(program, "expiries", changed, move |now| shared.expire(now));
    }

    /// Watches the members of a hub, and the placements that tell where Services run there. A hub of an early release has none
    /// in namespaces.
    fn watch_hub(&self, program: &mut Program, client: &Client) {
        let resource = ClusterKind::MemberCluster.resource();
        let members = (Api::all_with(client.clone(), &resource), &resource);
        let everything = Config::default();
        (self.clusters()).start_as(program, "clusters", members, everything, read_member);
        for (scope, name) in [
            (Scope::Cluster, "placements"),
            (Scope::Namespaced, "namespacedplacements"),
        ] {
            let placements = (Api::all_with(client.clone(), &scope), &scope);
            (self.placements(scope)).start_if_served(program, name, placements);
        }
    }

    /// Itself, and the exports of the Services that it names. The echo of our own write is a change, too, so that a decision on
    /// an older version is made again.
    fn ingresses(&self) -> Watch<Index, MultiClusterIngress> {
        let ingresses = self.queues.ingresses();
        let rows = Watch::new(&self.index, |index| &mut index.ingresses)
            .follows(Index::follow_ingress)
            .wakes_each(&ingresses, |_, change| [change.key.clone()])
            .wakes(&self.queues.exports, |index, _| index.take_concerned())
            // One that never decoded and is gone may be in the load balancer.
            .follows_known(move |_, mended| wake(&ingresses, mended));
        self.decisive(rows)
    }

    /// Those that it may decide about, and all exports.
    fn classes(&self) -> Watch<Index, IngressClass> {
        let rows = Watch::new(&self.index, |index| &mut index.classes)
            .follows(Index::follow_class)
            .wakes_each(&self.queues.ingresses(), |index, change| {
                index.of_class(&change.key.name)
            })
            .wakes(&self.queues.exports, |index, _| index.take_concerned());
        self.decisive(rows)
    }

    /// Those located there if its admission changes, those that are left, and no others.
    fn clusters(&self) -> Watch<Index, Cluster> {
        let enforcement = Arc::clone(&self.enforcement);
        let rows = Watch::new(&self.index, |index| &mut index.clusters).wakes_each(
            &self.queues.ingresses(),
            move |index, change| {
                if !change.differs(is_flip) {
                    return Vec::new();
                }
                let mut woken = index.located_in(&change.key.name);
                enforcement.arrive(&woken.iter().cloned().collect());
                woken.extend(index.left());
                woken
            },
        );
        self.decisive(rows)
    }

    /// Those that name its Service, or are served by its Ingress, if that is placed elsewhere or reported otherwise.
    fn bindings(&self) -> Watch<Index, ResourceBinding, Bound> {
        let rows = Watch::new(&self.index, |index| &mut index.bindings)
            .follows(Index::follow_binding)
            .wakes_each(&self.queues.ingresses(), |index, change| {
                index.behind(change)
            })
            .wakes(&self.queues.exports, |index, _| index.take_concerned());
        self.decisive(rows)
    }

    /// Those that name a Service which it brings, or has brought.
    fn placements(&self, scope: Scope) -> Watch<Index, Placement, Key> {
        let rows = Watch::new(&self.index, move |index| index.placements_mut(scope))
            .wakes_each(&self.queues.ingresses(), Index::follow_placement);
        self.decisive(rows)
    }

    /// Those that name it if it is served at other ports, and its export if it is another Service or needs other endpoints.
    fn templates(&self) -> Watch<Index, Service> {
        let rows = Watch::new(&self.index, |index| &mut index.templates)
            .follows(|index, change| {
                if change.differs(is_another) || change.differs(is_served_otherwise) {
                    index.concern([change.key.clone()]);
                }
            })
            .wakes_each(&self.queues.ingresses(), |index, change| {
                let is_news = change.differs(is_served_otherwise);
                let naming = is_news.then(|| index.naming(&change.key));
                naming.unwrap_or_default()
            })
            .wakes(&self.queues.exports, |index, _| index.take_concerned());
        self.decisive(rows)
    }

    /// Those that name it, if its data change.
    fn secrets(&self) -> Watch<Index, Secret> {
        let rows = Watch::new(&self.index, |index| &mut index.secrets).wakes_each(
            &self.queues.ingresses(),
            |index, change| {
                let is_news = change.differs(has_other_data);
                let naming = is_news.then(|| index.naming_secret(&change.key));
                naming.unwrap_or_default()
            },
        );
        self.decisive(rows)
    }

    /// Those that name its Service, if its endpoints change.
    fn slices(&self) -> Watch<Index, EndpointSlice, Key> {
        let rows = Watch::new(&self.index, |index| &mut index.slices)
            .wakes_each(&self.queues.ingresses(), |index, change| {
                index.collected(change)
            });
        self.decisive(rows)
    }

    /// Those that are served at nodes of its cluster, if these change.
    fn node_slices(&self) -> Watch<Index, EndpointSlice, String> {
        let rows = Watch::new(&self.index, |index| &mut index.node_slices)
            .wakes_each(&self.queues.ingresses(), |index, change| {
                index.at_nodes(change)
            });
        self.decisive(rows)
    }

    /// Those in the blocked clusters of people's decisions that change: whether these may be readmitted depends on it.
    fn remedies(&self) -> Watch<Index, Remedy> {
        let expiries = Arc::clone(&self.expiries);
        let rows = Watch::new(&self.index, |index| &mut index.remedies)
            .wakes_each(&self.queues.ingresses(), Index::redecide)
            .follows(move |_, _| expiries.notify_one());
        self.decisive(rows)
    }

    /// Its Service.
    pub(crate) fn exports(&self) -> Watch<Index, ServiceExport> {
        let rows = Watch::new(&self.index, |index| &mut index.exports)
            .wakes(&self.queues.exports, |_, change| [change.key.clone()]);
        self.exporting(rows)
    }

    /// The Service that is exported.
    pub(crate) fn policies(&self) -> Watch<Index, PropagationPolicy, Key> {
        let rows = Watch::new(&self.index, |index| &mut index.policies)
            .wakes(&self.queues.exports, |index, change| {
                index.policies.concerned(change)
            });
        self.exporting(rows)
    }

    /// Every export, once all of a kind are known, and while one cannot be read.
    fn exporting<K, T>(&self, rows: Watch<Index, K, T>) -> Watch<Index, K, T> {
        let exports = self.queues.exports.clone();
        rows.wakes_when_known(&self.queues.exports, |index, _| index.exportable())
            .follows_unread(move |index, _| exports.add_all(index.exportable()))
    }

    /// All, and every export, when an object appears that cannot be read, or is read or gone at last: any may depend on it.
    fn decisive<K, T>(&self, rows: Watch<Index, K, T>) -> Watch<Index, K, T> {
        let (ingresses, exports) = (self.queues.ingresses(), self.queues.exports.clone());
        let everything = move |index: &mut Index, objects: &BTreeSet<Key>| {
            if !objects.is_empty() {
                wake(&ingresses, &index.index_all());
                exports.add_all(index.exportable());
            }
        };
        rows.follows_known(everything.clone())
            .follows_unread(everything)
    }
}

fn read_member(stored: Decoded<StoredCluster>) -> Decoded<Cluster> {
    stored.map(|stored| cluster_of(ClusterKind::MemberCluster, stored))
}

#[cfg(test)]
mod tests;
