//! The `kubernetes` provider: Services, `EndpointSlice`s and Ingresses in a gateway cluster, where
//! any ingress controller serves them.
//!
//! Every object carries our label; what does not is never touched. A write goes out only where what
//! is there differs from what is wanted, and only if what is there is still what we last saw.

mod kept;
mod view;

use std::collections::BTreeSet;
use std::sync::Arc;

use k8s_openapi::api::core::v1::{Namespace, Service};
use k8s_openapi::api::discovery::v1::EndpointSlice;
use k8s_openapi::api::networking::v1::{Ingress, IngressLoadBalancerStatus};
use karmada_api::Key;
use karmada_rules::ingress::Desired;
use karmada_rules::ingress::kubernetes::{Existing, Gateway, KubernetesPlan, Write, removal};
use karmada_runtime::program::Program;
use karmada_runtime::queue::Queue;
use karmada_runtime::write::{WriteErrorKind, Writer};
use kube::api::PostParams;
use kube::runtime::watcher::Config;
use kube::{Api, Client, Resource};

use kept::{Creation, Kept, Kind, Written};

use super::{Ensured, LoadBalancer, Obstacle, ProviderError};

/// A gateway cluster.
pub(crate) struct Kubernetes {
    gateway: Gateway,
    services: Kept<Service>,
    slices: Kept<EndpointSlice>,
    ingresses: Kept<Ingress>,
    namespaces: Api<Namespace>,
    writer: Writer,
}

impl Kind for Service {
    const TARGET: &'static str = "gateway_service";
}

impl Kind for EndpointSlice {
    const TARGET: &'static str = "gateway_endpoint_slice";
}

impl Kind for Ingress {
    const TARGET: &'static str = "gateway_ingress";
}

impl Kubernetes {
    /// The gateway cluster that `client` leads to.
    pub(crate) fn new(client: Client, gateway: Gateway, writer: Writer) -> Self {
        Self {
            gateway,
            services: Kept::new(client.clone(), writer.clone()),
            slices: Kept::new(client.clone(), writer.clone()),
            ingresses: Kept::new(client.clone(), writer.clone()),
            namespaces: Api::all(client),
            writer,
        }
    }

    /// Watches our objects in the gateway cluster: drift and addresses wake the ingress that they
    /// were made for.
    pub(crate) fn watch_all(
        self: &Arc<Self>,
        program: &mut Program,
        client: &Client,
        queue: &Queue<Key>,
    ) {
        let mut to = Watching {
            provider: self,
            program,
            client,
            queue,
        };
        to.start("gateway_services", |provider| &provider.services);
        to.start("gateway_slices", |provider| &provider.slices);
        to.start("gateway_ingresses", |provider| &provider.ingresses);
    }

    /// Makes the writes of `plan` in its order. A write that is refused or comes too late does not
    /// keep the others from being made, but what the traffic flows through now stays then.
    async fn carry_out(&self, plan: KubernetesPlan) -> Result<BTreeSet<Obstacle>, ProviderError> {
        let mut tally = Tally::default();
        for slice in &plan.blocked_slices {
            tally.add(self.slices.delete(slice).await)?;
        }
        for service in &plan.services {
            tally.add(self.write(&self.services, service).await)?;
        }
        for slice in &plan.slices {
            tally.add(self.write(&self.slices, slice).await)?;
        }
        if let Some(ingress) = &plan.ingress {
            tally.add(self.write(&self.ingresses, ingress).await)?;
        }
        if tally.in_place {
            for ingress in &plan.stale_ingresses {
                tally.add(self.ingresses.delete(ingress).await)?;
            }
        }
        if tally.in_place {
            for slice in &plan.stale_slices {
                tally.add(self.slices.delete(slice).await)?;
            }
            for service in &plan.stale_services {
                tally.add(self.services.delete(service).await)?;
            }
        }
        let clashes = plan.clashes.into_iter().map(Obstacle::Clash);
        tally.obstacles.extend(clashes);
        tally.finish()
    }

    async fn write<K: Kind>(&self, kept: &Kept<K>, write: &Write<K>) -> Written {
        let object = match write {
            Write::Update(update) => return kept.update(update).await,
            Write::Create(object) => object,
        };
        if let Creation::Answered(obstacle) = kept.create(&self.gateway, object).await? {
            return Ok(obstacle);
        }
        let key = Key::of(object);
        self.make_namespace(&key.namespace).await?;
        match kept.create(&self.gateway, object).await? {
            Creation::Answered(obstacle) => Ok(obstacle),
            Creation::NoNamespace => Err(ProviderError::Stale { kind: K::KIND, key }),
        }
    }

