//! The Service and the `EndpointSlices` that Karmada makes for a `ServiceImport` follow it. The tests stand in for
//! Karmada.

use kube::api::ListParams;

use super::*;

const IMPORT: &str = "/apis/multicluster.x-k8s.io/v1alpha1/namespaces/shop/serviceimports";
const SERVICE: &str = "/api/v1/namespaces/shop/services";
const SLICE: &str = "/apis/discovery.k8s.io/v1/namespaces/shop/endpointslices";

fn definition() -> Value {
    json!({
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": { "name": "serviceimports.multicluster.x-k8s.io" },
        "spec": {
            "group": "multicluster.x-k8s.io",
            "names": { "kind": "ServiceImport", "plural": "serviceimports" },
            "scope": "Namespaced",
            "versions": [{
                "name": "v1alpha1", "served": true, "storage": true,
                "schema": { "openAPIV3Schema": {
                    "type": "object", "x-kubernetes-preserve-unknown-fields": true,
                } },
            }],
        },
    })
}

fn slice(name: &str, service: &str) -> Value {
    json!({
        "metadata": {
            "name": name, "namespace": "shop", "labels": { "kubernetes.io/service-name": service },
        },
        "addressType": "IPv4",
        "endpoints": [{ "addresses": ["10.0.0.1"] }],
    })
}

impl Stage {
    /// Returns the names of the bindings that others require.
    async fn attached(&self) -> Vec<String> {
        let bindings: Api<ResourceBinding> = Api::namespaced(self.user(), "shop");
        let bindings = bindings.list(&ListParams::default()).await.unwrap();
        let mut attached: Vec<_> = bindings
            .into_iter()
            .filter(|binding| binding.spec.required_by.is_some())
            .map(|binding| binding.metadata.name.unwrap())
            .collect();
        attached.sort();
        attached
    }
}

/// The service and the slices of an import follow it as they come and go.
#[tokio::test(start_paused = true)]
async fn slices_follow_import() {
    let mut stage = Stage::new().await;
    stage.server.install(&definition()).unwrap();
    stage.join("m1").await;
    let following = policy(
        "pp",
        &json!({
            "resourceSelectors": [
                { "apiVersion": "multicluster.x-k8s.io/v1alpha1", "kind": "ServiceImport" },
            ],
            "propagateDeps": true,
        }),
    );
    stage.send("POST", POLICY, &following).await;
    let import = json!({
        "apiVersion": "multicluster.x-k8s.io/v1alpha1", "kind": "ServiceImport",
        "metadata": { "name": "api", "namespace": "shop" },
        "spec": { "type": "ClusterSetIP", "ports": [{ "port": 80 }] },
    });
    stage.send("POST", IMPORT, &import).await;
    for name in ["derived-api", "api"] {
        let service = json!({
            "metadata": { "name": name, "namespace": "shop" },
            "spec": { "ports": [{ "port": 80 }] },
        });
        stage.send("POST", SERVICE, &service).await;
        let slice = slice(&format!("{name}-1"), name);
        stage.send("POST", SLICE, &slice).await;
    }
    stage.start(&[]).await;
    let clusters = json!({ "spec": { "clusters": [{ "name": "m1" }] } });
    let binding = format!("{BINDING}/api-serviceimport");
    stage.change("PATCH", &binding, &clusters).await;
    let (service, first) = ("derived-api-service", "derived-api-1-endpointslice");
    assert_eq!(stage.attached().await, [first, service]);

    // Neither a restart nor time is a reason to write.
    stage.kill().await;
    stage.start(&[]).await;
    assert_eq!(stage.written(), [""; 0]);

    let added = slice("derived-api-2", "derived-api");
    stage.change("POST", SLICE, &added).await;
    let second = "derived-api-2-endpointslice";
    assert_eq!(stage.attached().await, [first, second, service]);

    let other = json!({ "metadata": { "labels": { "kubernetes.io/service-name": "api" } } });
    let path = format!("{SLICE}/derived-api-1");
    stage.change("PATCH", &path, &other).await;
    assert_eq!(stage.attached().await, [second, service]);
}
