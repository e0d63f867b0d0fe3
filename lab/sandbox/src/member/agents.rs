//! The agents of a member: the real program, once for each node, in this process.

use std::ffi::OsString;
use std::io::ErrorKind;
use std::net::SocketAddr;
use std::path::PathBuf;
use std::time::Duration;
use std::{fs, io};

use anyhow::{Context, Result, bail};
use clap::Parser;
use cluster_health_agent::{Args, IDENTITY, NAME, start};
use karmada_runtime::program::Program;
use lab_parts::dns::KUBERNETES;
use lab_parts::port::ReservedPort;
use lab_parts::thresholds::ProbeTiming;
use parking_lot::Mutex;
use tokio::sync::oneshot;
use tokio::task::JoinSet;
use tokio::time::{MissedTickBehavior, interval, sleep};
use tracing::Instrument;

use super::service_network::{self, ServiceNetwork};
use crate::fault::ServiceNetworkFault;
use crate::get::Getter;
use crate::update::{Update, UpdateSender};

/// The time between two reads of an agent's vote.
const POLL: Duration = Duration::from_millis(500);

/// The settings that the agents of a member share.
#[derive(Clone, Debug)]
pub(super) struct Setting {
    pub(super) cluster: String,
    pub(super) kubeconfig: PathBuf,
    pub(super) nameserver: SocketAddr,
    pub(super) thresholds: ProbeTiming,
    pub(super) updates: UpdateSender,
}

impl Setting {
    /// Returns the path of the file in which signals are declared.
    fn signals(&self) -> PathBuf {
        self.kubeconfig.with_extension("signals.yaml")
    }
}

/// The agents of one member. Dropping them ends them.
#[derive(Debug)]
pub(super) struct Agents {
    nodes: Vec<Node>,
    service_network: ServiceNetwork,
    setting: Setting,
    _polling: JoinSet<()>,
}

#[derive(Debug)]
struct Node {
    name: String,
    port: ReservedPort,
    /// The cluster IP of the agents' Service, as this node sees it.
    cluster_ip: ReservedPort,
    running: Mutex<Option<Running>>,
}

/// A running agent. Dropping it kills it.
#[derive(Debug)]
struct Running {
    kill: oneshot::Sender<()>,
    /// Its sender is dropped, and nothing is sent, once the agent has ended.
    ended: oneshot::Receiver<()>,
}

impl Agents {
    /// Starts `count` agents.
    pub(super) fn start(count: usize, setting: Setting) -> Result<Self> {
        let mut nodes = Vec::new();
        for nth in 1..=count {
            nodes.push(Node {
                name: format!("{}-node{nth}", setting.cluster),
                port: ReservedPort::reserve()?,
                cluster_ip: ReservedPort::reserve()?,
                running: Mutex::new(None),
            });
        }
        let mut polling = JoinSet::new();
        for node in &nodes {
            let (cluster, updates) = (setting.cluster.clone(), setting.updates.clone());
            polling.spawn(poll(
                cluster,
                node.name.clone(),
                node.port.address(),
                updates,
            ));
        }
        let endpoints: Vec<_> = nodes.iter().map(|node| node.port.address()).collect();
        let cluster_ips: Vec<_> = nodes.iter().map(|node| node.cluster_ip.address()).collect();
        let (cluster, updates) = (setting.cluster.clone(), setting.updates.clone());
        polling.spawn(service_network::repeat(
            cluster,
            cluster_ips.clone(),
            updates,
        ));
        let agents = Self {
            service_network: ServiceNetwork::start(&cluster_ips, &endpoints),
            nodes,
            setting,
            _polling: polling,
        };
        // Real nodes do not start their rounds at the same instant.
        let period = agents.setting.thresholds.period;
        for (node, nth) in agents.nodes.iter().zip(0..) {
            agents.run(node, period * nth / agents.count())?;
        }
        Ok(agents)
    }

    /// Injects a fault into the rules that lead to them in place of the one before.
    pub(super) fn inject(&self, fault: ServiceNetworkFault) {
        self.service_network.inject(fault);
    }

    /// Declares the signals of a file with this text.
    pub(super) fn declare(&self, signals: &str) -> io::Result<()> {
        let file = self.setting.signals();
        // The agents must not read a part of it.
        let whole = file.with_extension("new");
        fs::write(&whole, signals)?;
        fs::rename(whole, file)
    }

