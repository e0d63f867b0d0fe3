//! The changes that wake a cluster.

use std::sync::Arc;

use k8s_openapi::api::coordination::v1::Lease;
use karmada_api::names::{CLUSTER_NAMESPACE, NODE_PUBLISHER, SLICE_MANAGED_BY};
use karmada_api::{ClusterView, cluster_of_execution_namespace};
use karmada_runtime::cache::Transition;
use karmada_runtime::members::MemberQueues;
use karmada_runtime::partial::Partial;
use karmada_runtime::program::Program;
use karmada_runtime::queue::Queue;
use karmada_runtime::wakes::Watch;
use karmada_runtime::watch::Decoded;
use kube::runtime::watcher::{Config, Event};
use kube::{Api, Client};
use objects::Key;
use parking_lot::Mutex;

use crate::fleet::Fleet;
use crate::index::Index;
use crate::metrics::Reachable;
use crate::stored::{StoredCluster, Targets};

/// The parts of the program that changes of clusters reach besides their loop.
pub(crate) struct Probing {
    pub(crate) queues: MemberQueues<Key>,
    pub(crate) fleet: Arc<Fleet>,
    pub(crate) reachable: Reachable,
}

/// Watches every kind that decides about clusters.
pub(crate) fn watch(
    program: &mut Program,
    client: &Client,
    index: &Arc<Mutex<Index>>,
    queue: &Queue<Key>,
    probing: Probing,
) {
    clusters(index, queue, probing).start(program, client, "clusters");
    let heard = Arc::clone(index);
    let leases = Api::<Decoded<Lease>>::namespaced(client.clone(), CLUSTER_NAMESPACE);
    program.watch("leases", leases, Config::default(), move |event| {
        if let Event::Apply(Decoded::Valid(lease)) | Event::InitApply(Decoded::Valid(lease)) = event
        {
            heard.lock().observe_lease(&lease);
        }
    });
    Watch::new(index, |index| &mut index.namespaces)
        .wakes(queue, |_, change| {
            cluster_of_execution_namespace(&change.key.name).map(Key::cluster_scoped)
        })
        .start(program, client, "namespaces");
    Watch::new(index, |index| &mut index.bindings)
        .wakes(queue, |_, change| left(change))
        .start(program, client, "resourcebindings");
    Watch::new(index, |index| &mut index.cluster_bindings)
        .wakes(queue, |_, change| left(change))
        .start(program, client, "clusterresourcebindings");
}

/// Watches the slices in which nodes are published.
pub(crate) fn watch_node_slices(
    program: &mut Program,
    client: &Client,
    index: &Arc<Mutex<Index>>,
    queue: &Queue<Key>,
) {
    let published = format!("{SLICE_MANAGED_BY}={NODE_PUBLISHER}");
    Watch::new(index, |index| &mut index.node_slices)
        .wakes(queue, |index, change| {
            let clusters = index.node_slices.concerned(change);
            clusters.into_iter().map(Key::cluster_scoped)
        })
        .start_selected(
            program,
            client,
            "node_slices",
            Config::default().labels(&published),
        );
}

/// Watches one cluster alone, from inside it.
pub(crate) fn watch_own(
    program: &mut Program,
    (client, cluster): (&Client, &str),
    index: &Arc<Mutex<Index>>,
    queue: &Queue<Key>,
    probing: Probing,
) {
    let own = Config::default().fields(&format!("metadata.name={cluster}"));
    let all = Api::all(client.clone());
    clusters(index, queue, probing).start_elsewhere(program, "clusters", all, own);
}

fn clusters(
    index: &Arc<Mutex<Index>>,
    queue: &Queue<Key>,
    probing: Probing,
) -> Watch<Index, StoredCluster> {
    Watch::new(index, |index| &mut index.clusters)
        .follows(move |index, change| {
            let versions = [&change.old, &change.new];
            let [old, new] = versions.map(|version| Some(version.as_ref()?.part.view()));
            index.follow(&change.key.name, old.as_ref(), new.as_ref());
            probing.follow(&change.key, old, new);
        })
        // One that is gone has nothing that is to be written.
        .wakes(queue, |_, change| {
            change.new.is_some().then(|| change.key.clone())
        })
}

impl Probing {
    /// Probes a cluster at once if it is reached in another way, and no more once it is gone.
    fn follow(&self, key: &Key, old: Option<ClusterView>, new: Option<ClusterView>) {
        let Some(new) = new else {
            self.queues.remove(&key.name);
            self.fleet.disconnect(&key.name);
            self.reachable.forget(&key.name);
            return;
        };
        let is_probed_alike = old.is_some_and(|old| {
            old.spec.has_same_access(&new.spec)
                && old.spec.sync_mode == new.spec.sync_mode
                && old.metadata.deletion_timestamp == new.metadata.deletion_timestamp
        });
        if !is_probed_alike {
            self.queues.of(&key.name).add(key.clone());
        }
    }
}

/// Returns the clusters that a binding has left.
fn left<K>(change: &Transition<Partial<K, Targets>>) -> Vec<Key> {
    let now = change.new.as_ref().map(|new| &new.part.0);
    let before = change.old.iter().flat_map(|old| &old.part.0);
    let left = before.filter(|name| !now.is_some_and(|now| now.contains(*name)));
    left.map(Key::cluster_scoped).collect()
}