    async fn make_namespace(&self, name: &str) -> Result<(), ProviderError> {
        let mut namespace = Namespace::default();
        namespace.meta_mut().name = Some(name.to_owned());
        let parameters = PostParams::default();
        let call = self.namespaces.create(&parameters, &namespace);
        match self.writer.write("gateway_namespace", call).await {
            Ok(_) => {
                tracing::info!(namespace = name, "Made a namespace in the gateway cluster");
                Ok(())
            }
            Err(error) if error.kind() == WriteErrorKind::Conflict => Ok(()),
            Err(error) => Err(ProviderError::Write {
                kind: "Namespace",
                key: Key::cluster_scoped(name),
                source: Box::new(error),
            }),
        }
    }

    fn addresses(&self, key: &Key) -> IngressLoadBalancerStatus {
        let ingress = self.ingresses.get(key);
        let status = ingress.as_ref().and_then(|ingress| ingress.status.as_ref());
        let load_balancer = status.and_then(|status| status.load_balancer.clone());
        load_balancer.unwrap_or_default()
    }
}

impl LoadBalancer for Kubernetes {
    async fn ensure(&self, desired: &Desired) -> Result<Ensured, ProviderError> {
        let key = &desired.key;
        let wanted = self.gateway.objects(desired);
        let existing = Existing {
            services: self.services.existing(key, &wanted.services),
            slices: self.slices.existing(key, &wanted.slices),
            ingresses: self.ingresses.existing(key, &wanted.ingress),
        };
        let plan = KubernetesPlan::new(desired, wanted, &existing)?;
        let obstacles = self.carry_out(plan).await?;
        Ok(Ensured {
            load_balancer: Some(self.addresses(key)),
            obstacles,
        })
    }

    async fn delete(&self, key: &Key) -> Result<Ensured, ProviderError> {
        let plan = removal(Existing {
            services: self.services.existing(key, None),
            slices: self.slices.existing(key, None),
            ingresses: self.ingresses.existing(key, None),
        });
        match self.carry_out(plan).await?.pop_first() {
            Some(obstacle) => Err(ProviderError::Obstructed(obstacle)),
            None => Ok(Ensured {
                load_balancer: Some(IngressLoadBalancerStatus::default()),
                obstacles: BTreeSet::new(),
            }),
        }
    }

    fn keys(&self) -> Vec<Key> {
        let services = self.services.ingresses().into_iter();
        let all = services
            .chain(self.slices.ingresses())
            .chain(self.ingresses.ingresses());
        all.collect::<BTreeSet<_>>().into_iter().collect()
    }
}

struct Watching<'a> {
    provider: &'a Arc<Kubernetes>,
    program: &'a mut Program,
    client: &'a Client,
    queue: &'a Queue<Key>,
}

impl Watching<'_> {
    fn start<K: Kind>(&mut self, name: &'static str, kept: fn(&Kubernetes) -> &Kept<K>) {
        let provider = Arc::clone(self.provider);
        let queue = self.queue.clone();
        let ours = Config::default().labels(&provider.gateway.selector());
        let api = Api::all(self.client.clone());
        self.program.watch(name, api, ours, move |event| {
            queue.add_all(kept(&provider).observe(event));
        });
    }
}

/// What came of the writes of one plan.
struct Tally {
    obstacles: BTreeSet<Obstacle>,
    stale: Option<ProviderError>,
    /// Whether what is to serve the traffic is in place. A clash does not count: what is not ours
    /// never served.
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
    /// Adds a write; an error means that the next would fail as well.
    fn add(&mut self, written: Written) -> Result<(), ProviderError> {
        match written {
            Ok(None) => {}
            Ok(Some(obstacle)) => {
                self.in_place &= matches!(obstacle, Obstacle::Clash(_));
                self.obstacles.insert(obstacle);
            }
            Err(stale @ ProviderError::Stale { .. }) => {
                self.in_place = false;
                self.stale.get_or_insert(stale);
            }
            Err(error) => return Err(error),
        }
        Ok(())
    }

    fn finish(self) -> Result<BTreeSet<Obstacle>, ProviderError> {
        match self.stale {
            Some(stale) => Err(stale),
            None => Ok(self.obstacles),
        }
    }
}

#[cfg(test)]
mod tests;