    /// Declares no signal any more.
    pub(super) fn withdraw(&self) -> io::Result<()> {
        let removed = fs::remove_file(self.setting.signals());
        removed.or_else(|error| match error.kind() {
            ErrorKind::NotFound => Ok(()),
            _ => Err(error),
        })
    }

    /// Starts the killed agent of a node again.
    pub(super) fn revive(&self, node: &str) -> Result<()> {
        let node = self.node(node)?;
        if !self.run(node, Duration::ZERO)? {
            bail!("the agent of {} is running already", node.name);
        }
        Ok(())
    }

    /// Starts every agent that is not running.
    pub(super) fn revive_all(&self) -> Result<()> {
        for node in &self.nodes {
            self.run(node, Duration::ZERO)?;
        }
        Ok(())
    }

    /// Kills the agent of a node, which cannot even release its lease.
    pub(super) async fn kill(&self, node: &str) -> Result<()> {
        let node = self.node(node)?;
        if !node.kill().await {
            bail!("the agent of {} is not running", node.name);
        }
        Ok(())
    }

    /// Kills every agent that is running.
    pub(super) async fn kill_all(&self) {
        for node in &self.nodes {
            node.kill().await;
        }
    }

    fn node(&self, name: &str) -> Result<&Node> {
        let found = self.nodes.iter().find(|node| node.name == name);
        found.with_context(|| {
            let names: Vec<_> = self.nodes.iter().map(|node| node.name.as_str()).collect();
            format!("no node {name:?}; the nodes are {}", names.join(", "))
        })
    }

    fn count(&self) -> u32 {
        u32::try_from(self.nodes.len()).unwrap_or(u32::MAX)
    }

    /// Runs the agent of a node after a delay. Returns `false` if it is running already.
    fn run(&self, node: &Node, delay: Duration) -> Result<bool> {
        // Until it is stored: whoever asks meanwhile finds it running.
        let mut running = node.running.lock();
        if running.as_ref().is_some_and(Running::is_alive) {
            return Ok(false);
        }
        let args = Args::try_parse_from(self.flags(node))?;
        let alive = Alive::new(&self.setting, &node.name);
        let span = tracing::error_span!("agent", node = node.name);
        let address = node.port.address();
        let agent = async move {
            sleep(delay).await;
            let mut program = Program::new(IDENTITY, address);
            let started = async {
                start(args, &mut program).await?;
                program.serve()
            };
            match started.await {
                Ok(_) => drop(
                    program
                        .run_until(async || std::future::pending().await)
                        .await,
                ),
                Err(error) => tracing::error!(%error, "The agent cannot start"),
            }
        };
        // A runtime of its own stands for a process: when it is dropped, every task and connection
        // of the agent ends.
        let runtime = tokio::runtime::Builder::new_current_thread()
            .enable_all()
            .build()?;
        let (kill, killed) = oneshot::channel();
        let (ending, ended) = oneshot::channel();
        std::thread::Builder::new()
            .name(node.name.clone())
            .spawn(move || {
                runtime.block_on(async {
                    tokio::select! {
                        biased;
                        _ = killed => {}
                        () = agent.instrument(span) => {}
                    }
                });
                drop((runtime, alive));
                drop::<oneshot::Sender<()>>(ending);
            })?;
        *running = Some(Running { kill, ended });
        Ok(true)
    }

    fn flags(&self, node: &Node) -> Vec<OsString> {
        let setting = &self.setting;
        let mut kubeconfig = OsString::from("--karmada-kubeconfig=");
        kubeconfig.push(&setting.kubeconfig);
        let mut signals = OsString::from("--signals-file=");
        signals.push(setting.signals());
        let mut flags = vec![
            NAME.into(),
            kubeconfig,
            signals,
            format!("--cluster-name={}", setting.cluster).into(),
            format!("--host-name={}", node.name).into(),
            format!("--listen-address={}", node.port.address()).into(),
            format!("--nameserver={}", setting.nameserver).into(),
            // Its final dot keeps the search list of this machine out.
            format!("--probe-name={KUBERNETES}").into(),
            "--detectors=coredns-detector,service-network".into(),
            format!("--service-network-address={}", node.cluster_ip.address()).into(),
        ];
        let others = self.nodes.iter().filter(|other| other.name != node.name);
        flags.extend(others.map(|other| format!("--peer={}", other.port.address()).into()));
        flags.extend(setting.thresholds.flags().map(Into::into));
        flags
    }
}

impl Running {
    fn is_alive(&self) -> bool {
        !self.kill.is_closed()
    }
}

