//! A simulation of a member's own controllers, in place of its kube-controller-manager and kubelets. No
//! container runs: a Deployment's pods count as ready a moment after its pod template changed, or never if its
//! version is [`BROKEN`], and those before them serve until then, as with a `maxUnavailable` of 0. A Service whose
//! pods are ready has one endpoint, the member's [backend](crate::member).

use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use anyhow::Result;
use futures::{StreamExt, stream};
use k8s_openapi::api::apps::v1::{Deployment, DeploymentCondition, DeploymentStatus};
use k8s_openapi::api::core::v1::{PodTemplateSpec, Service};
use k8s_openapi::api::discovery::v1::{EndpointPort, EndpointSlice};
use kube::api::{Patch, PatchParams};
use kube::{Api, Client, Resource, ResourceExt};
use serde_json::{Value, json};
use tokio::sync::watch;
use tokio::time::{Instant, sleep_until};

use crate::rollout::{BROKEN, image, version};
use crate::site::Site;
use crate::watch::follow;

/// The time that a pod takes to become ready.
const STARTING: Duration = Duration::from_secs(1);

/// The time that new pods may take, where a Deployment does not say.
const PROGRESS_DEADLINE_SECONDS: i32 = 600;

/// The image of the pods that are ready; none while there are none.
pub(crate) type ReadyImage = Option<String>;

/// Returns which pods of a website are ready, and the task of its controllers in the member whose API `client` is
/// connected to. Its pod is at `pod`.
pub(crate) fn start(
    client: &Client,
    site: Site,
    pod: SocketAddr,
) -> (
    watch::Receiver<ReadyImage>,
    impl Future<Output = ()> + use<>,
) {
    let (ready, is_ready) = watch::channel(None);
    (is_ready, run(client.clone(), site.namespace(), pod, ready))
}

