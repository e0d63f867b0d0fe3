//! A simulation of a member's own controllers, in place of its kube-controller-manager and kubelets. No
//! container runs: a Deployment's pods count as ready a moment after its pod template changed, and a
//! Service whose pods are ready has one endpoint, the member's [backend](crate::member).

use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use anyhow::Result;
use futures::{StreamExt, stream};
use k8s_openapi::api::apps::v1::{Deployment, DeploymentStatus};
use k8s_openapi::api::core::v1::{PodTemplateSpec, Service};
use k8s_openapi::api::discovery::v1::{EndpointPort, EndpointSlice};
use kube::api::{Patch, PatchParams};
use kube::{Api, Client, Resource, ResourceExt};
use serde_json::{Value, json};
use tokio::time::{Instant, sleep_until};

use crate::objects::NAMESPACE;
use crate::watch::follow;

/// The time that a pod takes to become ready.
const STARTING: Duration = Duration::from_secs(1);

/// Runs the controllers of the member whose API `client` is connected to and whose pod is at `pod`. Never
/// returns.
pub(crate) async fn run(client: Client, pod: SocketAddr) {
    let deployments: Api<Deployment> = Api::namespaced(client.clone(), NAMESPACE);
    let services: Api<Service> = Api::namespaced(client.clone(), NAMESPACE);
    let (known_deployments, deployment_changes) = follow(deployments.clone());
    let (known_services, service_changes) = follow(services);
    let changes = stream::select(deployment_changes, service_changes);
    let mut changes = std::pin::pin!(changes);
    let mut controllers = Controllers {
        deployments,
        slices: Api::namespaced(client, NAMESPACE),
        pod,
        rollouts: BTreeMap::new(),
        published: BTreeMap::new(),
    };
    let mut wake: Option<Instant> = None;
    loop {
        tokio::select! {
            next = changes.next() => if next.is_none() { return },
            () = sleep_until(wake.unwrap_or_else(Instant::now)), if wake.is_some() => {}
        }
        let (deployments, services) = (known_deployments.state(), known_services.state());
        let now = Instant::now();
        match controllers.step(&deployments, &services, now).await {
            Ok(next) => wake = next,
            Err(error) => {
                tracing::warn!(%error, "A simulated controller of a member failed, will retry");
                wake = now.checked_add(STARTING);
            }
        }
    }
}

struct Controllers {
    deployments: Api<Deployment>,
    slices: Api<EndpointSlice>,
    pod: SocketAddr,
    /// By the uid of the Deployment.
    rollouts: BTreeMap<String, Rollout>,
    /// The readiness of the endpoint that was published, by the uid of the Service.
    published: BTreeMap<String, bool>,
}

/// The pods of a Deployment.
#[derive(Clone, Debug)]
struct Rollout {
    template: Option<PodTemplateSpec>,
    /// Those of its newest template are ready from then on.
    ready_at: Instant,
    /// Set if those of an earlier template serve until then.
    replaces: bool,
}

impl Rollout {
    fn is_complete(&self, now: Instant) -> bool {
        now >= self.ready_at
    }

    fn serves(&self, now: Instant) -> bool {
        self.replaces || self.is_complete(now)
    }

    /// Returns the status of its Deployment.
    fn status(&self, deployment: &Deployment, now: Instant) -> DeploymentStatus {
        let spec = deployment.spec.as_ref();
        let replicas = spec.and_then(|spec| spec.replicas).unwrap_or(1);
        let count = |is: bool| Some(replicas).filter(|replicas| is && *replicas > 0);
        DeploymentStatus {
            observed_generation: deployment.metadata.generation,
            replicas: count(true),
            updated_replicas: count(self.is_complete(now)),
            ready_replicas: count(self.serves(now)),
            available_replicas: count(self.serves(now)),
            unavailable_replicas: count(!self.serves(now)),
            ..DeploymentStatus::default()
        }
    }
}

