//! The provider `haproxy`: servers in the backends of a running HAProxy, by its Runtime API. The configuration has the
//! frontends, the routing and the backends.
//!
//! Nothing is believed that was not read back: a step is planned on the servers as they are, sent, and read again, until
//! nothing is left to do. A look at all servers every few seconds, and at the process in between, finds the losses of a restart
//! and the changes of others, and wakes the ingresses that they concern.

mod args;
mod error;
mod repairs;
mod runtime_api;
mod servers;

use std::collections::BTreeSet;
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use async_trait::async_trait;
use karmada_runtime::error::{BoxError, Chain};
use karmada_runtime::program::{Program, StartError};
use karmada_runtime::queue::Queue;
use karmada_runtime::write::Writer;
use objects::Key;
use prometheus_client::registry::Unit;
use tokio::time::{Instant, sleep};
use traffic::ingress::haproxy::{Line, ServerSettings, State, Wanted};
use traffic::ingress::{ControllerName, Desired, ServedClusters};

pub(crate) use self::args::HaproxyArgs;
use self::error::{HaproxyError, HaproxyObstacle};
use self::repairs::Repairs;
use self::runtime_api::Socket;
use self::servers::{Reached, Servers};

use super::balancer::{
    Balancers, Ensured, LoadBalancer, NamedBalancer, Obstacle, label, require_none,
};

/// The pause between two looks at the process. A restart lost all servers.
const PROCESS_PAUSE: Duration = Duration::from_millis(100);
/// The time between two looks at all servers.
const SERVERS_PAUSE: Duration = Duration::from_secs(5);

/// An HAProxy.
pub(super) struct Haproxy {
    /// Its name, empty if it is the only one.
    name: &'static str,
    servers: Servers,
    repairs: Repairs,
    /// The queue of the ingresses, once they are watched.
    queue: OnceLock<Queue<Key>>,
}

/// Returns every HAProxy of the flags.
pub(super) fn connect(
    args: &HaproxyArgs,
    controller: &ControllerName,
    program: &mut Program,
) -> Result<Balancers, StartError> {
    let repairs = repairs::histogram();
    let repairs = program.registry.register_with_unit(
        "haproxy_repair_duration",
        "Time from meeting an HAProxy that was started anew, without servers, until it has all again",
        Unit::Seconds,
        repairs,
    );
    let parameters = args.server_parameters();
    if parameters.cut_requests() {
        tracing::warn!(%parameters, "Servers that fail a check cut the requests they have, because of on-marked-down");
    }
    let sockets = args.sockets()?.to_vec();
    let settings = ServerSettings::new(
        controller,
        parameters.clone(),
        args.drain_grace(),
        args.end_connections(),
    );
    Ok(Box::new(move |writer| {
        let balancers = sockets.into_iter().map(|named| {
            let name: &'static str = named.name.leak();
            let provider = Haproxy {
                name,
                repairs: Repairs::new(repairs.clone()),
                ..Haproxy::new(named.value, writer, settings.clone())
            };
            let balancer: Arc<dyn LoadBalancer> = Arc::new(provider);
            NamedBalancer { name, balancer }
        });
        balancers.collect()
    }))
}

impl Haproxy {
    fn new(socket: Socket, writer: &Writer, settings: ServerSettings) -> Self {
        Self {
            name: "",
            servers: Servers::new(socket, writer.clone(), settings),
            repairs: Repairs::new(repairs::histogram()),
            queue: OnceLock::new(),
        }
    }

    /// Returns the obstacles in `reached`, and has the ingress `key` looked at when there may be more to do.
    ///
    /// # Errors
    /// Fails if HAProxy neither follows nor refuses a command.
    fn obstacles(
        &self,
        key: &Key,
        reached: &Reached,
    ) -> Result<BTreeSet<HaproxyObstacle>, HaproxyError> {
        let Reached { plan, refusals } = reached;
        if let (Some(next), Some(queue)) = (plan.next, self.queue.get()) {
            queue.add_at(key.clone(), Instant::now() + next);
        }
        let missing = plan.missing.iter().cloned();
        let open = plan.open.iter().cloned();
        let mut obstacles: BTreeSet<HaproxyObstacle> = missing
            .map(HaproxyObstacle::BackendMissing)
            .chain(open.map(HaproxyObstacle::ConnectionsOpen))
            .collect();
        for Line { backend, .. } in &plan.lines {
            let (backend, message) = (backend.clone(), refusals.get(backend).cloned());
            match message {
                Some(message) => {
                    obstacles.insert(HaproxyObstacle::Refused { backend, message });
                }
                // Idle connections keep a server for a moment.
                None if plan.next.is_some() => {}
                None => return Err(HaproxyError::Unchanged { backend }),
            }
        }
        Ok(obstacles)
    }

    /// Looks at all servers. Returns the ingresses that have to be looked at.
    async fn look(&self) -> Result<BTreeSet<Key>, HaproxyError> {
        let (met, before) = (Instant::now(), self.servers.pid());
        let concerned = self.servers.look().await?;
        if before != 0 && self.servers.pid() != before {
            self.repairs.begin(met, self.servers.desired());
        }
        Ok(concerned)
    }

