//! The nodes and the pods of a member, kept known by watches.

use std::fmt::Debug;

use futures::StreamExt;
use k8s_openapi::api::core::v1::{Node, Pod};
use karmada_api::cluster_view::ResourceSummary;
use karmada_rules::cluster::{NodeCapacity, PodRequest, summary};
use karmada_runtime::cache::Cache;
use karmada_runtime::watch::{Decoded, events};
use kube::runtime::watcher::{Config, Event};
use kube::{Api, Client, Resource};
use parking_lot::Mutex;
use serde_json::Value;

use crate::stored::Stored;

/// The nodes and the pods of a member.
#[derive(Default)]
pub(crate) struct Usage {
    nodes: Mutex<Listed<Node, NodeCapacity>>,
    pods: Mutex<Listed<Pod, PodRequest>>,
}

/// Objects of one kind, which count once all of them are known.
struct Listed<K, P> {
    objects: Cache<Stored<K, P>>,
    is_complete: bool,
}

impl<K, P> Default for Listed<K, P> {
    fn default() -> Self {
        Self {
            objects: Cache::default(),
            is_complete: false,
        }
    }
}

impl Usage {
    /// Keeps nodes and pods known. It never ends; without the right to list them, they stay unknown.
    pub(crate) async fn watch(&self, client: Client) {
        let pods = keep(client.clone(), &self.pods);
        tokio::join!(keep(client, &self.nodes), pods);
    }

    /// Returns the capacity, once all nodes and pods are known.
    pub(crate) fn summary(&self) -> Option<ResourceSummary> {
        let (nodes, pods) = (self.nodes.lock(), self.pods.lock());
        let is_known = nodes.is_complete && pods.is_complete;
        let (nodes, pods) = (nodes.objects.iter(), pods.objects.iter());
        is_known.then(|| {
            summary(
                nodes.map(|(_, node)| &node.part),
                pods.map(|(_, pod)| &pod.part),
            )
        })
    }
}

async fn keep<K, P>(client: Client, listed: &Mutex<Listed<K, P>>)
where
    K: Resource<DynamicType = ()> + Clone + Debug + Default + Send + Sync + 'static,
    P: for<'a> From<&'a Value> + Clone + Debug + Default + Send + Sync + 'static,
{
    let all: Api<Decoded<Stored<K, P>>> = Api::all(client);
    let mut changes = std::pin::pin!(events(all, Config::default()));
    while let Some(event) = changes.next().await {
        let mut listed = listed.lock();
        listed.is_complete |= matches!(event, Event::InitDone);
        listed.objects.observe(event);
    }
}
