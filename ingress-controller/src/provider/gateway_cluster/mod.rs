//! A gateway cluster: Services, `EndpointSlice`s, Secrets and routes to them, which something in that cluster serves. The
//! kind of the routes and their report are those of a [`Routing`].
//!
//! Every object carries our label, and objects without it are never touched. A write is sent only where
//! the gateway cluster differs from the desired state, and only takes effect on the version that was
//! seen.

mod args;
pub(super) mod error;
mod kind;
pub(super) mod objects;
#[cfg(test)]
pub(super) mod stage;

use std::collections::BTreeSet;
use std::sync::Arc;

use ::objects::Key;
use ::objects::write::Write;
use async_trait::async_trait;
use futures::future::join_all;
use k8s_openapi::api::core::v1::{Namespace, Secret, Service};
use k8s_openapi::api::discovery::v1::EndpointSlice;
use k8s_openapi::api::networking::v1::IngressLoadBalancerStatus;
use karmada_runtime::commit::Committer;
use karmada_runtime::error::BoxError;
use karmada_runtime::program::{Program, StartError};
use karmada_runtime::queue::Queue;
use karmada_runtime::watch::Decoded;
use karmada_runtime::write::Writer;
use kube::runtime::watcher::{Config, Event};
use kube::{Api, Client, Resource};
use traffic::ingress::kubernetes::{
    Existing, KubernetesPlan, Managed, ManagedBy, Objects, blocked_slices, cutting, removal,
    slice_origin,
};
use traffic::ingress::{Desired, ServedClusters};

pub(crate) use self::args::GatewayClusterArgs;
pub(super) use self::kind::GatewayKind;
pub(super) use self::objects::GatewayObjects;

use self::error::{GatewayError, GatewayObstacle};
use self::objects::{Outcome, WriteResult, committer, failed};

use super::balancer::{
    Balancers, Ensured, LoadBalancer, NamedBalancer, Obstacle, label, require_none,
};

/// The routes of a gateway cluster to its Services.
pub trait Routing: Send + Sync + Sized + 'static {
    /// Their kind.
    type Route: GatewayKind;

    /// Returns the label of our objects.
    fn managed_by(&self) -> &ManagedBy;

    /// Returns the objects that serve `desired`, and the obstacles that keep something out of them. `routes` has those of
    /// all ingresses.
    fn objects(
        &self,
        desired: &Desired,
        routes: &GatewayObjects<Self::Route>,
    ) -> (Objects<Self::Route>, BTreeSet<Obstacle>);

    /// Returns the report about the `routes` that serve `desired`.
    fn report(&self, desired: &Desired, routes: &[Arc<Self::Route>]) -> Ensured;

    /// Adds watches of the objects on which the routes depend. They wake the ingresses concerned.
    fn watch(cluster: &Arc<GatewayCluster<Self>>, program: &mut Program, queue: &Queue<Key>);

    /// Returns the ingresses that an event of another's route may let in.
    fn waiting(&self, _event: &Event<Decoded<Self::Route>>) -> Vec<Key> {
        Vec::new()
    }

    /// Forgets the ingress `key`, which is deleted.
    fn forget(&self, _key: &Key) {}
}

/// A gateway cluster.
pub struct GatewayCluster<R: Routing> {
    /// Its name, empty if it is the only one.
    pub(super) name: &'static str,
    pub(super) routing: R,
    pub(super) client: Client,
    pub(super) services: GatewayObjects<Service>,
    pub(super) slices: GatewayObjects<EndpointSlice>,
    pub(super) secrets: GatewayObjects<Secret>,
    pub(super) routes: GatewayObjects<R::Route>,
    committer: Committer,
    /// Set if Secrets are watched. Without, none is ever desired.
    pub(super) copies_secrets: bool,
    /// Set if the endpoints of blocked clusters stay, in slices of no Service.
    keeps_blocked: bool,
}