    /// Notes that HAProxy has the servers of the ingress `key`.
    fn served(&self, key: &Key) {
        if let Some(took) = self.repairs.done(key) {
            let seconds = took.as_secs_f64();
            tracing::info!(
                gateway = self.name,
                seconds,
                "HAProxy has all servers again"
            );
        }
    }

    /// Looks at the process, and from time to time at all servers, and wakes the ingresses that have lost something.
    async fn follow(&self) {
        let mut looked: Option<Instant> = None;
        let mut answers = true;
        loop {
            match self.wakes(&mut looked).await {
                Ok(concerned) => {
                    answers = true;
                    self.wake(concerned);
                }
                // Those that find out that nobody answers wait for the answer, and show in the metrics.
                Err(error) if answers && error.is_outage() => {
                    answers = false;
                    looked = None;
                    tracing::warn!(gateway = self.name, error = %Chain(&error), "HAProxy does not answer");
                    self.wake(self.servers.concerned());
                }
                Err(_) => looked = None,
            }
            sleep(PROCESS_PAUSE).await;
        }
    }

    fn wake(&self, concerned: BTreeSet<Key>) {
        if let Some(queue) = self.queue.get() {
            queue.add_all(concerned);
        }
    }

    async fn wakes(&self, looked: &mut Option<Instant>) -> Result<BTreeSet<Key>, HaproxyError> {
        if looked.is_some_and(|at| at.elapsed() < SERVERS_PAUSE) {
            let pid = self.servers.read(&[]).await?.pid;
            let before = self.servers.pid();
            if pid == before {
                return Ok(BTreeSet::new());
            }
            tracing::info!(
                gateway = self.name,
                pid,
                before,
                "HAProxy was started anew, its servers are added again"
            );
        }
        let concerned = self.look().await?;
        *looked = Some(Instant::now());
        Ok(concerned)
    }
}

#[async_trait]
impl LoadBalancer for Haproxy {
    fn serves(&self) -> bool {
        true
    }

    fn watch(self: Arc<Self>, program: &mut Program, queue: &Queue<Key>) {
        self.queue.get_or_init(|| queue.clone());
        let stopping = program.stopping.clone().cancelled_owned();
        let name = label("haproxy", self.name);
        program.tasks.spawn(name, async move {
            tokio::select! {
                biased;
                () = stopping => {}
                () = self.follow() => {}
            }
            Ok(())
        });
    }

    async fn ensure(&self, desired: &Desired) -> Result<Ensured, BoxError> {
        let wanted = Wanted::new(desired);
        let mut backends: BTreeSet<String> = wanted.names().collect();
        self.servers.desire(&desired.key);
        backends.extend(self.servers.backends(&desired.key));
        let plan = |state: &State| self.servers.settings().plan(desired, &wanted, state);
        let reached = self.servers.reach(&backends, plan).await?;
        let mut obstacles = self.obstacles(&desired.key, &reached)?;
        self.served(&desired.key);
        for (service, addresses) in &wanted.unusable {
            let service = Key::new(&desired.key.namespace, service);
            obstacles.extend(addresses.iter().map(|address| HaproxyObstacle::Unusable {
                service: service.clone(),
                address: address.clone(),
            }));
        }
        Ok(Ensured {
            load_balancer: None,
            obstacles: obstacles.into_iter().map(Obstacle::from).collect(),
        })
    }

    async fn delete(&self, key: &Key, excluded: &BTreeSet<String>) -> Result<Ensured, BoxError> {
        // Nothing may be left that only this ingress leads to, also where nobody has looked yet.
        self.wake(self.look().await?);
        let backends = self.servers.backends(key);
        let plan = |state: &State| self.servers.settings().removal(key, excluded, state);
        let reached = self.servers.reach(&backends, plan).await?;
        require_none(self.obstacles(key, &reached)?)?;
        if !self.servers.backends(key).is_empty() {
            return Err(HaproxyError::Left { key: key.clone() }.into());
        }
        self.servers.forget(key);
        self.served(key);
        Ok(Ensured::default())
    }

    async fn cut(&self, key: &Key, cut: &ServedClusters) -> Result<(), BoxError> {
        let backends = cut.keys().cloned().collect();
        let plan = |state: &State| self.servers.settings().cutting(key, cut, state);
        let reached = self.servers.reach(&backends, plan).await?;
        require_none(self.obstacles(key, &reached)?)
    }

    fn keys(&self) -> Vec<Key> {
        self.servers.keys().into_iter().collect()
    }

    fn holds(&self, key: &Key) -> bool {
        !self.servers.backends(key).is_empty()
    }

    fn endpoints(&self, key: &Key) -> ServedClusters {
        self.servers.held(key)
    }

    fn is_outage(&self, error: &BoxError) -> bool {
        error.downcast_ref().is_some_and(HaproxyError::is_outage)
    }

    async fn probe(&self) -> Result<(), BoxError> {
        self.servers.read(&[]).await?;
        Ok(())
    }
}

#[cfg(test)]
mod tests;
