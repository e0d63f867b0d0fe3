//! The objects of the Karmada API that decide about traffic, read once.

use std::collections::BTreeSet;
use std::fmt::Debug;
use std::net::IpAddr;
use std::sync::Arc;

use jiff::Timestamp;
use k8s_openapi::NamespaceResourceScope;
use k8s_openapi::api::core::v1::{Secret, Service};
use k8s_openapi::api::discovery::v1::EndpointSlice;
use k8s_openapi::api::networking::v1::IngressClass;
use karmada_api::gateway_api::HttpRoute;
use karmada_api::{Cluster, MultiClusterIngress, Remedy, ResourceBinding};
use karmada_runtime::store::Store;
use karmada_runtime::watch::Decoded;
use kube::api::{ListParams, ObjectList};
use kube::runtime::watcher::Event;
use kube::{Api, Client, Resource};
use objects::Key;
use serde::de::DeserializeOwned;
use traffic::endpoints::{COLLECTED, slice_service};
use traffic::ingress::http_route::{reported_ingress, route_of};
use traffic::ingress::{
    Cached, ClusterFacts, Decision, Desired, Facts, Ownership, Settings, binding_names, binding_of,
    decide, decide_owned, decided_scope, desired,
};
use traffic::remedy::{Cause, Forecast, MaxBlocked, cause, forecast};

use crate::error::Error;

/// The number of objects in a page of a list. A cluster may have 100 kB.
const PAGE: u32 = 500;

/// The objects that decide about traffic, as the stores of the controllers hold them.
#[derive(Debug, Default)]
pub struct FleetSnapshot {
    /// The moment at which it was read.
    pub(crate) now: Timestamp,
    pub(crate) clusters: Store<Cluster>,
    pub(crate) remedies: Store<Remedy>,
    /// The ingresses, and the `HTTPRoute`s that are served as such.
    pub(crate) ingresses: Store<MultiClusterIngress>,
    pub(crate) classes: Store<IngressClass>,
    pub(crate) bindings: Store<ResourceBinding>,
    pub(crate) slices: Store<EndpointSlice>,
}

impl FleetSnapshot {
    /// Reads the fleet. With a namespace, only its ingresses are known.
    pub async fn read(
        client: &Client,
        namespace: Option<&str>,
        now: Timestamp,
    ) -> Result<Self, Error> {
        let all = ListParams::default;
        let (fleet, classes, bindings, slices) = futures::try_join!(
            Self::read_without_backends(client, namespace, now),
            list(Api::all(client.clone()), all()),
            list(scoped(client, namespace), all()),
            list(scoped(client, namespace), all().labels(COLLECTED)),
        )?;
        Ok(Self {
            classes,
            bindings,
            slices,
            ..fleet
        })
    }

    /// Reads the clusters, the Remedies and the ingresses, and not what serves the ingresses: there may be
    /// many more bindings than all of these.
    pub(crate) async fn read_without_backends(
        client: &Client,
        namespace: Option<&str>,
        now: Timestamp,
    ) -> Result<Self, Error> {
        let all = ListParams::default;
        let (clusters, remedies, mut ingresses, routes) = futures::try_join!(
            list(Api::all(client.clone()), all()),
            list(Api::all(client.clone()), all()),
            list(scoped(client, namespace), all()),
            routes(client, namespace),
        )?;
        for (_, route) in routes.iter().flat_map(Store::iter) {
            if let Some(ingress) = reported_ingress(route) {
                put(&mut ingresses, ingress);
            }
        }
        Ok(Self {
            now,
            clusters,
            remedies,
            ingresses,
            ..Self::default()
        })
    }

    /// Reads the Remedies and nothing else.
    pub(crate) async fn read_remedies(client: &Client, now: Timestamp) -> Result<Self, Error> {
        let remedies = list(Api::all(client.clone()), ListParams::default()).await?;
        Ok(Self {
            now,
            remedies,
            ..Self::default()
        })
    }

    /// Returns the cluster `name`.
    ///
    /// # Errors
    /// Fails if there is none, or it cannot be read.
    pub(crate) fn require(&self, name: &str) -> Result<&Cluster, Error> {
        match self.cluster(name) {
            Cached::Present(cluster) => Ok(cluster),
            Cached::Absent => Err(Error::Unusable(format!("there is no cluster {name}"))),
            Cached::Unread => Err(Error::Unusable(format!("cluster {name} cannot be read"))),
        }
    }

