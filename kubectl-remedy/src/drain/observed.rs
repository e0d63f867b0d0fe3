//! The progress of a drain, as watches show it.

use std::collections::BTreeSet;
use std::fmt::Debug;
use std::future::pending;
use std::time::Duration;

use futures::stream::{BoxStream, SelectAll, select_all};
use futures::{FutureExt, StreamExt};
use karmada_api::gateway_api::HttpRoute;
use karmada_api::{ClusterResourceBinding, MultiClusterIngress, ResourceBinding};
use karmada_runtime::store::Store;
use karmada_runtime::watch::Decoded;
use kube::api::DynamicObject;
use kube::runtime::WatchStreamExt;
use kube::runtime::watcher::{Config, Event, watcher};
use kube::{Api, Client, Resource};
use propagation_rules::binding_ref::BindingRef;
use propagation_rules::schedule::drain::{Remaining, remaining};
use serde::de::DeserializeOwned;
use tokio::time::timeout;
use traffic::ingress::http_route::reported_ingress;

use super::progress::{Left, Progress};
use crate::error::Error;
use crate::lists::serves;
use crate::status::{blocked, is_located};
use crate::waiting::give_up;

/// The time in which the traffic is to leave before workloads do, unless `--wait` says another.
pub(super) const TRAFFIC_LIMIT: Duration = Duration::from_mins(2);

/// A change that a watch shows.
type Change = Box<dyn FnOnce(&mut State) + Send>;

/// The objects that tell the rest.
#[derive(Debug, Default)]
pub(super) struct State {
    pub(super) bindings: Store<ResourceBinding>,
    pub(super) cluster_bindings: Store<ClusterResourceBinding>,
    ingresses: Store<MultiClusterIngress>,
    routes: Store<HttpRoute>,
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
    pub(super) async fn new(client: &Client) -> Result<Self, Error> {
        let mut observed = Self::of_traffic(client).await?;
        let changes = &mut observed.changes;
        changes.push(watch(client, |state| &mut state.bindings));
        changes.push(watch(client, |state| &mut state.cluster_bindings));
        Ok(observed)
    }

    /// Begins to watch only the objects that tell of traffic.
    pub(super) async fn of_traffic(client: &Client) -> Result<Self, Error> {
        let mut changes = vec![watch(client, |state| &mut state.ingresses)];
        if serves::<HttpRoute>(client).await? {
            changes.push(watch(client, |state| &mut state.routes));
        }
        Ok(Self {
            state: State::default(),
            changes: select_all(changes),
        })
    }

    /// Waits for changes, at first until all objects are known.
    pub(super) async fn changed(&mut self) -> Result<(), Error> {
        loop {
            let Some(change) = self.changes.next().await else {
                return pending().await;
            };
            change?(&mut self.state);
            // Events that have come at the same time are one change.
            while let Some(Some(change)) = self.changes.next().now_or_never() {
                change?(&mut self.state);
            }
            if self.is_complete() {
                return Ok(());
            }
        }
    }

    /// Shows the rest until there is none, or the time is over. Returns the steps of which something is left.
    pub(super) async fn until_none(
        &mut self,
        progress: &mut Progress,
        limit: Duration,
        left: impl Fn(&State) -> Vec<Left>,
    ) -> Result<Vec<Left>, Error> {
        let watching = async {
            loop {
                if self.is_complete() {
                    let left = left(&self.state);
                    progress.show(&left);
                    if left.iter().all(|left| left.items.is_empty()) {
                        return Ok::<_, Error>(());
                    }
                }
                self.changed().await?;
            }
        };
        if let Ok(ended) = timeout(limit, watching).await {
            ended?;
            return Ok(Vec::new());
        }
        if !self.is_complete() {
            let problem = "the API has not shown in time what is there; try again";
            return Err(Error::Unusable(problem.to_owned()));
        }
        Ok(left(&self.state))
    }

