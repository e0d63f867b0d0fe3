//! The provider `dns`: records in DNS, which ExternalDNS makes of DNSEndpoints in a cluster of its own or any other.
//!
//! Which objects there are is decided in `traffic::ingress::dns`; they are kept as those of the provider `kubernetes` are. `answers`
//! asks DNS whether they are followed.

mod answers;
mod args;
#[cfg(test)]
mod tests;

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use futures::{StreamExt, stream};
use karmada_api::DnsEndpoint;
use karmada_runtime::error::BoxError;
use karmada_runtime::program::{Program, StartError};
use karmada_runtime::queue::Queue;
use karmada_runtime::watch::Decoded;
use karmada_runtime::write::Writer;
use kube::runtime::watcher::{Config, Event};
use kube::{Api, Client};
use objects::Key;
use objects::write::Write;
use parking_lot::Mutex;
use prometheus_client::metrics::gauge::Gauge;
use tokio::time::sleep;
use traffic::ingress::dns::{DnsProblem, Publisher, clusters, cutting, plan, removal};
use traffic::ingress::kubernetes::ingress_of;
use traffic::ingress::{ControllerName, Desired, ServedClusters};

use self::answers::Answers;
pub(crate) use self::args::DnsArgs;
use super::balancer::{
    Balancers, Ensured, LoadBalancer, NamedBalancer, Obstacle, RelatedObject, require_none,
};
use super::gateway_cluster::error::{GatewayError, GatewayObstacle};
use super::gateway_cluster::objects::{Outcome, WriteResult, committer};
use super::gateway_cluster::{GatewayKind, GatewayObjects, Tally, answers as api_answers};
use crate::reason::Reason;

/// The number of writes of one ingress at once.
const CONCURRENCY: usize = 8;
/// The pause between two look-ups of the published hosts.
const LOOK_UP_EVERY: Duration = Duration::from_secs(30);

/// The records of a fleet.
pub(crate) struct Dns {
    publisher: Publisher,
    client: Client,
    objects: GatewayObjects<DnsEndpoint>,
    /// The ingresses that another keeps from a host, by its object.
    waiting: Mutex<BTreeMap<Key, BTreeSet<Key>>>,
    answers: Answers,
    writer: Writer,
}

impl GatewayKind for DnsEndpoint {
    const WATCH: &'static str = "dns_endpoints";
}

/// Connects to the cluster of the flags.
pub(super) async fn connect(
    args: &DnsArgs,
    controller: &ControllerName,
    program: &mut Program,
) -> Result<Balancers, StartError> {
    let client = program.connect("dns", &args.source()?).await?;
    let unserved = program.registry.register(
        "unserved_dns_records",
        "Hosts with --provider dns that do not resolve to what was published, after the time that ExternalDNS and resolvers have",
        Gauge::default(),
    );
    let (publisher, addresses) = (args.publisher(controller), program.addresses.clone());
    Ok(Box::new(move |writer| {
        let answers = Answers::new(addresses, publisher.ttl(), unserved);
        NamedBalancer::only(Dns::new(client, writer, publisher, answers))
    }))
}

impl Dns {
    /// Creates the provider for the cluster of `client`.
    fn new(client: Client, writer: &Writer, publisher: Publisher, answers: Answers) -> Self {
        Self {
            objects: GatewayObjects::new(client.clone(), committer(&client, writer)),
            waiting: Mutex::default(),
            answers,
            publisher,
            client,
            writer: writer.clone(),
        }
    }

    /// Applies an event of the watch, and returns the ingresses that it concerns, also those that wait for the host.
    fn observe(&self, event: Event<Decoded<DnsEndpoint>>) -> Vec<Key> {
        let waiting = self.waiting.lock();
        let mut concerned: Vec<Key> = match &event {
            Event::Apply(object) | Event::Delete(object) => waiting
                .get(&Key::of(object))
                .into_iter()
                .flatten()
                .cloned()
                .collect(),
            Event::InitDone => waiting.values().flatten().cloned().collect(),
            Event::Init | Event::InitApply(_) => Vec::new(),
        };
        drop(waiting);
        concerned.extend(self.objects.observe(event));
        concerned
    }

    /// Notes for which hosts of others `ingress` waits.
    fn wait_for(&self, ingress: &Key, hosts: BTreeSet<Key>) {
        let mut waiting = self.waiting.lock();
        waiting.retain(|_, ingresses| {
            ingresses.remove(ingress);
            !ingresses.is_empty()
        });
        for host in hosts {
            waiting.entry(host).or_default().insert(ingress.clone());
        }
    }

    /// Returns which of the hosts that are published resolve to something else. The answer of a second fleet may be right, too.
    fn unserved(&self, key: &Key, own: &[DnsEndpoint]) -> BTreeSet<DnsProblem> {
        if self.publisher.shares_names() {
            return BTreeSet::new();
        }
        self.answers.of(key, own)
    }