impl Node {
    /// Kills its agent. Returns `false` if there is none.
    async fn kill(&self) -> bool {
        let running = self.running.lock().take();
        let Some(running) = running.filter(Running::is_alive) else {
            return false;
        };
        drop(running.kill);
        drop(running.ended.await);
        true
    }
}

/// Sends updates on the start of an agent and, when dropped, on its end.
struct Alive {
    cluster: String,
    node: String,
    updates: UpdateSender,
}

impl Alive {
    fn new(setting: &Setting, node: &str) -> Self {
        let alive = Self {
            cluster: setting.cluster.clone(),
            node: node.to_owned(),
            updates: setting.updates.clone(),
        };
        alive.send(true);
        alive
    }

    fn send(&self, alive: bool) {
        self.updates.send(Update::Agent {
            cluster: self.cluster.clone(),
            node: self.node.clone(),
            alive,
        });
    }
}

impl Drop for Alive {
    fn drop(&mut self) {
        self.send(false);
    }
}

/// Reads an agent's vote again and again, and never returns.
async fn poll(cluster: String, node: String, address: SocketAddr, updates: UpdateSender) {
    let getter = Getter::new("sandbox", Duration::from_secs(1));
    let mut ticks = interval(POLL);
    ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
    loop {
        ticks.tick().await;
        let vote = match getter.get(address, "/v1/observation").await {
            Ok((status, text)) if status.is_success() => serde_json::from_str(&text).ok(),
            _ => None,
        };
        updates.send(Update::Vote {
            cluster: cluster.clone(),
            node: node.clone(),
            vote,
        });
    }
}

#[cfg(test)]
mod tests {
    use std::path::Path;
    use std::sync::Barrier;
    use std::thread;

    use lab_parts::kubeconfig::{self, Access};
    use lab_parts::port::CLOSED;
    use tokio::io::{AsyncReadExt, AsyncWriteExt};
    use tokio::net::TcpStream;

    use super::*;
    use crate::update::{self, UpdateReceiver};

    const NODE: &str = "member1-node1";

    /// Waits until the agent of the only node responds.
    async fn responds(updates: &mut UpdateReceiver) {
        loop {
            let (_, update) = updates.recv().await.unwrap();
            if let Update::Vote { vote: Some(_), .. } = update {
                return;
            }
        }
    }

    fn setting(folder: &Path, updates: UpdateSender) -> Setting {
        let kubeconfig = folder.join("kubeconfig");
        kubeconfig::write(&kubeconfig, &[&Access::open("karmada", CLOSED)]).unwrap();
        Setting {
            cluster: "member1".to_owned(),
            kubeconfig,
            nameserver: CLOSED,
            thresholds: ProbeTiming::SHORT,
            updates,
        }
    }

    /// Two who click at the same time start one agent.
    #[tokio::test]
    async fn revived_twice_runs_once() {
        let folder = tempfile::tempdir().unwrap();
        let (updates, _received) = update::channel();
        let agents = Agents::start(1, setting(folder.path(), updates)).unwrap();
        agents.kill(NODE).await.unwrap();
        let clicked = Barrier::new(2);
        let click = || {
            clicked.wait();
            agents.revive(NODE).is_ok()
        };
        let started = thread::scope(|scope| {
            let clicks = [scope.spawn(click), scope.spawn(click)];
            clicks.map(|click| click.join().unwrap())
        });
        assert_ne!(started[0], started[1]);
    }

    /// A killed agent ends every connection and frees its port for the next.
    #[tokio::test]
    async fn killed_agent_frees_its_port() {
        let folder = tempfile::tempdir().unwrap();
        let (updates, mut received) = update::channel();
        let agents = Agents::start(1, setting(folder.path(), updates)).unwrap();
        let address = agents.node(NODE).unwrap().port.address();
        for _ in 0..2 {
            responds(&mut received).await;
            let mut kept = TcpStream::connect(address).await.unwrap();
            let request = "GET /livez HTTP/1.1\r\nHost: agent\r\n\r\n";
            kept.write_all(request.as_bytes()).await.unwrap();
            let mut first = [0; 12];
            kept.read_exact(&mut first).await.unwrap();
            assert_eq!(&first, b"HTTP/1.1 200");

            agents.kill(NODE).await.unwrap();
            // The connection ends, by a close or by a reset.
            drop(kept.read_to_end(&mut Vec::new()).await);
            assert!(TcpStream::connect(address).await.is_err());
            assert!(agents.kill(NODE).await.is_err());
            while received.try_recv().is_ok() {}
            agents.revive(NODE).unwrap();
        }
    }
}