    /// Returns the remedies that act on `cluster`, by name, and why.
    pub(crate) fn acting_on(&self, cluster: &Cluster) -> Vec<(&Remedy, Cause)> {
        let remedies = self.remedies.iter();
        remedies
            .filter_map(|(_, remedy)| Some((&**remedy, cause(remedy, cluster, self.now)?)))
            .collect()
    }

    /// Returns the future of every cluster under the remedies as they are here.
    pub(crate) fn forecast(&self, max: MaxBlocked) -> Vec<Forecast> {
        let clusters = self.clusters.iter().map(|(_, cluster)| &**cluster);
        let remedies: Vec<&Remedy> = self.remedies.iter().map(|(_, remedy)| &**remedy).collect();
        let complete = self.remedies.unread().is_empty();
        forecast(clusters, &remedies, self.now, complete, max)
    }

    /// Returns what the load balancer has to serve for every ingress of the controller with `settings`.
    pub(crate) fn served(&self, settings: &Settings) -> Vec<Desired> {
        let is_served = |key: &Key, ingress: &MultiClusterIngress| {
            let controller = &settings.controller;
            let decision = match route_of(key) {
                // Its status is that of a controller of ours.
                Some(_) => decide_owned(key, ingress, Ownership::Ours, self, controller),
                None => decide(key, Cached::Present(ingress), self, controller),
            };
            matches!(decision, Decision::Serve(_))
        };
        self.ingresses
            .iter()
            .filter(|(key, ingress)| is_served(key, ingress))
            .map(|(key, ingress)| desired(key, ingress, self, settings))
            .collect()
    }
}

/// Puts `object` into `store`, in place of the one of its name.
pub(crate) fn put<K: Resource + Clone + Default>(store: &mut Store<K>, mut object: K) {
    // The store takes one of a version that it knows for the one it has.
    object.meta_mut().resource_version = None;
    drop(store.observe(Event::Apply(Decoded::Valid(object))));
}

/// Returns the objects of one namespace, or of all.
pub(crate) fn scoped<K>(client: &Client, namespace: Option<&str>) -> Api<K>
where
    K: Resource<DynamicType = (), Scope = NamespaceResourceScope>,
{
    match namespace {
        Some(namespace) => Api::namespaced(client.clone(), namespace),
        None => Api::all(client.clone()),
    }
}

/// Reads the objects that `api` and `selected` cover.
pub(crate) async fn list<K>(api: Api<Decoded<K>>, selected: ListParams) -> Result<Store<K>, Error>
where
    K: Resource<DynamicType = ()> + Clone + Default + DeserializeOwned + Debug,
{
    let mut store: Store<K> = Store::default();
    let observe = |object| drop(store.observe(Event::InitApply(object)));
    let api = &api;
    let request = |page| async move { api.list(&page).await };
    let read = pages(selected, request, observe).await;
    read.map_err(|source| Error::request(format!("list {}", K::plural(&())), source))?;
    Ok(store)
}

/// Reads the `HTTPRoute`s; `None` if the API does not have the kind, or the user no right to it.
pub(crate) async fn routes(
    client: &Client,
    namespace: Option<&str>,
) -> Result<Option<Store<HttpRoute>>, Error> {
    optional(list(scoped(client, namespace), ListParams::default()).await)
}

/// Returns what was read; `None` if the API does not have the kind, or the user no right to it.
pub(crate) fn optional<T>(read: Result<T, Error>) -> Result<Option<T>, Error> {
    match read {
        Err(Error::Request {
            source: kube::Error::Api(status),
            ..
        }) if [403, 404].contains(&status.code) => Ok(None),
        read => read.map(Some),
    }
}

/// Requests a list page by page, and passes each object to `take`: what a page needs as text is let go
/// before the next.
pub(crate) async fn pages<T, Page>(
    selected: ListParams,
    request: impl Fn(ListParams) -> Page,
    mut take: impl FnMut(T),
) -> kube::Result<()>
where
    T: Clone,
    // Named, unlike that of an `AsyncFn`, so that a server may run the whole on any of its threads.
    Page: Future<Output = kube::Result<ObjectList<T>>>,
{
    let mut page = selected.limit(PAGE);
    loop {
        let list = request(page.clone()).await?;
        list.items.into_iter().for_each(&mut take);
        match list.metadata.continue_.filter(|next| !next.is_empty()) {
            Some(next) => page = page.continue_token(&next),
            None => return Ok(()),
        }
    }
}

impl ClusterFacts for FleetSnapshot {
    fn cluster(&self, name: &str) -> Cached<&Cluster> {
        find(&self.clusters, &Key::cluster_scoped(name))
    }