    /// Looks up the published hosts, and returns the ingresses of hosts that resolve otherwise than before. Who does not lead by
    /// `writer` does not know them.
    async fn look_up(&self, writer: &Writer) -> BTreeSet<Key> {
        if !writer.is_leading() {
            self.answers.clear();
        }
        self.answers.look_up().await
    }

    /// Performs `writes`, of which none depends on another: all of them are tried.
    async fn apply(&self, writes: Vec<Write>) -> Result<BTreeSet<GatewayObstacle>, GatewayError> {
        let results: Vec<WriteResult> = stream::iter(writes)
            .map(|write| async move { self.write(&write).await })
            .buffered(CONCURRENCY)
            .collect()
            .await;
        let mut tally = Tally::default();
        tally.add_all(results)?;
        tally.finish()
    }

    async fn write(&self, write: &Write) -> WriteResult {
        let managed_by = self.publisher.managed_by();
        match self.objects.write(managed_by, write).await? {
            Outcome::Done(obstacle) => Ok(obstacle),
            Outcome::NoNamespace(kind) => Ok(Some(GatewayObstacle::Rejected {
                kind,
                key: write.object.key.clone(),
                message: format!(
                    "it has no namespace {} or no kind DNSEndpoint, which are yours to create",
                    self.publisher.namespace()
                ),
            })),
        }
    }
}

fn obstacle(ingress: &Key, problem: &DnsProblem) -> Obstacle {
    let reason = match problem {
        DnsProblem::NoHost | DnsProblem::InvalidHost { .. } | DnsProblem::Taken { .. } => {
            Reason::DnsHostRefused
        }
        DnsProblem::Apart { .. } | DnsProblem::Unusable { .. } => Reason::DnsTargetRefused,
        DnsProblem::NotServed { .. } => Reason::DnsRecordNotServed,
    };
    Obstacle {
        reason,
        object: RelatedObject {
            api_version: None,
            kind: "MultiClusterIngress",
            key: ingress.clone(),
        },
        message: problem.to_string(),
    }
}

#[async_trait]
impl LoadBalancer for Dns {
    fn serves(&self) -> bool {
        true
    }

    fn watch(self: Arc<Self>, program: &mut Program, queue: &Queue<Key>) {
        let api = Api::namespaced(self.client.clone(), self.publisher.namespace());
        let ours = Config::default().labels(&self.publisher.managed_by().selector());
        let (provider, observing) = (Arc::clone(&self), queue.clone());
        program.watch_elsewhere(DnsEndpoint::WATCH, api, ours, move |event| {
            observing.add_all(provider.observe(event));
        });
        let queue = queue.clone();
        program.run_until_stopped("dns_answers", async move {
            loop {
                sleep(LOOK_UP_EVERY).await;
                queue.add_all(self.look_up(&self.writer).await);
            }
        });
    }

    async fn ensure(&self, desired: &Desired) -> Result<Ensured, BoxError> {
        let key = &desired.key;
        let wanted = self.publisher.wanted(desired, &self.objects.of(key));
        let existing = self.objects.existing(key, &wanted.endpoints);
        let others = existing
            .iter()
            .filter(|found| ingress_of(&found.metadata).as_ref() != Some(key));
        let others: BTreeSet<Key> = others.map(|found| Key::of(&**found)).collect();
        let mut own = wanted.endpoints.clone();
        own.retain(|endpoint| !others.contains(&Key::of(endpoint)));
        self.wait_for(key, others);
        let plan = plan(key, wanted, &existing).map_err(GatewayError::Edit)?;
        let met = self.apply(plan.writes).await?;
        let mut problems = plan.events;
        problems.extend(self.unserved(key, &own));
        let problems = problems.iter().map(|problem| obstacle(key, problem));
        Ok(Ensured {
            load_balancer: None,
            obstacles: problems
                .chain(met.into_iter().map(Obstacle::from))
                .collect(),
        })
    }

    async fn delete(&self, key: &Key, _: &BTreeSet<String>) -> Result<Ensured, BoxError> {
        self.wait_for(key, BTreeSet::new());
        self.answers.of(key, &[]);
        let writes = removal(&self.objects.of(key));
        // The finalizer must stay while a record is left that only this ingress leads to.
        require_none(self.apply(writes).await?)?;
        Ok(Ensured::default())
    }

    async fn cut(&self, key: &Key, cut: &ServedClusters) -> Result<(), BoxError> {
        let writes = cutting(&self.objects.of(key), cut).map_err(GatewayError::Edit)?;
        require_none(self.apply(writes).await?)
    }

    fn keys(&self) -> Vec<Key> {
        let all: BTreeSet<Key> = self.objects.ingresses().into_iter().collect();
        all.into_iter().collect()
    }

    fn holds(&self, key: &Key) -> bool {
        !self.objects.of(key).is_empty()
    }

    /// Services are hosts here.
    fn endpoints(&self, key: &Key) -> ServedClusters {
        clusters(&self.objects.of(key))
    }

    fn is_outage(&self, error: &BoxError) -> bool {
        error.downcast_ref().is_some_and(GatewayError::is_outage)
    }

    async fn probe(&self) -> Result<(), BoxError> {
        api_answers(&self.client).await
    }
}
