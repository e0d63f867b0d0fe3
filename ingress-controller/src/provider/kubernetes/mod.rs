//! The provider `kubernetes`: Services, `EndpointSlice`s, Secrets and Ingresses in a gateway cluster, where
//! any ingress controller serves them.
//!
//! Every object carries our label, and objects without it are never touched. A write is sent only where
//! the gateway cluster differs from the desired state, and only takes effect on the version that was
//! seen.

mod args;
mod error;
mod index;
mod objects;

use std::collections::BTreeSet;
use std::sync::Arc;

use ::objects::Key;
use futures::FutureExt;
use futures::future::{BoxFuture, join_all};
use k8s_openapi::api::core::v1::{Namespace, Secret, Service};
use k8s_openapi::api::discovery::v1::EndpointSlice;
use k8s_openapi::api::networking::v1::{Ingress, IngressLoadBalancerStatus};
use karmada_rules::ingress::kubernetes::{
    Existing, Gateway, KubernetesPlan, Write, cutting, removal, slice_origin,
};
use karmada_rules::ingress::{ControllerName, Desired, Held};
use karmada_runtime::client::Source;
use karmada_runtime::error::BoxError;
use karmada_runtime::program::{Program, StartError};
use karmada_runtime::queue::Queue;
use karmada_runtime::write::{WriteErrorKind, Writer};
use kube::api::PostParams;
use kube::runtime::watcher::Config;
use kube::{Api, Client, Resource};

pub(crate) use self::args::KubernetesArgs;
use self::error::{GatewayError, GatewayObstacle};
use self::objects::{CreateOutcome, GatewayKind, GatewayObjects, WriteResult};

use super::balancer::{Ensured, LoadBalancer, NamedBalancer, Obstacle, label};

/// A gateway cluster.
pub struct Kubernetes {
    /// Its name, empty if it is the only one.
    name: &'static str,
    gateway: Gateway,
    client: Client,
    services: GatewayObjects<Service>,
    slices: GatewayObjects<EndpointSlice>,
    secrets: GatewayObjects<Secret>,
    ingresses: GatewayObjects<Ingress>,
    namespaces: Api<Namespace>,
    /// Set if Secrets are watched. Without, none is ever desired.
    copies_secrets: bool,
}

impl GatewayKind for Service {
    const TARGET: &'static str = "gateway_service";
}

impl GatewayKind for EndpointSlice {
    const TARGET: &'static str = "gateway_endpoint_slice";
}

impl GatewayKind for Secret {
    const TARGET: &'static str = "gateway_secret";
}

impl GatewayKind for Ingress {
    const TARGET: &'static str = "gateway_ingress";
}

/// Connects to every gateway cluster of the flags.
pub(super) async fn connect(
    args: &KubernetesArgs,
    controller: &ControllerName,
    program: &mut Program,
) -> Result<Vec<NamedBalancer>, StartError> {
    let mut all = Vec::new();
    for file in args.kubeconfigs()? {
        let name: &'static str = file.name.clone().leak();
        let source = Source {
            kubeconfig: Some(file.value.clone()),
            ..Source::default()
        };
        let client = program.connect(label("gateway", name), &source).await?;
        let class = args.ingress_class().map(ToOwned::to_owned);
        let provider = Kubernetes {
            name,
            copies_secrets: args.copy_tls_secrets(),
            ..Kubernetes::new(client, Gateway::new(controller, class))
        };
        let balancer: Arc<dyn LoadBalancer> = Arc::new(provider);
        all.push(NamedBalancer { name, balancer });
    }
    Ok(all)
}

impl Kubernetes {
    /// Creates the provider for the gateway cluster of `client`.
    pub fn new(client: Client, gateway: Gateway) -> Self {
        Self {
            name: "",
            gateway,
            services: GatewayObjects::new(client.clone()),
            slices: GatewayObjects::new(client.clone()),
            secrets: GatewayObjects::new(client.clone()),
            ingresses: GatewayObjects::new(client.clone()),
            namespaces: Api::all(client.clone()),
            copies_secrets: true,
            client,
        }
    }