    /// Returns `true` once all objects are known.
    pub(super) fn is_complete(&self) -> bool {
        self.state.listed.len() >= self.changes.len()
    }
}

fn watch<K>(
    client: &Client,
    store: fn(&mut State) -> &mut Store<K>,
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
            drop(store(state).observe(event));
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

    /// Returns the ingresses and routes that still send requests to the cluster.
    pub(super) fn traffic(&self, cluster: &str) -> Left {
        let ingresses = self.ingresses.iter();
        let ingresses = ingresses.filter(|(_, ingress)| sends(ingress, cluster));
        let ingresses = ingresses.map(|(key, _)| format!("MultiClusterIngress {key}"));
        let routes = self.routes.iter().filter(|(_, route)| {
            reported_ingress(route).is_some_and(|ingress| sends(&ingress, cluster))
        });
        let routes = routes.map(|(key, _)| format!("HTTPRoute {key}"));
        let sending = ingresses.chain(routes);
        Left {
            step: "traffic",
            items: sending
                .map(|one| format!("{one} still sends requests there"))
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

/// Returns `true` if an ingress sends requests to the cluster, by its status.
fn sends(ingress: &MultiClusterIngress, cluster: &str) -> bool {
    is_located(ingress, cluster) && !blocked(ingress).iter().any(|name| name == cluster)
}

/// Takes an object in, unless it cannot be read.
fn apply<K>(store: &mut Store<K>, object: DynamicObject)
where
    K: Resource + Clone + Default + DeserializeOwned,
{
    if let Ok(object) = object.try_parse() {
        drop(store.observe(Event::Apply(Decoded::Valid(object))));
    }
}

/// Returns the kind, namespace and name of a binding's template.
pub(super) fn template(binding: BindingRef<'_>) -> String {
    let resource = &binding.spec.resource;
    match resource.namespace.as_deref() {
        Some(namespace) if !namespace.is_empty() => {
            format!("{} {namespace}/{}", resource.kind, resource.name)
        }
        _ => format!("{} {}", resource.kind, resource.name),
    }
}

#[cfg(test)]
mod tests {
    use lab_parts::test_api::TestApi;
    use serde_json::{from_value, json};

    use super::*;
    use crate::fixtures::http_routes;
    use crate::fleet::put;

    /// Routes that the user may not read may send requests: they are not taken for none.
    #[tokio::test]
    async fn unreadable_routes_are_an_error() {
        let installed = karmada_api::crd::installed().unwrap().into_iter();
        let api = TestApi::with_kinds(installed.chain([http_routes()]));
        let routes = "GET /apis/gateway.networking.k8s.io/v1/httproutes";
        api.refuse(routes, 403, "Forbidden", "no right");
        let mut observed = Observed::of_traffic(&api.client()).await.unwrap();
        let error = observed.changed().await.unwrap_err().to_string();
        assert!(error.contains("watch httproutes"), "{error}");
    }

    /// A route sends requests to a cluster as an ingress does: until its status says that the cluster is blocked.
    #[test]
    fn route_sends_until_blocked() {
        let mut state = State::default();
        let sending = vec!["HTTPRoute shop/web still sends requests there"];
        for (blocked, clusters, left) in [("False", "", sending), ("True", "m1", vec![])] {
            let conditions = json!([
                { "type": "networking.karmada-rs.io/Located", "status": "True", "message": "web: m1,m2" },
                { "type": "networking.karmada-rs.io/TrafficBlocked", "status": blocked,
                    "message": clusters },
            ]);
            let entry = json!({ "controllerName": "karmada-rs.io/multi-cluster",
                "conditions": conditions });
            let route = json!({ "metadata": { "namespace": "shop", "name": "web" },
                "spec": { "parentRefs": [] }, "status": { "parents": [entry] } });
            put(&mut state.routes, from_value(route).unwrap());
            assert_eq!(state.traffic("m1").items, left);
            assert_eq!(state.traffic("m3").items, [""; 0]);
        }
    }
}
