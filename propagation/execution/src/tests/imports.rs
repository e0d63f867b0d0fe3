//! The Services that stand for `ServiceImport`s in a fleet without Karmada.

use k8s_openapi::api::core::v1::Service;

use super::endpoints::COLLECTING;
use super::*;

const IMPORTS: &str = "/apis/multicluster.x-k8s.io/v1alpha1/namespaces/shop/serviceimports";
const SERVICES: &str = "/api/v1/namespaces/shop/services";

fn definition() -> Value {
    json!({
        "apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition",
        "metadata": { "name": "serviceimports.multicluster.x-k8s.io" },
        "spec": {
            "group": "multicluster.x-k8s.io", "scope": "Namespaced",
            "names": { "kind": "ServiceImport", "plural": "serviceimports" },
            "versions": [{ "name": "v1alpha1", "served": true, "storage": true,
                "schema": { "openAPIV3Schema": {
                    "type": "object", "x-kubernetes-preserve-unknown-fields": true } } }],
        },
    })
}

/// A fleet with the kind of imports.
async fn fleet() -> Stage {
    let stage = Stage::new().await;
    stage.api.install([definition()]);
    stage.api.create_namespace("shop").await;
    stage
}

impl Stage {
    async fn import(&self, name: &str, port: i32) {
        let import = json!({
            "apiVersion": "multicluster.x-k8s.io/v1alpha1", "kind": "ServiceImport",
            "metadata": { "name": name, "namespace": "shop" },
            "spec": { "type": "ClusterSetIP", "ports": [{ "name": "http", "port": port }] },
        });
        self.api.send("POST", IMPORTS, &import).await;
    }

    /// Waits until the Service of an import has this port.
    async fn serves(&self, import: &str, port: i32) {
        let services: Api<Service> = Api::namespaced(self.api.user(), "shop");
        let name = format!("derived-{import}");
        let served = until(services, &name, |service| {
            let spec = service.and_then(|service| service.spec.as_ref());
            let mut ports = spec.iter().flat_map(|spec| &spec.ports).flatten();
            ports.any(|one| one.port == port)
        });
        served.await;
    }

    fn service_writes(&self) -> Vec<String> {
        let mut writes = self.api.writes();
        writes.retain(|call| call.contains(SERVICES));
        writes
    }
}

/// An import gets its Service, which follows its ports. A user's Service of that name stays, and a restart writes only the
/// new ones.
#[tokio::test]
async fn import_has_its_service() {
    let stage = fleet().await;
    let users = json!({ "apiVersion": "v1", "kind": "Service",
        "metadata": { "name": "derived-db", "namespace": "shop" },
        "spec": { "ports": [{ "port": 5432 }] } });
    stage.api.create(&users).await;
    stage.import("db", 80).await;
    let program = stage.start(COLLECTING);
    stage.import("web", 80).await;
    stage.serves("web", 80).await;
    let ports = json!({ "spec": { "ports": [{ "name": "http", "port": 81 }] } });
    stage
        .api
        .send("PATCH", &format!("{IMPORTS}/web"), &ports)
        .await;
    stage.serves("web", 81).await;
    stage.serves("db", 5432).await;
    drop(program);
    stage.service_writes();
    let _program = stage.start(COLLECTING);
    stage.import("api", 80).await;
    stage.serves("api", 80).await;
    let mut writes = stage.service_writes();
    // That of the user's, which the API refuses, may come first.
    writes.dedup();
    assert_eq!(writes, [format!("POST {SERVICES}")]);
}

/// A Service that the API refuses is told on its import, once, and comes with the next attempt that it accepts.
#[tokio::test]
async fn refused_service_is_told() {
    let stage = fleet().await;
    stage.api.refuse(
        &format!("POST {SERVICES}"),
        422,
        "Invalid",
        "spec.ports[0].name: Invalid value",
    );
    stage.import("web", 80).await;
    let _program = stage.start(COLLECTING);
    stage
        .noted("DeriveServiceFailed", "spec.ports[0].name: Invalid value")
        .await;
    stage.serves("web", 80).await;
}
