use std::collections::BTreeSet;

use embedded_apiserver::Fault;
use kube::api::ListParams;
use parking_lot::Mutex;

use super::*;
use crate::provider::contract::{self, provider_contract};

/// The API of a gateway cluster.
struct GatewayApi {
    api: TestApi,
    /// What somebody else has there.
    foreign: Mutex<Option<Service>>,
}

/// Shows the index a complete list, as a watch that begins does.
async fn list<K: GatewayKind>(api: &TestApi, gateway: &Gateway, objects: &GatewayObjects<K>) {
    let ours = ListParams::default().labels(&gateway.selector());
    let found = Api::<K>::all(api.user()).list(&ours).await.unwrap();
    objects.observe(Event::Init);
    for object in found {
        objects.observe(Event::InitApply(Decoded::Valid(object)));
    }
    objects.observe(Event::InitDone);
}

impl GatewayApi {
    async fn list<K: GatewayKind>(&self) -> Vec<K> {
        let all = ListParams::default();
        let found = Api::<K>::namespaced(self.api.user(), "ns");
        found.list(&all).await.unwrap().items
    }
}

impl contract::Stage for GatewayApi {
    type Provider = Kubernetes;

    async fn new() -> Self {
        let api = TestApi::with_kinds([]);
        api.create_namespace("ns").await;
        Self {
            api,
            foreign: Mutex::default(),
        }
    }

    async fn provider(&self) -> Kubernetes {
        let gateway = Gateway::new(&"example.com/ours".parse().unwrap(), None);
        let provider = Kubernetes::new(self.api.client(), gateway);
        self.catch_up(&provider).await;
        provider
    }

    async fn catch_up(&self, provider: &Kubernetes) {
        list(&self.api, &provider.gateway, &provider.services).await;
        list(&self.api, &provider.gateway, &provider.slices).await;
        list(&self.api, &provider.gateway, &provider.secrets).await;
        list(&self.api, &provider.gateway, &provider.ingresses).await;
    }

    async fn served(&self, host: &str) -> BTreeSet<String> {
        let ingresses = self.list::<Ingress>().await.into_iter();
        let rules = ingresses
            .filter_map(|ingress| ingress.spec?.rules)
            .flatten();
        let paths = rules
            .filter(|rule| rule.host.as_deref() == Some(host))
            .filter_map(|rule| rule.http)
            .flat_map(|http| http.paths);
        let services: BTreeSet<String> = paths
            .filter_map(|path| Some(path.backend.service?.name))
            .collect();
        let existing = self.list::<Service>().await;
        let slices = self.list::<EndpointSlice>().await.into_iter();
        let slices = slices.filter(|slice| {
            let service = slice_origin(slice).map(|(service, _)| service.to_owned());
            let exists = |one: &Service| one.metadata.name == service;
            existing.iter().any(exists) && service.is_some_and(|name| services.contains(&name))
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
        let update = format!("PATCH {INGRESSES}/{}", ingress.name);
        self.api.refuse(&update, 422, "Invalid", "Invalid it is");
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

provider_contract!(GatewayApi);