impl Controllers {
    /// Brings the member up to date, and returns when something changes by itself.
    async fn step(
        &mut self,
        deployments: &[Arc<Deployment>],
        services: &[Arc<Service>],
        now: Instant,
    ) -> Result<Option<Instant>> {
        self.roll_out(deployments, now);
        for deployment in deployments {
            self.report(deployment, now).await?;
        }
        for service in services {
            self.publish(service, deployments, now).await?;
        }
        let pending = self.rollouts.values().map(|rollout| rollout.ready_at);
        Ok(pending.filter(|at| *at > now).min())
    }

    /// Starts the pods of each new template.
    fn roll_out(&mut self, deployments: &[Arc<Deployment>], now: Instant) {
        let before = std::mem::take(&mut self.rollouts);
        for deployment in deployments {
            let uid = uid(deployment.as_ref());
            let template = deployment.spec.as_ref().map(|spec| spec.template.clone());
            let known = before.get(&uid);
            let rollout = match known.filter(|known| known.template == template) {
                Some(same) => same.clone(),
                None => Rollout {
                    template,
                    ready_at: now + STARTING,
                    replaces: known.is_some_and(|known| known.serves(now)),
                },
            };
            self.rollouts.insert(uid, rollout);
        }
    }

    async fn report(&self, deployment: &Deployment, now: Instant) -> Result<()> {
        let Some(rollout) = self.rollouts.get(&uid(deployment)) else {
            return Ok(());
        };
        let status = rollout.status(deployment, now);
        if deployment.status.as_ref() == Some(&status) {
            return Ok(());
        }
        let patch = json!([{ "op": "add", "path": "/status", "value": status }]);
        let patch = Patch::Json::<()>(serde_json::from_value(patch)?);
        let name = deployment.name_any();
        let params = PatchParams::default();
        self.deployments
            .patch_status(&name, &params, &patch)
            .await?;
        Ok(())
    }

    async fn publish(
        &mut self,
        service: &Service,
        deployments: &[Arc<Deployment>],
        now: Instant,
    ) -> Result<()> {
        let serves = deployments.iter().any(|deployment| {
            let rollout = self.rollouts.get(&uid(deployment.as_ref()));
            selects(service, deployment) && rollout.is_some_and(|rollout| rollout.serves(now))
        });
        let uid = uid(service);
        if self.published.get(&uid) == Some(&serves) {
            return Ok(());
        }
        let slice = slice(service, self.pod, serves);
        let params = PatchParams::apply("endpointslice-controller").force();
        let name = service.name_any();
        self.slices
            .patch(&name, &params, &Patch::Apply(slice))
            .await?;
        self.published.insert(uid, serves);
        Ok(())
    }
}

fn uid(object: &impl Resource) -> String {
    object.meta().uid.clone().unwrap_or_default()
}

/// Returns `true` if the Service selects the pods of the Deployment.
fn selects(service: &Service, deployment: &Deployment) -> bool {
    let spec = service.spec.as_ref();
    let Some(selector) = spec.and_then(|spec| spec.selector.as_ref()) else {
        return false;
    };
    let spec = deployment.spec.as_ref();
    let pods = spec.and_then(|spec| spec.template.metadata.as_ref()?.labels.as_ref());
    let has =
        |(key, value): (&String, &String)| pods.is_some_and(|pods| pods.get(key) == Some(value));
    !selector.is_empty() && selector.iter().all(has)
}

fn slice(service: &Service, pod: SocketAddr, is_ready: bool) -> Value {
    let name = service.name_any();
    let owner = json!({ "apiVersion": "v1", "kind": "Service", "name": name,
        "uid": service.metadata.uid, "controller": true });
    let ports = service
        .spec
        .iter()
        .flat_map(|spec| spec.ports.iter().flatten());
    let ports = ports.map(|port| EndpointPort {
        name: port.name.clone(),
        port: Some(pod.port().into()),
        protocol: port.protocol.clone(),
        ..EndpointPort::default()
    });
    let ports: Vec<_> = ports.collect();
    json!({
        "apiVersion": "discovery.k8s.io/v1",
        "kind": "EndpointSlice",
        "metadata": {
            "name": name,
            "labels": {
                "kubernetes.io/service-name": name,
                "endpointslice.kubernetes.io/managed-by": "endpointslice-controller.k8s.io",
            },
            "ownerReferences": [owner],
        },
        "addressType": "IPv4",
        "endpoints": [{ "addresses": [pod.ip()], "conditions": { "ready": is_ready } }],
        "ports": ports,
    })
}

