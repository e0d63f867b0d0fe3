//! Asks one member for the state of its cluster, again and again.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use karmada_runtime::error::Chain;
use karmada_runtime::members::{
    ConnectError, Contact, MemberController, MemberQueues, ReconcileError,
};
use karmada_runtime::panics::caught;
use karmada_runtime::queue::Queue;
use objects::Key;
use parking_lot::Mutex;
use propagation_rules::cluster::{ClusterObservation, Health, Probe, READY, is_probed};
use tokio::time::Instant;

use crate::fleet::Fleet;
use crate::index::Index;
use crate::metrics::Reachable;
use crate::usage::NodeAddressType;

/// The time from one probe of a member to the next.
const PERIOD: Duration = Duration::from_secs(10);

/// Probes members. It writes nothing: its observations wake the loop that does.
pub(crate) struct Prober {
    pub(crate) index: Arc<Mutex<Index>>,
    /// The queue of the loop that writes.
    pub(crate) clusters: Queue<Key>,
    pub(crate) fleet: Arc<Fleet>,
    pub(crate) queues: MemberQueues<Key>,
    pub(crate) reachable: Reachable,
    /// The type of the nodes' addresses that are published, if any are.
    pub(crate) node_addresses: Option<NodeAddressType>,
    pub(crate) health: Mutex<BTreeMap<String, Health>>,
}

impl MemberController for Prober {
    type Key = Key;

    fn keys(&self) -> Vec<(String, Key)> {
        let index = self.index.lock();
        let keys = index.clusters.keys();
        keys.map(|key| (key.name.clone(), key.clone())).collect()
    }

    fn end_term(&self) {
        // In the next term another leader has seen the changes after this.
        self.index.lock().observed.clear();
        self.health.lock().clear();
        self.fleet.disconnect_all();
    }

    async fn reconcile(&self, name: &str, key: &Key) -> Result<Contact, ReconcileError> {
        let started = Instant::now();
        let stored = self.index.lock().cluster(name);
        let cluster = stored.map(|stored| stored.part.view());
        let Some(cluster) = cluster.filter(|cluster| is_probed(cluster, self.fleet.sync_mode()))
        else {
            self.fleet.disconnect(name);
            self.reachable.forget(name);
            self.health.lock().remove(name);
            return Ok(Contact::None);
        };
        let probing = async {
            let member = self.fleet.member(name, &cluster).await?;
            Ok::<_, ConnectError>((member.health().await, member))
        };
        let (probe, member) = match caught(probing).await {
            Ok(Ok((probe, member))) => (probe, Some(member)),
            // Without a way to the Secret nothing is learned of the member.
            Ok(Err(ConnectError::Unread(error))) if !is_forbidden(&error) => {
                return Err(ConnectError::Unread(error).into());
            }
            Ok(Err(error)) => (Probe::Unreachable(Chain(&error).to_string()), None),
            Err(panicked) => (Probe::Unreachable(panicked.to_string()), None),
        };
        let is_reachable = !matches!(probe, Probe::Unreachable(_));
        self.reachable.note(name, is_reachable);
        if probe != Probe::Healthy {
            self.fleet.doubt(name);
        }
        let conditions = &cluster.status.conditions;
        let published = conditions.iter().find(|condition| condition.type_ == READY);
        let published = published.map(|condition| condition.status.as_str());
        let ready = {
            let mut health = self.health.lock();
            let health = health.entry(name.to_owned()).or_default();
            health.judge(&probe, published, Instant::now().into_std())
        };
        let observed = self.index.lock().observed.get(name).cloned();
        let mut observed = observed.unwrap_or_default();
        observed.ready = ready;
        // The rest may take long, or never come.
        self.note(name, observed.clone());
        if let Some(member) = member.filter(|_| probe == Probe::Healthy) {
            let (version, served) = tokio::join!(member.version(), member.served());
            observed.version = version.or(observed.version);
            observed.served = Some(served);
            observed.capacity = member.capacity(&cluster).or(observed.capacity);
            let nodes = self.node_addresses.and_then(|type_| member.nodes(type_));
            observed.nodes = nodes.or(observed.nodes);
            self.note(name, observed);
        }
        let queue = self.queues.of(name);
        queue.add_at(key.clone(), started + PERIOD);
        // It has one key, which asks at its own pace.
        Ok(Contact::None)
    }
}

impl Prober {
    /// Takes in the newest from a member, and wakes its cluster if it is news.
    fn note(&self, name: &str, observed: ClusterObservation) {
        let news = self.index.lock().observe(name, observed);
        self.clusters.add_all(news);
    }
}

fn is_forbidden(error: &kube::Error) -> bool {
    matches!(error, kube::Error::Api(status) if status.code == 403)
}
