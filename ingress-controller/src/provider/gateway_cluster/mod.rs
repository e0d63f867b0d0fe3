//! A gateway cluster: Services, `EndpointSlice`s, Secrets and routes to them, which something in that cluster serves. The
//! kind of the routes and what they report is that of a [`Routing`].
//!
//! Every object carries our label, and objects without it are never touched. A write is sent only where
//! the gateway cluster differs from the desired state, and only takes effect on the version that was
//! seen.

mod args;
pub(super) mod error;
mod index;
mod kind;
pub(super) mod objects;
#[cfg(test)]
pub(super) mod stage;

use std::collections::BTreeSet;
use std::sync::Arc;

use ::objects::Key;
use futures::FutureExt;
use futures::future::{BoxFuture, join_all};
use k8s_openapi::api::core::v1::{Namespace, Secret, Service};
use k8s_openapi::api::discovery::v1::EndpointSlice;
use k8s_openapi::api::networking::v1::IngressLoadBalancerStatus;
use karmada_rules::ingress::kubernetes::{
    Existing, KubernetesPlan, ManagedBy, Objects, Write, blocked_slices, cutting, removal,
    slice_origin,
};
use karmada_rules::ingress::{Desired, Held};
use karmada_runtime::error::BoxError;
use karmada_runtime::program::Program;
use karmada_runtime::queue::Queue;
use karmada_runtime::write::{WriteErrorKind, Writer};
use kube::api::PostParams;
use kube::runtime::watcher::Config;
use kube::{Api, Client, Resource};

pub(crate) use self::args::GatewayClusterArgs;
pub(super) use self::kind::GatewayKind;
pub(super) use self::objects::GatewayObjects;

use self::error::{GatewayError, GatewayObstacle};
use self::objects::{CreateOutcome, WriteResult, failed};

use super::balancer::{Ensured, LoadBalancer, Obstacle, label};

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

    /// Returns what is reported of the `routes` that serve `desired`.
    fn report(&self, desired: &Desired, routes: &[Arc<Self::Route>]) -> Ensured;

    /// Adds watches of what the routes depend on. They wake the ingresses concerned.
    fn watch(cluster: &Arc<GatewayCluster<Self>>, program: &mut Program, queue: &Queue<Key>);
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
    namespaces: Api<Namespace>,
    /// Set if Secrets are watched. Without, none is ever desired.
    pub(super) copies_secrets: bool,
    /// Set if the endpoints of blocked clusters stay, in slices of no Service.
    pub(super) keeps_blocked: bool,
}

impl<R: Routing> GatewayCluster<R> {
    /// Creates the provider for the only gateway cluster, that of `client`.
    pub fn new(client: Client, routing: R) -> Self {
        Self::named("", client, routing)
    }

    /// Creates the provider for the gateway cluster `name`.
    pub(super) fn named(name: &'static str, client: Client, routing: R) -> Self {
        Self {
            name,
            routing,
            services: GatewayObjects::new(client.clone()),
            slices: GatewayObjects::new(client.clone()),
            secrets: GatewayObjects::new(client.clone()),
            routes: GatewayObjects::new(client.clone()),
            namespaces: Api::all(client.clone()),
            copies_secrets: false,
            keeps_blocked: false,
            client,
        }
    }

    /// Performs the writes of `plan` in its order. A rejected or outdated write does not prevent the
    /// others, except the removal of what serves the traffic until it succeeds.
    async fn apply(
        &self,
        writer: &Writer,
        plan: KubernetesPlan<R::Route>,
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
        for route in &plan.routes {
            tally.add(self.write(writer, &self.routes, route).await)?;
        }
        // Routes before their backends, and both only once their successors are in place.
        if tally.in_place {
            for route in &plan.stale_routes {
                tally.add(self.routes.delete(writer, route).await)?;
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
        let outcome = objects
            .create(writer, self.routing.managed_by(), object)
            .await?;
        if let CreateOutcome::Done(obstacle) = outcome {
            return Ok(obstacle);
        }
        let key = Key::of(object);
        if let Some(obstacle) = self.create_namespace(writer, &key.namespace).await? {
            return Ok(Some(obstacle));
        }
        match objects
            .create(writer, self.routing.managed_by(), object)
            .await?
        {
            CreateOutcome::Done(obstacle) => Ok(obstacle),
            // It was deleted again, or is being deleted.
            CreateOutcome::NoNamespace => Err(GatewayError::Stale { kind: K::KIND, key }),
        }
    }

    async fn create_namespace(&self, writer: &Writer, name: &str) -> WriteResult {
        let mut namespace = Namespace::default();
        namespace.meta_mut().name = Some(name.to_owned());
        let parameters = PostParams::default();
        let call = self.namespaces.create(&parameters, &namespace);
        match writer.write("gateway_namespace", call).await {
            Ok(_) => {
                tracing::info!(namespace = name, "Made a namespace in the gateway cluster");
                Ok(None)
            }
            // Another reconcile created it meanwhile.
            Err(error) if error.kind() == WriteErrorKind::Conflict => Ok(None),
            Err(error) => failed("Namespace", Key::cluster_scoped(name), error),
        }
    }

    async fn ensure_all(
        &self,
        writer: &Writer,
        desired: &Desired,
    ) -> Result<Ensured, GatewayError> {
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
        let plan = KubernetesPlan::new(desired, wanted, &existing)?;
        let met = self.apply(writer, plan).await?;
        let mut ensured = self.routing.report(desired, &self.routes.of(key));
        ensured.obstacles.extend(left_out);
        ensured
            .obstacles
            .extend(met.into_iter().map(Obstacle::from));
        Ok(ensured)
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
            routes: self.routes.of(key),
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

    /// Watches our objects of one kind. Drift and changed addresses wake the ingress they belong to.
    fn watch_kind<K: GatewayKind>(
        self: &Arc<Self>,
        program: &mut Program,
        queue: &Queue<Key>,
        objects: fn(&Self) -> &GatewayObjects<K>,
    ) {
        let provider = Arc::clone(self);
        let queue = queue.clone();
        let ours = Config::default().labels(&self.routing.managed_by().selector());
        let api = Api::all(self.client.clone());
        program.watch_elsewhere(label(K::WATCH, self.name), api, ours, move |event| {
            queue.add_all(objects(&provider).observe(event));
        });
    }
}

impl<R: Routing> LoadBalancer for GatewayCluster<R> {
    fn serves(&self) -> bool {
        true
    }

    fn watch(self: Arc<Self>, program: &mut Program, queue: &Queue<Key>) {
        self.watch_kind(program, queue, |own| &own.services);
        self.watch_kind(program, queue, |own| &own.slices);
        if self.copies_secrets {
            self.watch_kind(program, queue, |own| &own.secrets);
        }
        self.watch_kind(program, queue, |own| &own.routes);
        R::watch(&self, program, queue);
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
            .chain(self.routes.ingresses());
        all.collect::<BTreeSet<_>>().into_iter().collect()
    }

    fn holds(&self, key: &Key) -> bool {
        !self.services.of(key).is_empty()
            || !self.slices.of(key).is_empty()
            || !self.secrets.of(key).is_empty()
            || !self.routes.of(key).is_empty()
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
        answers(&self.client).boxed()
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