#[cfg(test)]
mod tests {
    use embedded_apiserver::ApiServer;
    use kube::api::PostParams;
    use kube::runtime::wait::await_condition;

    use super::*;

    fn parsed<K: serde::de::DeserializeOwned>(object: Value) -> K {
        serde_json::from_value(object).unwrap()
    }

    fn deployment(image: &str) -> Deployment {
        let labels = json!({ "app": "web" });
        let pod = json!({ "metadata": { "labels": labels },
            "spec": { "containers": [{ "name": "web", "image": image }] } });
        let spec = json!({ "replicas": 2, "selector": { "matchLabels": labels }, "template": pod });
        parsed(json!({ "metadata": { "name": "web" }, "spec": spec }))
    }

    /// Returns its updated, ready and unavailable replicas.
    fn replicas(deployment: &Deployment) -> Option<[Option<i32>; 3]> {
        let status = deployment.status.as_ref()?;
        let is_observed = status.observed_generation == deployment.metadata.generation;
        let replicas = [
            status.updated_replicas,
            status.ready_replicas,
            status.unavailable_replicas,
        ];
        is_observed.then_some(replicas)
    }

    /// Pods of a new template replace the old ones once they are ready.
    #[tokio::test(start_paused = true)]
    async fn ready_pods_replace_old_ones() {
        let server = ApiServer::new();
        let client = Client::new(server.service(), "default");
        let namespace = json!({ "metadata": { "name": NAMESPACE } });
        let namespaces: Api<k8s_openapi::api::core::v1::Namespace> = Api::all(client.clone());
        let post = PostParams::default();
        namespaces.create(&post, &parsed(namespace)).await.unwrap();
        let deployments: Api<Deployment> = Api::namespaced(client.clone(), NAMESPACE);
        let services: Api<Service> = Api::namespaced(client.clone(), NAMESPACE);
        let slices: Api<EndpointSlice> = Api::namespaced(client.clone(), NAMESPACE);
        let pod = SocketAddr::from(([10, 244, 1, 10], 8080));
        let running = tokio::spawn(run(client, pod));

        let service = json!({ "metadata": { "name": "web" },
            "spec": { "selector": { "app": "web" }, "ports": [{ "port": 80 }] } });
        services.create(&post, &parsed(service)).await.unwrap();
        let has_endpoint = |ready: bool| {
            await_condition(
                slices.clone(),
                "web",
                move |slice: Option<&EndpointSlice>| {
                    let endpoints = slice.and_then(|slice| slice.endpoints.as_ref());
                    let conditions = endpoints.and_then(|list| list.first()?.conditions.as_ref());
                    conditions.is_some_and(|conditions| conditions.ready == Some(ready))
                },
            )
        };
        has_endpoint(false).await.unwrap();

        let reports = |expected: [Option<i32>; 3]| {
            await_condition(
                deployments.clone(),
                "web",
                move |deployment: Option<&Deployment>| {
                    deployment.and_then(replicas) == Some(expected)
                },
            )
        };
        let first = deployment("web:1");
        deployments.create(&post, &first).await.unwrap();
        reports([None, None, Some(2)]).await.unwrap();
        reports([Some(2), Some(2), None]).await.unwrap();
        has_endpoint(true).await.unwrap();

        let patch = Patch::Merge(json!({ "spec": deployment("web:2").spec }));
        deployments
            .patch("web", &PatchParams::default(), &patch)
            .await
            .unwrap();
        reports([None, Some(2), None]).await.unwrap();
        reports([Some(2), Some(2), None]).await.unwrap();
        running.abort();
    }
}