    /// Performs the writes of `plan` in its order. A rejected or outdated write does not prevent the
    /// others, except the removal of what serves the traffic until it succeeds.
    async fn apply(
        &self,
        writer: &Writer,
        plan: KubernetesPlan,
    ) -> Result<BTreeSet<GatewayObstacle>, GatewayError> {
        let mut tally = Tally::default();
        // All of them are tried, and none waits for another: each is traffic into a broken cluster.
        let deletions = plan.blocked_slices.iter();
        let deletions = join_all(deletions.map(|slice| self.slices.cut(writer, slice))).await;
        let mut failure = None;
        for result in deletions {
            failure = tally.add(result).err().or(failure);
        }
        if let Some(failure) = failure {
            return Err(failure);
        }
        // Backends before the routes to them.
        for service in &plan.services {
            tally.add(self.write(writer, &self.services, service).await)?;
        }
        for slice in &plan.slices {
            tally.add(self.write(writer, &self.slices, slice).await)?;
        }
        for secret in &plan.secrets {
            tally.add(self.write(writer, &self.secrets, secret).await)?;
        }
        if let Some(ingress) = &plan.ingress {
            tally.add(self.write(writer, &self.ingresses, ingress).await)?;
        }
        // Routes before their backends, and both only once their successors are in place.
        if tally.in_place {
            for ingress in &plan.stale_ingresses {
                tally.add(self.ingresses.delete(writer, ingress).await)?;
            }
        }
        if tally.in_place {
            for slice in &plan.stale_slices {
                tally.add(self.slices.delete(writer, slice).await)?;
            }
            for service in &plan.stale_services {
                tally.add(self.services.delete(writer, service).await)?;
            }
            for secret in &plan.stale_secrets {
                tally.add(self.secrets.delete(writer, secret).await)?;
            }
        }
        let clashes = plan.clashes.into_iter().map(GatewayObstacle::Clash);
        tally.obstacles.extend(clashes);
        tally.finish()
    }

    async fn write<K: GatewayKind>(
        &self,
        writer: &Writer,
        objects: &GatewayObjects<K>,
        write: &Write<K>,
    ) -> WriteResult {
        let object = match write {
            Write::Update(update) => return objects.update(writer, update).await,
            Write::Create(object) => object,
        };
        let outcome = objects.create(writer, &self.gateway, object).await?;
        if let CreateOutcome::Done(obstacle) = outcome {
            return Ok(obstacle);
        }
        let key = Key::of(object);
        self.create_namespace(writer, &key.namespace).await?;
        match objects.create(writer, &self.gateway, object).await? {
            CreateOutcome::Done(obstacle) => Ok(obstacle),
            // It was deleted again, or is being deleted.
            CreateOutcome::NoNamespace => Err(GatewayError::Stale { kind: K::KIND, key }),
        }
    }

    async fn create_namespace(&self, writer: &Writer, name: &str) -> Result<(), GatewayError> {
        let mut namespace = Namespace::default();
        namespace.meta_mut().name = Some(name.to_owned());
        let parameters = PostParams::default();
        let call = self.namespaces.create(&parameters, &namespace);
        match writer.write("gateway_namespace", call).await {
            Ok(_) => {
                tracing::info!(namespace = name, "Made a namespace in the gateway cluster");
                Ok(())
            }
            // Another reconcile created it meanwhile.
            Err(error) if error.kind() == WriteErrorKind::Conflict => Ok(()),
            Err(error) => Err(GatewayError::Write {
                kind: "Namespace",
                key: Key::cluster_scoped(name),
                source: Box::new(error),
            }),
        }
    }

    async fn ensure_all(
        &self,
        writer: &Writer,
        desired: &Desired,
    ) -> Result<Ensured, GatewayError> {
        let key = &desired.key;
        let wanted = self.gateway.objects(desired);
        let existing = Existing {
            services: self.services.existing(key, &wanted.services),
            slices: self.slices.existing(key, &wanted.slices),
            secrets: self.secrets.existing(key, &wanted.secrets),
            ingresses: self.ingresses.existing(key, &wanted.ingress),
        };
        let plan = KubernetesPlan::new(desired, wanted, &existing)?;
        let obstacles = self.apply(writer, plan).await?;
        Ok(Ensured {
            load_balancer: Some(self.addresses(key)),
            obstacles: obstacles.into_iter().map(Obstacle::from).collect(),
        })
    }

    async fn delete_all(
        &self,
        writer: &Writer,
        key: &Key,
        excluded: &BTreeSet<String>,
    ) -> Result<Ensured, BoxError> {
        let existing = Existing {
            services: self.services.of(key),
            slices: self.slices.of(key),
            secrets: self.secrets.of(key),
            ingresses: self.ingresses.of(key),
        };
        let plan = removal(existing, excluded);
        match self.apply(writer, plan).await?.pop_first() {
            // The finalizer must stay while an object is left that only this ingress leads to.
            Some(obstacle) => Err(Obstacle::from(obstacle).into()),
            None => Ok(Ensured {
                load_balancer: Some(IngressLoadBalancerStatus::default()),
                obstacles: BTreeSet::new(),
            }),
        }
    }

    async fn cut_slices(&self, writer: &Writer, key: &Key, cut: &Held) -> Result<(), BoxError> {
        let plan = cutting(self.slices.of(key), cut);
        match self.apply(writer, plan).await?.pop_first() {
            Some(obstacle) => Err(Obstacle::from(obstacle).into()),
            None => Ok(()),
        }
    }

    /// Returns the addresses that the gateway's ingress controller reports for the ingress `key`.
    fn addresses(&self, key: &Key) -> IngressLoadBalancerStatus {
        let ingress = self.ingresses.get(key);
        let status = ingress.as_ref().and_then(|ingress| ingress.status.as_ref());
        let load_balancer = status.and_then(|status| status.load_balancer.clone());
        load_balancer.unwrap_or_default()
    }