/// Connects to every gateway cluster of the flags, for the provider named `provider`. `make` makes the load balancers.
pub(super) async fn connect<R: Routing>(
    clusters: &GatewayClusterArgs,
    provider: &str,
    program: &mut Program,
    make: impl Fn(&'static str, Client, &Writer) -> GatewayCluster<R> + Send + 'static,
) -> Result<Balancers, StartError> {
    let connected = clusters.connect(provider, program).await?;
    let keeps_blocked = clusters.keep_blocked_endpoints();
    Ok(Box::new(move |writer| {
        let balancers = connected.into_iter().map(|(name, client)| {
            let mut cluster = make(name, client, writer);
            cluster.keeps_blocked = keeps_blocked;
            let balancer: Arc<dyn LoadBalancer> = Arc::new(cluster);
            NamedBalancer { name, balancer }
        });
        balancers.collect()
    }))
}

impl<R: Routing> GatewayCluster<R> {
    /// Creates the provider for the only gateway cluster, that of `client`.
    pub fn new(client: Client, writer: &Writer, routing: R) -> Self {
        Self::named("", client, writer, routing)
    }

    /// Creates the provider for the gateway cluster `name`.
    pub(super) fn named(name: &'static str, client: Client, writer: &Writer, routing: R) -> Self {
        let committer = committer(&client, writer);
        Self {
            name,
            routing,
            services: GatewayObjects::new(client.clone(), committer.clone()),
            slices: GatewayObjects::new(client.clone(), committer.clone()),
            secrets: GatewayObjects::new(client.clone(), committer.clone()),
            routes: GatewayObjects::new(client.clone(), committer.clone()),
            committer,
            copies_secrets: false,
            keeps_blocked: false,
            client,
        }
    }

    /// Performs the writes of `plan` in its order. A rejected or outdated write does not prevent the
    /// others, except the removal of objects that serve the traffic until it succeeds.
    async fn apply(&self, plan: KubernetesPlan) -> Result<BTreeSet<GatewayObstacle>, GatewayError> {
        let (mut tally, mut results) = (Tally::default(), Vec::new());
        // All of them are tried, and none waits for another: each is traffic into a broken cluster, or the only way out of it.
        for urgent in [plan.successors, plan.blocked_slices] {
            results.extend(join_all(urgent.iter().map(|write| self.write(write))).await);
        }
        tally.add_all(results)?;
        for write in plan.writes {
            tally.add(self.write(&write).await)?;
        }
        // Routes before their backends, and both only once their successors are in place.
        for stale in [plan.stale_routes, plan.stale_backends] {
            if tally.in_place {
                for write in stale {
                    tally.add(self.write(&write).await)?;
                }
            }
        }
        let clashes = plan.clashes.into_iter().map(GatewayObstacle::Clash);
        tally.obstacles.extend(clashes);
        tally.finish()
    }

    /// Sends a write, and creates the namespace first if it is missing.
    async fn write(&self, write: &Write) -> WriteResult {
        if let Outcome::Done(obstacle) = self.send(write).await? {
            return Ok(obstacle);
        }
        let key = &write.object.key;
        if let Some(obstacle) = self.create_namespace(&key.namespace).await? {
            return Ok(Some(obstacle));
        }
        match self.send(write).await? {
            Outcome::Done(obstacle) => Ok(obstacle),
            // It was deleted again, or is being deleted.
            Outcome::NoNamespace(kind) => {
                let key = key.clone();
                Err(GatewayError::Stale { kind, key })
            }
        }
    }

    async fn send(&self, write: &Write) -> Result<Outcome, GatewayError> {
        let managed_by = self.routing.managed_by();
        match write.target {
            Service::TARGET => self.services.write(managed_by, write).await,
            EndpointSlice::TARGET => self.slices.write(managed_by, write).await,
            Secret::TARGET => self.secrets.write(managed_by, write).await,
            _ => self.routes.write(managed_by, write).await,
        }
    }

    async fn create_namespace(&self, name: &str) -> WriteResult {
        let mut namespace = Namespace::default();
        namespace.meta_mut().name = Some(name.to_owned());
        let write = Write::create("gateway_namespace", &namespace, &());
        match self.committer.write(&write, None).await {
            Ok(outcome) => {
                // Another reconcile may have created it meanwhile.
                if outcome.is_stored() {
                    tracing::info!(namespace = name, "Made a namespace in the gateway cluster");
                }
                Ok(None)
            }
            Err(error) => failed("Namespace", Key::cluster_scoped(name), error),
        }
    }

    /// Watches our objects of one kind, and wakes the ingresses that `observe` returns of each event.
    fn watch_kind<K: GatewayKind>(
        self: &Arc<Self>,
        program: &mut Program,
        queue: &Queue<Key>,
        observe: fn(&Self, Event<Decoded<K>>) -> Vec<Key>,
    ) {
        let provider = Arc::clone(self);
        let queue = queue.clone();
        let ours = Config::default().labels(&self.routing.managed_by().selector());
        let api = Api::all(self.client.clone());
        program.watch_elsewhere(label(K::WATCH, self.name), api, ours, move |event| {
            queue.add_all(observe(&provider, event));
        });
    }
}

#[async_trait]
impl<R: Routing> LoadBalancer for GatewayCluster<R> {
    fn serves(&self) -> bool {
        true
    }

    fn watch(self: Arc<Self>, program: &mut Program, queue: &Queue<Key>) {
        // Drift and changed addresses wake the ingress that an object belongs to.
        self.watch_kind(program, queue, |own, event| own.services.observe(event));
        self.watch_kind(program, queue, |own, event| own.slices.observe(event));
        if self.copies_secrets {
            self.watch_kind(program, queue, |own, event| own.secrets.observe(event));
        }
        self.watch_kind(program, queue, |own, event| {
            let mut woken = own.routing.waiting(&event);
            woken.extend(own.routes.observe(event));
            woken
        });
        R::watch(&self, program, queue);
    }

    async fn ensure(&self, desired: &Desired) -> Result<Ensured, BoxError> {
        let key = &desired.key;
        let (mut wanted, left_out) = self.routing.objects(desired, &self.routes);
        if self.keeps_blocked {
            let blocked = blocked_slices(self.routing.managed_by(), desired);
            wanted.slices.extend(blocked);
        }
        let existing = Existing {
            services: self.services.existing(key, &wanted.services),
            slices: self.slices.existing(key, &wanted.slices),
            secrets: self.secrets.existing(key, &wanted.secrets),
            routes: self.routes.existing(key, wanted.routes.iter().flatten()),
        };
        let plan = KubernetesPlan::new(desired, wanted, &existing).map_err(GatewayError::Edit)?;
        let met = self.apply(plan).await?;
        let mut ensured = self.routing.report(desired, &self.routes.of(key));
        ensured.obstacles.extend(left_out);
        ensured
            .obstacles
            .extend(met.into_iter().map(Obstacle::from));
        Ok(ensured)
    }

    async fn delete(&self, key: &Key, excluded: &BTreeSet<String>) -> Result<Ensured, BoxError> {
        self.routing.forget(key);
        let existing = Existing {
            services: self.services.of(key),
            slices: self.slices.of(key),
            secrets: self.secrets.of(key),
            routes: self.routes.of(key),
        };
        let plan = removal(&existing, excluded);
        // The finalizer must stay while an object is left that only this ingress leads to.
        require_none(self.apply(plan).await?)?;
        Ok(Ensured {
            load_balancer: Some(IngressLoadBalancerStatus::default()),
            obstacles: BTreeSet::new(),
        })
    }

    async fn cut(&self, key: &Key, cut: &ServedClusters) -> Result<(), BoxError> {
        let plan = cutting(&self.slices.of(key), cut);
        require_none(self.apply(plan).await?)
    }

    fn keys(&self) -> Vec<Key> {
        let services = self.services.ingresses().into_iter();
        let all = services
            .chain(self.slices.ingresses())
            .chain(self.secrets.ingresses())
            .chain(self.routes.ingresses());
        all.collect::<BTreeSet<_>>().into_iter().collect()
    }

    fn holds(&self, key: &Key) -> bool {
        !self.services.of(key).is_empty()
            || !self.slices.of(key).is_empty()
            || !self.secrets.of(key).is_empty()
            || !self.routes.of(key).is_empty()
    }

    fn endpoints(&self, key: &Key) -> ServedClusters {
        let mut held = ServedClusters::new();
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

    async fn probe(&self) -> Result<(), BoxError> {
        answers(&self.client).await
    }
}

/// Asks an API for its version.
pub(super) async fn answers(client: &Client) -> Result<(), BoxError> {
    match client.apiserver_version().await {
        Ok(_) => Ok(()),
        // It answers, and the user may not read its version.
        Err(kube::Error::Api(status)) if status.code < 429 => Ok(()),
        Err(error) => Err(error.into()),
    }
}

/// The outcome of the writes of one plan.
pub(super) struct Tally {
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

    /// Adds the results of writes that were all tried; returns an error if further writes would fail as well.
    pub(super) fn add_all(
        &mut self,
        results: impl IntoIterator<Item = WriteResult>,
    ) -> Result<(), GatewayError> {
        let mut outcome = Ok(());
        for result in results {
            let added = self.add(result);
            outcome = outcome.and(added);
        }
        outcome
    }

    /// Returns the obstacles met, or an error if something is not as it was last seen.
    pub(super) fn finish(self) -> Result<BTreeSet<GatewayObstacle>, GatewayError> {
        match self.stale {
            Some(stale) => Err(stale),
            None => Ok(self.obstacles),
        }
    }
}