/// Runs the controllers of a namespace, and never returns.
async fn run(
    client: Client,
    namespace: &'static str,
    pod: SocketAddr,
    ready: watch::Sender<ReadyImage>,
) {
    let deployments: Api<Deployment> = Api::namespaced(client.clone(), namespace);
    let services: Api<Service> = Api::namespaced(client.clone(), namespace);
    let (known_deployments, deployment_changes) = follow(deployments.clone());
    let (known_services, service_changes) = follow(services);
    let changes = stream::select(deployment_changes, service_changes);
    let mut changes = std::pin::pin!(changes);
    let mut controllers = Controllers {
        deployments,
        slices: Api::namespaced(client, namespace),
        pod,
        ready,
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
    ready: watch::Sender<ReadyImage>,
    /// By the uid of the Deployment.
    rollouts: BTreeMap<String, Rollout>,
    /// The readiness of the endpoint that was published, by the uid of the Service.
    published: BTreeMap<String, bool>,
}

/// The pods of a Deployment.
#[derive(Clone, Debug)]
struct Rollout {
    template: Option<PodTemplateSpec>,
    /// The image of its newest template.
    image: ReadyImage,
    /// Those of that are ready from then on, or never.
    ready_at: Option<Instant>,
    /// From then on, those that are not ready have failed.
    deadline: Instant,
    /// The image of those of an earlier template, which serve until then.
    replaces: ReadyImage,
}

impl Rollout {
    /// Starts the pods of a new template, in place of those of the rollout `before`.
    fn start(deployment: &Deployment, before: Option<&Self>, now: Instant) -> Self {
        let spec = deployment.spec.as_ref();
        let seconds = spec.and_then(|spec| spec.progress_deadline_seconds);
        let seconds = seconds.unwrap_or(PROGRESS_DEADLINE_SECONDS);
        let image = image(deployment);
        let is_broken = image.is_some_and(|image| version(image).ends_with(BROKEN));
        Self {
            template: spec.map(|spec| spec.template.clone()),
            image: image.map(str::to_owned),
            ready_at: (!is_broken).then(|| now + STARTING),
            deadline: now + Duration::from_secs(seconds.try_into().unwrap_or_default()),
            replaces: before.and_then(|before| before.serving(now)).cloned(),
        }
    }

    fn is_complete(&self, now: Instant) -> bool {
        self.ready_at.is_some_and(|at| now >= at)
    }

    /// Returns the image of the pods that serve, if any do.
    fn serving(&self, now: Instant) -> Option<&String> {
        if self.is_complete(now) {
            self.image.as_ref()
        } else {
            self.replaces.as_ref()
        }
    }

    /// Returns when something changes by itself.
    fn wake_at(&self, now: Instant) -> Option<Instant> {
        let next = match self.ready_at {
            Some(at) => at,
            None => self.deadline,
        };
        (next > now).then_some(next)
    }

    /// Returns the status of its Deployment.
    fn status(&self, deployment: &Deployment, now: Instant) -> DeploymentStatus {
        let spec = deployment.spec.as_ref();
        let wanted = spec.and_then(|spec| spec.replicas).unwrap_or(1);
        let (new, old) = match (self.is_complete(now), &self.replaces) {
            (false, Some(_)) => (1.min(wanted), wanted),
            _ => (wanted, 0),
        };
        let unready = if self.is_complete(now) { 0 } else { new };
        DeploymentStatus {
            observed_generation: deployment.metadata.generation,
            replicas: count(new + old),
            updated_replicas: count(new),
            ready_replicas: count(new + old - unready),
            available_replicas: count(new + old - unready),
            unavailable_replicas: count(unready),
            conditions: Some(self.conditions(&deployment.name_any(), now)),
            ..DeploymentStatus::default()
        }
    }

    fn conditions(&self, name: &str, now: Instant) -> Vec<DeploymentCondition> {
        let available = match self.serving(now) {
            Some(_) => (
                "True",
                "MinimumReplicasAvailable",
                "has minimum availability",
            ),
            None => (
                "False",
                "MinimumReplicasUnavailable",
                "does not have minimum availability",
            ),
        };
        let progressing = if self.is_complete(now) {
            (
                "True",
                "NewReplicaSetAvailable",
                "has successfully progressed",
            )
        } else if now < self.deadline {
            ("True", "ReplicaSetUpdated", "is progressing")
        } else {
            (
                "False",
                "ProgressDeadlineExceeded",
                "has timed out progressing",
            )
        };
        let conditions = [("Available", available), ("Progressing", progressing)];
        let conditions = conditions.map(|(kind, (status, reason, what))| DeploymentCondition {
            type_: kind.to_owned(),
            status: status.to_owned(),
            reason: Some(reason.to_owned()),
            message: Some(format!("Deployment {name:?} {what}.")),
            ..DeploymentCondition::default()
        });
        conditions.into()
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
        let pending = self.rollouts.values();
        Ok(pending.filter_map(|rollout| rollout.wake_at(now)).min())
    }

    /// Starts the pods of each new template, and says which pods are ready.
    fn roll_out(&mut self, deployments: &[Arc<Deployment>], now: Instant) {
        let before = std::mem::take(&mut self.rollouts);
        for deployment in deployments {
            let uid = uid(deployment.as_ref());
            let template = deployment.spec.as_ref().map(|spec| spec.template.clone());
            let known = before.get(&uid);
            let rollout = match known.filter(|known| known.template == template) {
                Some(same) => same.clone(),
                None => Rollout::start(deployment, known, now),
            };
            self.rollouts.insert(uid, rollout);
        }
        let mut rollouts = self.rollouts.values();
        let image = rollouts.find_map(|rollout| rollout.serving(now)).cloned();
        self.ready.send_if_modified(|ready| {
            let is_new = *ready != image;
            *ready = image;
            is_new
        });
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
            selects(service, deployment)
                && rollout.is_some_and(|rollout| rollout.serving(now).is_some())
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

/// Returns a number of pods as a status has it: without a 0.
fn count(pods: i32) -> Option<i32> {
    (pods > 0).then_some(pods)
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
    use k8s_openapi::NamespaceResourceScope;
    use k8s_openapi::api::core::v1::Namespace;
    use kube::api::PostParams;
    use kube::runtime::wait::await_condition;
    use tokio::task::JoinSet;

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

    /// A member with the controllers of the shop.
    struct Shop {
        client: Client,
        ready: watch::Receiver<ReadyImage>,
        _running: JoinSet<()>,
    }

    impl Shop {
        async fn start() -> Self {
            let server = ApiServer::new();
            let client = Client::new(server.service(), "default");
            let namespace = json!({ "metadata": { "name": Site::Shop.namespace() } });
            let namespaces: Api<Namespace> = Api::all(client.clone());
            let post = PostParams::default();
            namespaces.create(&post, &parsed(namespace)).await.unwrap();
            let pod = SocketAddr::from(([10, 244, 1, 10], 8080));
            let (ready, run) = start(&client, Site::Shop, pod);
            let mut running = JoinSet::new();
            running.spawn(run);
            Self {
                client,
                ready,
                _running: running,
            }
        }

        fn api<K: Resource<Scope = NamespaceResourceScope, DynamicType = ()>>(&self) -> Api<K> {
            Api::namespaced(self.client.clone(), Site::Shop.namespace())
        }

        /// Creates the Deployment.
        async fn deploy(&self, image: &str) {
            let api = self.api::<Deployment>();
            let params = PostParams::default();
            api.create(&params, &deployment(image)).await.unwrap();
        }

        /// Changes the image of the Deployment.
        async fn change(&self, image: &str) {
            let patch = Patch::Merge(json!({ "spec": deployment(image).spec }));
            let api = self.api::<Deployment>();
            let params = PatchParams::default();
            api.patch("web", &params, &patch).await.unwrap();
        }

        /// Waits until so many replicas are updated, ready and unavailable.
        async fn reports(&self, expected: [Option<i32>; 3]) {
            let reached = await_condition(self.api(), "web", move |it: Option<&Deployment>| {
                it.and_then(replicas) == Some(expected)
            });
            reached.await.unwrap();
        }

        /// Waits until the Service has an endpoint that is ready, or not.
        async fn has_endpoint(&self, ready: bool) {
            let reached = await_condition(self.api(), "web", move |it: Option<&EndpointSlice>| {
                let endpoints = it.and_then(|slice| slice.endpoints.as_ref());
                let conditions = endpoints.and_then(|list| list.first()?.conditions.as_ref());
                conditions.is_some_and(|conditions| conditions.ready == Some(ready))
            });
            reached.await.unwrap();
        }
    }

    /// Pods of a new template replace the old ones once they are ready.
    #[tokio::test(start_paused = true)]
    async fn ready_pods_replace_old_ones() {
        let shop = Shop::start().await;
        let service = json!({ "metadata": { "name": "web" },
            "spec": { "selector": { "app": "web" }, "ports": [{ "port": 80 }] } });
        let services = shop.api::<Service>();
        let post = PostParams::default();
        services.create(&post, &parsed(service)).await.unwrap();
        shop.has_endpoint(false).await;
        shop.deploy("web:1").await;
        shop.reports([Some(2), None, Some(2)]).await;
        shop.reports([Some(2), Some(2), None]).await;
        shop.has_endpoint(true).await;
        shop.change("web:2").await;
        shop.reports([Some(1), Some(2), Some(1)]).await;
        shop.reports([Some(2), Some(2), None]).await;
    }

    /// Pods that never become ready leave the old ones serving, and are given up after the deadline.
    #[tokio::test(start_paused = true)]
    async fn broken_pods_replace_none() {
        let mut shop = Shop::start().await;
        shop.deploy("web:1").await;
        shop.reports([Some(2), Some(2), None]).await;
        assert_eq!(shop.ready.borrow_and_update().as_deref(), Some("web:1"));
        shop.change("web:2-broken").await;
        let failed = await_condition(shop.api(), "web", |it: Option<&Deployment>| {
            let status = it.and_then(|deployment| deployment.status.as_ref());
            let conditions = status.and_then(|status| status.conditions.as_ref());
            let mut conditions = conditions.into_iter().flatten();
            conditions.any(|it| it.reason.as_deref() == Some("ProgressDeadlineExceeded"))
        });
        failed.await.unwrap();
        shop.reports([Some(1), Some(2), Some(1)]).await;
        assert!(!shop.ready.has_changed().unwrap());
        shop.change("web:3").await;
        shop.reports([Some(2), Some(2), None]).await;
        assert_eq!(shop.ready.borrow_and_update().as_deref(), Some("web:3"));
    }
}
