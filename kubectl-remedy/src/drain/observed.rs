//! What a drain waits for, as watches show it.

use std::collections::BTreeSet;
use std::fmt::Debug;
use std::future::pending;

use futures::stream::{BoxStream, SelectAll, select_all};
use futures::{FutureExt, StreamExt};
use karmada_api::{ClusterResourceBinding, MultiClusterIngress, ResourceBinding};
use karmada_runtime::cache::Cache;
use karmada_runtime::watch::Decoded;
use kube::api::DynamicObject;
use kube::runtime::WatchStreamExt;
use kube::runtime::watcher::{Config, Event, watcher};
use kube::{Api, Client, Resource};
use propagation_rules::binding_ref::BindingRef;
use propagation_rules::schedule::drain::{Remaining, remaining};
use serde::de::DeserializeOwned;

use super::progress::Left;
use crate::error::Error;
use crate::status::{blocked, is_located};
use crate::waiting::give_up;

/// A change that a watch shows.
type Change = Box<dyn FnOnce(&mut State) + Send>;

/// The objects that tell what is left.
#[derive(Debug, Default)]
pub(super) struct State {
    pub(super) bindings: Cache<ResourceBinding>,
    pub(super) cluster_bindings: Cache<ClusterResourceBinding>,
    ingresses: Cache<MultiClusterIngress>,
    /// The kinds that were listed.
    listed: BTreeSet<String>,
}

/// The watches of these objects.
pub(super) struct Observed {
    pub(super) state: State,
    changes: SelectAll<BoxStream<'static, Result<Change, Error>>>,
}

impl Observed {
    /// Begins to watch.
    pub(super) fn new(client: &Client) -> Self {
        let changes = [
            watch(client, |state| &mut state.bindings),
            watch(client, |state| &mut state.cluster_bindings),
            watch(client, |state| &mut state.ingresses),
        ];
        Self {
            state: State::default(),
            changes: select_all(changes),
        }
    }

    /// Waits for changes, at first until all objects are known.
    pub(super) async fn changed(&mut self) -> Result<(), Error> {
        loop {
            let Some(change) = self.changes.next().await else {
                return pending().await;
            };
            change?(&mut self.state);
            // What has come at the same time is one change.
            while let Some(Some(change)) = self.changes.next().now_or_never() {
                change?(&mut self.state);
            }
            if self.is_complete() {
                return Ok(());
            }
        }
    }

    /// Returns `true` once all objects are known.
    pub(super) fn is_complete(&self) -> bool {
        self.state.listed.len() >= self.changes.len()
    }
}

fn watch<K>(
    client: &Client,
    cache: fn(&mut State) -> &mut Cache<K>,
) -> BoxStream<'static, Result<Change, Error>>
where
    K: Resource<DynamicType = ()> + Clone + Default + DeserializeOwned + Debug + Send + 'static,
{
    let objects: Api<Decoded<K>> = Api::all(client.clone());
    let events = watcher(objects, Config::default()).default_backoff();
    let changes = events.map(move |event| -> Result<Change, Error> {
        let event = match event {
            Ok(event) => event,
            Err(error) => {
                give_up::<K>(error)?;
                let none: Change = Box::new(|_| {});
                return Ok(none);
            }
        };
        let change: Change = Box::new(move |state| {
            if matches!(event, Event::InitDone) {
                state.listed.insert(K::plural(&()).into_owned());
            }
            drop(cache(state).observe(event));
        });
        Ok(change)
    });
    changes.boxed()
}

impl State {
    /// Takes in a binding as a write has left it.
    pub(super) fn observe(&mut self, binding: DynamicObject) {
        if binding.metadata.namespace.is_some() {
            apply(&mut self.bindings, binding);
        } else {
            apply(&mut self.cluster_bindings, binding);
        }
    }

    /// Iterates over the bindings of both scopes.
    pub(super) fn all_bindings(&self) -> impl Iterator<Item = BindingRef<'_>> {
        let namespaced = self.bindings.iter();
        let namespaced = namespaced.map(|(_, binding)| BindingRef::from(&**binding));
        let others = self.cluster_bindings.iter();
        namespaced.chain(others.map(|(_, binding)| BindingRef::from(&**binding)))
    }

    /// Returns the ingresses that still send requests to the cluster.
    pub(super) fn traffic(&self, cluster: &str) -> Left {
        let sending = self.ingresses.iter().filter(|(_, ingress)| {
            let is_blocked = blocked(ingress).iter().any(|name| name == cluster);
            is_located(ingress, cluster) && !is_blocked
        });
        Left {
            step: "traffic",
            items: sending
                .map(|(key, _)| format!("MultiClusterIngress {key} still sends requests there"))
                .collect(),
        }
    }

    /// Returns the workloads that are still in the cluster, but for those that stay.
    pub(super) fn workloads(&self, cluster: &str) -> Left {
        let left = self.all_bindings().filter_map(|binding| {
            let remaining = remaining(binding, cluster)?;
            let is_going = remaining != Remaining::Staying;
            is_going.then(|| format!("{} {remaining}", template(binding)))
        });
        Left {
            step: "workloads",
            items: left.collect(),
        }
    }

    /// Returns the number of workloads that stay.
    pub(super) fn staying(&self, cluster: &str) -> usize {
        let bindings = self.all_bindings();
        let staying =
            bindings.filter(|binding| remaining(*binding, cluster) == Some(Remaining::Staying));
        staying.count()
    }
}

/// Takes an object in, unless it cannot be read.
fn apply<K>(cache: &mut Cache<K>, object: DynamicObject)
where
    K: Resource + Clone + Default + DeserializeOwned,
{
    if let Ok(object) = object.try_parse() {
        drop(cache.observe(Event::Apply(Decoded::Valid(object))));
    }
}

/// Returns the kind, namespace and name of what a binding is of.
pub(super) fn template(binding: BindingRef<'_>) -> String {
    let resource = &binding.spec.resource;
    match resource.namespace.as_deref() {
        Some(namespace) if !namespace.is_empty() => {
            format!("{} {namespace}/{}", resource.kind, resource.name)
        }
        _ => format!("{} {}", resource.kind, resource.name),
    }
}