    /// Watches our objects of one kind. Drift and changed addresses wake the ingress they belong to.
    fn watch_kind<K: GatewayKind>(
        self: &Arc<Self>,
        program: &mut Program,
        queue: &Queue<Key>,
        name: &'static str,
        objects: fn(&Self) -> &GatewayObjects<K>,
    ) {
        let provider = Arc::clone(self);
        let queue = queue.clone();
        let ours = Config::default().labels(&self.gateway.selector());
        let api = Api::all(self.client.clone());
        program.watch_elsewhere(label(name, self.name), api, ours, move |event| {
            queue.add_all(objects(&provider).observe(event));
        });
    }
}

impl LoadBalancer for Kubernetes {
    fn serves(&self) -> bool {
        true
    }

    fn watch(self: Arc<Self>, program: &mut Program, queue: &Queue<Key>) {
        self.watch_kind(program, queue, "gateway_services", |own| &own.services);
        self.watch_kind(program, queue, "gateway_slices", |own| &own.slices);
        if self.copies_secrets {
            self.watch_kind(program, queue, "gateway_secrets", |own| &own.secrets);
        }
        self.watch_kind(program, queue, "gateway_ingresses", |own| &own.ingresses);
    }

    fn ensure<'a>(
        &'a self,
        writer: &'a Writer,
        desired: &'a Desired,
    ) -> BoxFuture<'a, Result<Ensured, BoxError>> {
        async move { Ok(self.ensure_all(writer, desired).await?) }.boxed()
    }

    fn delete<'a>(
        &'a self,
        writer: &'a Writer,
        key: &'a Key,
        excluded: &'a BTreeSet<String>,
    ) -> BoxFuture<'a, Result<Ensured, BoxError>> {
        self.delete_all(writer, key, excluded).boxed()
    }

    fn cut<'a>(
        &'a self,
        writer: &'a Writer,
        key: &'a Key,
        cut: &'a Held,
    ) -> BoxFuture<'a, Result<(), BoxError>> {
        self.cut_slices(writer, key, cut).boxed()
    }

    fn keys(&self) -> Vec<Key> {
        let services = self.services.ingresses().into_iter();
        let all = services
            .chain(self.slices.ingresses())
            .chain(self.secrets.ingresses())
            .chain(self.ingresses.ingresses());
        all.collect::<BTreeSet<_>>().into_iter().collect()
    }

    fn holds(&self, key: &Key) -> bool {
        !self.services.of(key).is_empty()
            || !self.slices.of(key).is_empty()
            || !self.secrets.of(key).is_empty()
            || !self.ingresses.of(key).is_empty()
    }

    fn endpoints(&self, key: &Key) -> Held {
        let mut held = Held::new();
        for slice in self.slices.of(key) {
            if let Some((service, cluster)) = slice_origin(&slice) {
                let clusters = held.entry(service.to_owned()).or_default();
                clusters.insert(cluster.to_owned());
            }
        }
        held
    }

    fn is_outage(&self, error: &BoxError) -> bool {
        error.downcast_ref().is_some_and(GatewayError::is_outage)
    }

    fn probe(&self) -> BoxFuture<'_, Result<(), BoxError>> {
        async move {
            match self.client.apiserver_version().await {
                Ok(_) => Ok(()),
                // It answers, and the user may not read its version.
                Err(kube::Error::Api(status)) if status.code < 429 => Ok(()),
                Err(error) => Err(error.into()),
            }
        }
        .boxed()
    }
}

/// The outcome of the writes of one plan.
struct Tally {
    obstacles: BTreeSet<GatewayObstacle>,
    stale: Option<GatewayError>,
    /// True while everything that is to serve the traffic is in place. A clash does not count: an
    /// object of another owner never served this ingress.
    in_place: bool,
}

impl Default for Tally {
    fn default() -> Self {
        Self {
            obstacles: BTreeSet::new(),
            stale: None,
            in_place: true,
        }
    }
}

impl Tally {
    /// Adds the result of a write; returns an error if further writes would fail as well.
    fn add(&mut self, result: WriteResult) -> Result<(), GatewayError> {
        match result {
            Ok(None) => {}
            Ok(Some(obstacle)) => {
                self.in_place &= matches!(obstacle, GatewayObstacle::Clash(_));
                self.obstacles.insert(obstacle);
            }
            Err(stale @ GatewayError::Stale { .. }) => {
                self.in_place = false;
                self.stale.get_or_insert(stale);
            }
            Err(error) => return Err(error),
        }
        Ok(())
    }

    fn finish(self) -> Result<BTreeSet<GatewayObstacle>, GatewayError> {
        match self.stale {
            Some(stale) => Err(stale),
            None => Ok(self.obstacles),
        }
    }
}

#[cfg(test)]
mod tests;
