//! A kind of another project, a `CloneSet` of `OpenKruise`, on its whole way: to its clusters, and back to a status.

use super::works::works;
use super::*;

const CLONE_SET: &str = "/apis/apps.kruise.io/v1alpha1/namespaces/shop/clonesets";
const API_VERSION: &str = "apps.kruise.io/v1alpha1";

fn definition() -> Value {
    json!({
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": { "name": "clonesets.apps.kruise.io" },
        "spec": {
            "group": "apps.kruise.io",
            "names": { "kind": "CloneSet", "plural": "clonesets" },
            "scope": "Namespaced",
            "versions": [{
                "name": "v1alpha1", "served": true, "storage": true,
                "subresources": { "status": {} },
                "schema": { "openAPIV3Schema": {
                    "type": "object",
                    "properties": { "status": {
                        "type": "object",
                        "x-kubernetes-preserve-unknown-fields": true,
                        "required": ["replicas", "readyReplicas", "availableReplicas", "updatedReplicas"],
                    } },
                    "x-kubernetes-preserve-unknown-fields": true,
                } },
            }],
        },
    })
}

fn clone_set() -> Value {
    json!({
        "apiVersion": API_VERSION, "kind": "CloneSet",
        "metadata": { "name": "web", "namespace": "shop" },
        "spec": {
            "replicas": 5,
            "template": { "spec": { "containers": [{
                "name": "web", "image": "web:1",
                "resources": { "requests": { "cpu": "100m" } },
                "envFrom": [{ "configMapRef": { "name": "settings" } }],
            }] } },
        },
    })
}

fn work(cluster: &str) -> String {
    let name = names::work("CloneSet", "shop", "web");
    format!("{}/{name}", works(cluster))
}

impl Stage {
    /// Reports the Work in a cluster as applied, with this status of its object.
    async fn observe(&self, cluster: &str, status: Value) {
        let found = self.get(&work(cluster)).await;
        let status = json!({ "status": {
            "conditions": [{
                "type": "Applied", "status": "True", "reason": "AppliedSuccessful", "message": "",
                "lastTransitionTime": "2026-11-22T08:00:00Z",
                "observedGeneration": found["metadata"]["generation"],
            }],
            "manifestStatuses": [{
                "identifier": {
                    "ordinal": 0, "group": "apps.kruise.io", "version": "v1alpha1", "kind": "CloneSet",
                    "resource": "", "namespace": "shop", "name": "web",
                },
                "health": "Healthy",
                "status": status,
            }],
        } });
        let path = format!("{}/status", work(cluster));
        self.change("PATCH", &path, &status).await;
    }
}

/// A template is divided among clusters by its replicas, brings along its dependencies, and tells in its status the
/// sum of all of them (Case P84).
#[tokio::test(start_paused = true)]
async fn clone_set_travels_and_reports() {
    let mut stage = Stage::new().await;
    stage.server.install(&definition()).unwrap();
    for cluster in ["m1", "m2"] {
        stage.join(cluster).await;
    }
    let selectors = json!([{ "apiVersion": API_VERSION, "kind": "CloneSet" }]);
    let spec = json!({
        "resourceSelectors": selectors, "propagateDeps": true,
        "placement": { "replicaScheduling": { "replicaSchedulingType": "Divided" } },
    });
    let policy = policy("pp", &spec);
    stage.send("POST", POLICY, &policy).await;
    let settings = json!({ "metadata": { "name": "settings", "namespace": "shop" } });
    let maps = "/api/v1/namespaces/shop/configmaps";
    stage.send("POST", maps, &settings).await;
    stage.send("POST", CLONE_SET, &clone_set()).await;
    stage.start(&[]).await;

    let path = format!("{BINDING}/web-cloneset");
    let spec = stage.get(&path).await["spec"].clone();
    assert_eq!(spec["replicas"], 5);
    assert_eq!(
        spec["replicaRequirements"]["resourceRequest"],
        json!({ "cpu": "100m" })
    );
    let told = stage.events("CloneSet").await.join("\n");
    for reason in ["ApplyPolicy", "GetReplicas", "GetDependencies"] {
        assert!(told.contains(&format!("{reason}Succeed")), "{told}");
    }

    let divided = [("m1", 3), ("m2", 2)];
    let clusters = divided.map(|(name, replicas)| json!({ "name": name, "replicas": replicas }));
    let scheduled = json!({ "spec": { "clusters": clusters } });
    stage.change("PATCH", &path, &scheduled).await;
    for (cluster, replicas) in divided {
        let work = stage.get(&work(cluster)).await;
        let manifest = &work["spec"]["workload"]["manifests"][0];
        assert_eq!(manifest["spec"]["replicas"], replicas);
    }
    let attached = stage.get(&format!("{BINDING}/settings-configmap")).await;
    assert_eq!(attached["spec"]["requiredBy"][0]["name"], "web-cloneset");

    let template = stage.get(&web(CLONE_SET)).await;
    let generation = template["metadata"]["generation"].clone();
    for (cluster, replicas) in divided {
        let status = json!({
            "replicas": replicas, "readyReplicas": replicas, "updatedReplicas": replicas,
            "generation": 1, "observedGeneration": 1, "resourceTemplateGeneration": generation,
        });
        stage.observe(cluster, status).await;
    }
    let status = stage.get(&web(CLONE_SET)).await["status"].clone();
    assert_eq!(status["readyReplicas"], 5);
    assert_eq!(status["availableReplicas"], 0, "the kind requires it");
    assert_eq!(status["observedGeneration"], generation);

    // Neither time nor a restart is a reason to write.
    stage.written();
    stage.settle().await;
    stage.kill().await;
    stage.start(&[]).await;
    assert_eq!(stage.written(), [""; 0]);
}
