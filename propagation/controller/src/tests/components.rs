//! Kinds whose Pods differ: their bindings have components in place of replicas.

use super::works::works;
use super::*;

const ON: &str = "--feature-gates=MultiplePodTemplatesScheduling=true";
const FLINK: &str = "/apis/flink.apache.org/v1beta1/namespaces/shop/flinkdeployments";
const JOBS: &str = "/apis/batch.volcano.sh/v1alpha1/namespaces/shop/jobs";

fn definition(group: &str, version: &str, kind: &str) -> Value {
    let plural = format!("{}s", kind.to_lowercase());
    json!({
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": { "name": format!("{plural}.{group}") },
        "spec": {
            "group": group,
            "names": { "kind": kind, "plural": plural },
            "scope": "Namespaced",
            "versions": [{
                "name": version, "served": true, "storage": true,
                "subresources": { "status": {} },
                "schema": { "openAPIV3Schema": {
                    "type": "object", "x-kubernetes-preserve-unknown-fields": true,
                } },
            }],
        },
    })
}

fn flink() -> Value {
    json!({
        "apiVersion": "flink.apache.org/v1beta1", "kind": "FlinkDeployment",
        "metadata": { "name": "web", "namespace": "shop" },
        "spec": {
            "jobManager": { "resource": { "cpu": 1, "memory": "1Gi" } },
            "taskManager": { "replicas": 2, "resource": { "cpu": 0.5, "memory": "512Mi" } },
        },
    })
}

fn volcano() -> Value {
    let tasks = [("leader", 1, "200m"), ("worker", 2, "100m")].map(|(name, least, cpu)| {
        let resources = json!({ "requests": { "cpu": cpu } });
        let pod =
            json!({ "containers": [{ "name": name, "image": "task:1", "resources": resources }] });
        json!({ "name": name, "minAvailable": least, "template": { "spec": pod } })
    });
    json!({
        "apiVersion": "batch.volcano.sh/v1alpha1", "kind": "Job",
        "metadata": { "name": "web", "namespace": "shop" },
        "spec": { "tasks": tasks },
    })
}

fn part(name: &str, replicas: i32, request: &Value) -> Value {
    let needs = json!({ "resourceRequest": request });
    json!({ "name": name, "replicas": replicas, "replicaRequirements": needs })
}

/// Returns the components of [`flink`] with as many workers.
fn flink_parts(workers: i32) -> Value {
    json!([
        part("jobmanager", 1, &json!({ "cpu": "1", "memory": "1Gi" })),
        part(
            "taskmanager",
            workers,
            &json!({ "cpu": "500m", "memory": "512Mi" })
        ),
    ])
}

/// An API with both kinds, a template of each, a policy that selects them, and the cluster `m1`.
async fn with_jobs() -> Stage {
    let stage = Stage::new().await;
    for (group, version, kind) in [
        ("flink.apache.org", "v1beta1", "FlinkDeployment"),
        ("batch.volcano.sh", "v1alpha1", "Job"),
    ] {
        let definition = definition(group, version, kind);
        stage.server.install(&definition).unwrap();
    }
    stage.join("m1").await;
    let selectors = json!([
        { "apiVersion": "flink.apache.org/v1beta1", "kind": "FlinkDeployment" },
        { "apiVersion": "batch.volcano.sh/v1alpha1", "kind": "Job" },
    ]);
    let one = json!([{ "spreadByField": "cluster", "minGroups": 1, "maxGroups": 1 }]);
    let spec = json!({ "resourceSelectors": selectors, "placement": { "spreadConstraints": one } });
    stage.send("POST", POLICY, &policy("pp", &spec)).await;
    stage.send("POST", FLINK, &flink()).await;
    stage.send("POST", JOBS, &volcano()).await;
    stage
}

impl Stage {
    async fn spec_of(&self, binding: &str) -> Value {
        self.get(&format!("{BINDING}/{binding}")).await["spec"].clone()
    }
}

/// A binding has the components of its template and neither replicas nor needs of one; they follow the template, which
/// goes to its cluster as it is; another start writes nothing. Cases I86 and I88.
#[tokio::test(start_paused = true)]
async fn components_follow_their_template() {
    let mut stage = with_jobs().await;
    stage.start(&[ON]).await;
    let (flink_spec, job_spec) = (
        stage.spec_of("web-flinkdeployment").await,
        stage.spec_of("web-job").await,
    );
    for spec in [&flink_spec, &job_spec] {
        assert_eq!(spec.get("replicas"), None);
        assert_eq!(spec.get("replicaRequirements"), None);
    }
    assert_eq!(flink_spec["components"], flink_parts(2));
    let tasks = json!([
        part("leader", 1, &json!({ "cpu": "200m" })),
        part("worker", 2, &json!({ "cpu": "100m" })),
    ]);
    assert_eq!(job_spec["components"], tasks);
    let told =
        "GetComponentsSucceed: Get components(jobmanager, taskmanager) of the template succeed";
    let claimed = "ApplyPolicySucceed: Apply policy(shop/pp) succeed";
    assert_eq!(stage.events("FlinkDeployment").await, [claimed, told]);

    // The cluster's components are the scheduler's, and revise nothing.
    let has =
        json!([{ "name": "jobmanager", "replicas": 1 }, { "name": "taskmanager", "replicas": 2 }]);
    let scheduled = json!({ "spec": { "clusters": [{ "name": "m1", "components": has }] } });
    let path = format!("{BINDING}/web-flinkdeployment");
    stage.change("PATCH", &path, &scheduled).await;
    let name = names::work("FlinkDeployment", "shop", "web");
    let work = stage.get(&format!("{}/{name}", works("m1"))).await;
    let manifest = &work["spec"]["workload"]["manifests"][0];
    assert_eq!(manifest["spec"], flink()["spec"]);

    stage.written();
    stage.kill().await;
    stage.start(&[ON]).await;
    assert_eq!(stage.written(), [""; 0]);

    let scaled = json!({ "spec": { "taskManager": { "replicas": 3 } } });
    stage.change("PATCH", &web(FLINK), &scaled).await;
    let spec = stage.spec_of("web-flinkdeployment").await;
    assert_eq!(spec["components"], flink_parts(3));
    assert_eq!(spec["clusters"], scheduled["spec"]["clusters"]);
}

/// Without the feature a binding has the replicas that it had before; each switch of the feature takes the other away.
/// Case I89.
#[tokio::test(start_paused = true)]
async fn components_are_off_by_default() {
    let mut stage = with_jobs().await;
    for flags in [&[][..], &[ON], &[]] {
        stage.start(flags).await;
        let spec = stage.spec_of("web-flinkdeployment").await;
        let (parts, replicas) = (spec.get("components"), spec.get("replicas"));
        if flags.is_empty() {
            assert_eq!((parts, replicas), (None, Some(&json!(3))));
            let request = &spec["replicaRequirements"]["resourceRequest"];
            assert_eq!(*request, json!({ "cpu": "1", "memory": "1Gi" }));
            assert_eq!(stage.spec_of("web-job").await.get("components"), None);
        } else {
            assert_eq!((parts, replicas), (Some(&flink_parts(2)), None));
            assert_eq!(spec.get("replicaRequirements"), None);
        }
        stage.kill().await;
    }
}
