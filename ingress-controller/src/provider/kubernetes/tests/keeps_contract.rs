use super::*;
use crate::provider::contract::provider_contract;
use crate::provider::gateway_cluster::stage::{GatewayStage, TestRouting};

impl TestRouting for Ingresses {
    fn kinds() -> Vec<Value> {
        Vec::new()
    }

    fn routing() -> Self {
        ingresses()
    }

    async fn prepare(_: &TestApi) {}

    async fn catch_up(&self, _: &TestApi) {}

    fn services(route: &Ingress, host: &str) -> Vec<String> {
        let rules = route
            .spec
            .iter()
            .flat_map(|spec| spec.rules.iter().flatten());
        let paths = rules
            .filter(|rule| rule.host.as_deref() == Some(host))
            .filter_map(|rule| rule.http.as_ref())
            .flat_map(|http| &http.paths);
        paths
            .filter_map(|path| Some(path.backend.service.as_ref()?.name.clone()))
            .collect()
    }

    fn next_change(ingress: &Key) -> String {
        format!("PATCH {INGRESSES}/{}", ingress.name)
    }
}

provider_contract!(GatewayStage<Ingresses>);