    fn is_decided(&self, cluster: &str) -> bool {
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

    fn addresses(&self, _: &str) -> Option<Vec<IpAddr>> {
        Some(Vec::new())
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
        let all = self.slices.iter();
        all.filter(|(key, slice)| {
            key.namespace == namespace && slice_service(slice) == Some(service)
        })
        .map(|(_, slice)| Arc::clone(slice))
        .collect()
    }

    fn unread_slices(&self, namespace: &str) -> BTreeSet<String> {
        let unread = self.slices.unread().iter();
        unread
            .filter(|key| key.namespace == namespace)
            .map(|key| key.name.clone())
            .collect()
    }
}

fn find<'a, K: Resource>(store: &'a Store<K>, key: &Key) -> Cached<&'a K> {
    match store.get(key) {
        Some(object) => Cached::Present(object),
        None if store.unread().contains(key) => Cached::Unread,
        None => Cached::Absent,
    }
}

#[cfg(test)]
mod tests {
    use embedded_apiserver::ApiServer;
    use k8s_openapi::api::core::v1::Namespace;
    use kube::api::{Patch, PatchParams, PostParams};
    use serde_json::{Value, from_value, json};

    use super::*;

    /// A route is an ingress of the fleet if its status says where it is served; an API without the kind has none.
    #[tokio::test]
    async fn reported_route_is_ingress() {
        let server = ApiServer::new();
        for definition in karmada_api::crd::stand_ins().unwrap() {
            server.install(&definition).unwrap();
        }
        for definition in karmada_api::crd::installed().unwrap() {
            server.install(&definition).unwrap();
        }
        let client = Client::new(server.service(), "default");
        let read = async || {
            let now = Timestamp::UNIX_EPOCH;
            let fleet = FleetSnapshot::read_without_backends(&client, None, now).await;
            let fleet = fleet.unwrap();
            let names = fleet.ingresses.iter().map(|(key, _)| key.to_string());
            names.collect::<Vec<_>>()
        };
        assert_eq!(read().await, [""; 0]);
        server.install(&http_routes()).unwrap();
        let namespaces: Api<Namespace> = Api::all(client.clone());
        let namespace = from_value(json!({ "metadata": { "name": "ns" } })).unwrap();
        let (create, patch) = (PostParams::default(), PatchParams::default());
        namespaces.create(&create, &namespace).await.unwrap();
        let routes: Api<HttpRoute> = Api::namespaced(client.clone(), "ns");
        let located = json!({ "type": "networking.karmada-rs.io/Located", "status": "True", "message": "web: m1" });
        let entry =
            json!({ "controllerName": "karmada-rs.io/multi-cluster", "conditions": [located] });
        for (name, status) in [
            ("told", json!({ "parents": [entry] })),
            ("other", json!({})),
        ] {
            let route = json!({ "apiVersion": HttpRoute::API_VERSION, "kind": HttpRoute::KIND,
                "metadata": { "name": name }, "spec": { "parentRefs": [] } });
            let route = from_value(route).unwrap();
            routes.create(&create, &route).await.unwrap();
            let status = Patch::Merge(json!({ "status": status }));
            routes.patch_status(name, &patch, &status).await.unwrap();
        }
        assert_eq!(read().await, ["ns/httproute:told"]);
    }

    /// Returns the definition of routes, with any fields.
    fn http_routes() -> Value {
        let schema = json!({ "type": "object", "x-kubernetes-preserve-unknown-fields": true });
        let version = json!({ "name": "v1", "served": true, "storage": true,
            "schema": { "openAPIV3Schema": schema }, "subresources": { "status": {} } });
        let names = json!({ "kind": "HTTPRoute", "plural": "httproutes", "singular": "httproute" });
        json!({
            "apiVersion": "apiextensions.k8s.io/v1",
            "kind": "CustomResourceDefinition",
            "metadata": { "name": "httproutes.gateway.networking.k8s.io" },
            "spec": { "group": "gateway.networking.k8s.io", "scope": "Namespaced",
                "names": names, "versions": [version] },
        })
    }

    /// A list of several pages is read whole.
    #[tokio::test]
    async fn every_page_is_read() {
        let server = ApiServer::new();
        let client = Client::new(server.service(), "default");
        let classes: Api<IngressClass> = Api::all(client.clone());
        let count = usize::try_from(2 * PAGE + 1).unwrap();
        for number in 0..count {
            let class = json!({ "metadata": { "name": format!("c{number}") } });
            let class = from_value(class).unwrap();
            classes
                .create(&PostParams::default(), &class)
                .await
                .unwrap();
        }
        let read: Store<IngressClass> =
            list(Api::all(client), ListParams::default()).await.unwrap();
        assert_eq!(read.iter().count(), count);
    }
}
