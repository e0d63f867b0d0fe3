//! Asks one member for the state of its cluster, again and again.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use karmada_runtime::error::Chain;
use karmada_runtime::members::{
    ConnectError, Contact, MemberController, MemberQueues, ReconcileError,
};
use karmada_runtime::panics::caught;
use objects::Key;
use parking_lot::Mutex;
use propagation_rules::cluster::{Health, Probe, READY, is_probed};
use tokio::time::Instant;

use crate::fleet::Fleet;
use crate::metrics::Reachable;
use crate::watch::SharedIndex;

/// The time from one probe of a member to the next.
const PERIOD: Duration = Duration::from_secs(10);

/// Probes members. It writes nothing: what it observes wakes the loop that does.
pub(crate) struct Prober {
    index: Arc<SharedIndex>,
    fleet: Arc<Fleet>,
    queues: MemberQueues<Key>,
    reachable: Reachable,
    health: Mutex<BTreeMap<String, Health>>,
}

impl Prober {
    pub(crate) fn new(
        index: Arc<SharedIndex>,
        fleet: Arc<Fleet>,
        queues: MemberQueues<Key>,
        reachable: Reachable,
    ) -> Self {
        Self {
            index,
            fleet,
            queues,
            reachable,
            health: Mutex::default(),
        }
    }
}

impl MemberController for Prober {
    type Key = Key;

    fn keys(&self) -> Vec<(String, Key)> {
        let names = self.index.names().into_iter();
        names
            .map(|name| (name.clone(), Key::cluster_scoped(name)))
            .collect()
    }

    fn end_term(&self) {
        // In the next term another leader has seen what came after this.
        self.index.forget_observed();
        self.health.lock().clear();
        self.fleet.disconnect_all();
    }

    async fn reconcile(&self, name: &str, key: &Key) -> Result<Contact, ReconcileError> {
        let started = Instant::now();
        let cluster = self.index.cluster(name).map(|stored| stored.part.view());
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
        let mut observed = self.index.observed(name);
        observed.ready = ready;
        // The rest may take long, or never come.
        self.index.observe(name, observed.clone());
        if let Some(member) = member.filter(|_| probe == Probe::Healthy) {
            let (version, served) = tokio::join!(member.version(), member.served());
            observed.version = version.or(observed.version);
            observed.served = Some(served);
            observed.capacity = member.capacity(&cluster).or(observed.capacity);
            self.index.observe(name, observed);
        }
        let queue = self.queues.of(name);
        queue.add_at(key.clone(), started + PERIOD);
        // It has one key, which asks at its own pace.
        Ok(Contact::None)
    }
}

fn is_forbidden(error: &kube::Error) -> bool {
    matches!(error, kube::Error::Api(status) if status.code == 403)
}
