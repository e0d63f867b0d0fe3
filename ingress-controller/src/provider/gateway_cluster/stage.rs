//! The contract's stage for gateway clusters, whatever the kind of their routes.

use std::collections::BTreeSet;
use std::marker::PhantomData;

use embedded_apiserver::Fault;
use k8s_openapi::NamespaceResourceScope;
use k8s_openapi::api::core::v1::Service;
use k8s_openapi::api::discovery::v1::EndpointSlice;
use karmada_runtime::watch::Decoded;
use kube::api::ListParams;
use kube::runtime::watcher::Event;
use kube::{Api, Resource};
use lab_parts::test_api::TestApi;
use objects::Key;
use parking_lot::Mutex;
use serde::de::DeserializeOwned;
use serde_json::{Value, json};
use traffic::ingress::kubernetes::slice_origin;

use super::{GatewayCluster, GatewayKind, GatewayObjects, Routing};
use crate::fixtures::writer;
use crate::provider::contract;

/// Routes on which the contract is tested.
pub(in crate::provider) trait TestRouting: Routing {
    /// Returns the definitions of the kinds that the API does not serve by itself.
    fn kinds() -> Vec<Value>;

    /// Returns the routing.
    fn routing() -> Self;

    /// Creates the objects of users in the gateway cluster.
    async fn prepare(api: &TestApi);

    /// Shows it the changes in the gateway cluster beside our objects.
    async fn catch_up(&self, api: &TestApi);

    /// Returns the Services to which a route sends requests for `host`.
    fn services(route: &Self::Route, host: &str) -> Vec<String>;

    /// Returns the next request that changes the routes of an ingress.
    fn next_change(ingress: &Key) -> String;
}

/// The API of a gateway cluster.
pub(in crate::provider) struct GatewayStage<R> {
    pub(in crate::provider) api: TestApi,
    /// The object of somebody else.
    foreign: Mutex<Option<Service>>,
    routing: PhantomData<fn() -> R>,
}

impl<R: TestRouting> GatewayStage<R> {
    async fn list<K>(&self) -> Vec<K>
    where
        K: Resource<DynamicType = (), Scope = NamespaceResourceScope>
            + Clone
            + DeserializeOwned
            + std::fmt::Debug,
    {
        let all = ListParams::default();
        let found = Api::<K>::namespaced(self.api.user(), "ns");
        found.list(&all).await.unwrap().items
    }

    /// Shows an index a complete list, as a watch that begins does.
    async fn show<K: GatewayKind>(&self, provider: &GatewayCluster<R>, to: &GatewayObjects<K>) {
        let ours = ListParams::default().labels(&provider.routing.managed_by().selector());
        let found = Api::<K>::all(self.api.user()).list(&ours).await.unwrap();
        for event in listed(found.items) {
            to.observe(event);
        }
    }
}

/// Returns the events of a watch that begins.
pub(in crate::provider) fn listed<K>(objects: Vec<K>) -> Vec<Event<Decoded<K>>> {
    let mut events = vec![Event::Init];
    let objects = objects.into_iter().map(Decoded::Valid);
    events.extend(objects.map(Event::InitApply));
    events.push(Event::InitDone);
    events
}

impl<R: TestRouting> contract::Stage for GatewayStage<R> {
    type Provider = GatewayCluster<R>;

    async fn new() -> Self {
        let api = TestApi::with_kinds(R::kinds());
        api.create_namespace("ns").await;
        R::prepare(&api).await;
        Self {
            api,
            foreign: Mutex::default(),
            routing: PhantomData,
        }
    }

    async fn provider(&self) -> GatewayCluster<R> {
        let provider = GatewayCluster::new(self.api.client(), &writer(), R::routing());
        self.catch_up(&provider).await;
        provider
    }

    async fn catch_up(&self, provider: &GatewayCluster<R>) {
        self.show(provider, &provider.services).await;
        self.show(provider, &provider.slices).await;
        self.show(provider, &provider.secrets).await;
        self.show(provider, &provider.routes).await;
        provider.routing.catch_up(&self.api).await;
    }

    async fn served(&self, host: &str) -> BTreeSet<String> {
        let routes = self.list::<R::Route>().await;
        let services = routes.iter().flat_map(|route| R::services(route, host));
        let services: BTreeSet<String> = services.collect();
        let existing = self.list::<Service>().await;
        let slices = self.list::<EndpointSlice>().await.into_iter();
        let slices = slices.filter(|slice| {
            let service = slice_origin(slice).map(|(service, _)| service.to_owned());
            existing.iter().any(|one| one.metadata.name == service)
                && service.is_some_and(|name| services.contains(&name))
        });
        slices
            .filter_map(|slice| slice.endpoints)
            .flatten()
            .flat_map(|endpoint| endpoint.addresses)
            .collect()
    }

    fn changes(&self) -> usize {
        self.api.writes().len()
    }

    fn fail_once(&self) {
        let faults = self.api.server.faults();
        faults.inject(Fault::Unavailable.times(1));
    }

    fn refuse_routes(&self, ingress: &Key) {
        let change = R::next_change(ingress);
        self.api.refuse(&change, 422, "Invalid", "Invalid it is");
    }

    async fn add_foreign(&self) {
        let theirs = json!({
            "metadata": { "name": "theirs", "namespace": "ns" },
            "spec": { "ports": [{ "port": 80 }] },
        });
        let theirs: Service = serde_json::from_value(theirs).unwrap();
        *self.foreign.lock() = Some(self.api.create(&theirs).await);
    }

    async fn is_foreign_intact(&self) -> bool {
        let mut services = self.list::<Service>().await.into_iter();
        let found = services.find(|one| one.metadata.name.as_deref() == Some("theirs"));
        found == *self.foreign.lock()
    }
}
