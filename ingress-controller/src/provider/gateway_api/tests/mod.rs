//! Tests of the provider on the embedded API.

mod keeps_contract;
mod obstacles;

use kube::api::ListParams;
use kube::{Client, Resource};
use lab_parts::test_api::TestApi;
use serde::de::DeserializeOwned;
use serde_json::{Value, json};

use karmada_api::gateway_api::GatewayClass;

use super::*;
use crate::fixtures::gateway_kinds;
use crate::provider::gateway_cluster::stage::{GatewayStage, TestRouting, listed};

const ROUTES: &str = "/apis/gateway.networking.k8s.io/v1/namespaces/ns/httproutes";
const GATEWAY: &str = "/apis/gateway.networking.k8s.io/v1/namespaces/infra/gateways/web";

/// Returns all objects of others, whichever namespace they are in.
async fn all<K>(client: Client, selected: &ListParams) -> Vec<K>
where
    K: Resource<DynamicType = ()> + Clone + DeserializeOwned + std::fmt::Debug,
{
    let found = Api::<K>::all(client).list(selected).await;
    found.unwrap().items
}

fn condition(kind: &str) -> Value {
    json!({ "type": kind, "status": "True", "reason": kind, "message": "",
        "lastTransitionTime": "2026-11-01T00:00:00Z" })
}

/// Creates the Gateway, which its controller has taken up.
async fn create_gateway(api: &TestApi) {
    api.create(&json!({
        "apiVersion": "gateway.networking.k8s.io/v1", "kind": "Gateway",
        "metadata": { "name": "web", "namespace": "infra" },
        "spec": {
            "gatewayClassName": "theirs",
            "listeners": [{ "name": "http", "protocol": "HTTP", "port": 80 }],
        },
        "status": { "conditions": [condition("Accepted"), condition("Programmed")] },
    }))
    .await;
}

impl TestRouting for HttpRouting {
    fn kinds() -> Vec<Value> {
        gateway_kinds().into()
    }

    fn routing() -> Self {
        let controller = "example.com/ours".parse().unwrap();
        Self::new(HttpRoutes::new(&controller, Key::new("infra", "web")))
    }

    async fn prepare(api: &TestApi) {
        api.create_namespace("infra").await;
        api.create(&json!({
            "apiVersion": "gateway.networking.k8s.io/v1", "kind": "GatewayClass",
            "metadata": { "name": "theirs" },
            "spec": { "controllerName": "example.com/theirs" },
        }))
        .await;
        create_gateway(api).await;
    }

    async fn catch_up(&self, api: &TestApi) {
        let everything = ListParams::default();
        let others = ListParams::default().labels(&self.managed_by().others());
        for event in listed(all::<Gateway>(api.user(), &everything).await) {
            self.parent.lock().observe(event);
        }
        for event in listed(all::<GatewayClass>(api.user(), &everything).await) {
            self.parent.lock().observe_class(event);
        }
        for event in listed(all::<HttpRoute>(api.user(), &others).await) {
            self.others.lock().observe(event);
        }
    }

    fn services(route: &HttpRoute, host: &str) -> Vec<String> {
        let is_attached = route
            .spec
            .parent_refs
            .iter()
            .any(|parent| parent.name == "web" && parent.namespace.as_deref() == Some("infra"));
        if !is_attached || !hosts(route).contains(host) {
            return Vec::new();
        }
        let backends = route.spec.rules.iter().flat_map(|rule| &rule.backend_refs);
        backends.map(|backend| backend.name.clone()).collect()
    }

    /// A host more is a route more.
    fn next_change(_: &Key) -> String {
        format!("POST {ROUTES}")
    }
}
