//! The agents of a member: the real program, as often as the member has nodes, in this process.

use std::ffi::OsString;
use std::net::SocketAddr;
use std::path::PathBuf;
use std::time::Duration;

use anyhow::{Context, Result, bail};
use clap::Parser;
use cluster_health_agent::{Args, NAME, start};
use karmada_runtime::program::Program;
use parking_lot::Mutex;
use tokio::sync::oneshot;
use tokio::task::JoinSet;
use tokio::time::{interval, sleep};
use tracing::Instrument;

use crate::facts::{Fact, Facts};
use crate::get::Getter;
use crate::port::Port;
use crate::thresholds::Thresholds;

/// Between two looks at what an agent says.
const LOOK: Duration = Duration::from_millis(50);

/// What the agents of a member are told.
#[derive(Clone, Debug)]
pub(super) struct Setting {
    pub(super) cluster: String,
    pub(super) kubeconfig: PathBuf,
    pub(super) nameserver: SocketAddr,
    pub(super) thresholds: Thresholds,
    pub(super) facts: Facts,
}

/// The agents of one member. Dropping them ends them.
#[derive(Debug)]
pub(super) struct Agents {
    nodes: Vec<Node>,
    setting: Setting,
    _looking: JoinSet<()>,
}

#[derive(Debug)]
struct Node {
    name: String,
    port: Port,
    running: Mutex<Option<Running>>,
}

/// An agent that runs. Dropping it kills it.
#[derive(Debug)]
struct Running {
    kill: oneshot::Sender<()>,
    /// Never told: it is dropped at the end.
    ended: oneshot::Receiver<()>,
}

impl Agents {
    /// Starts `count` agents.
    pub(super) fn start(count: usize, setting: Setting) -> Result<Self> {
        let node = |nth| {
            Ok(Node {
                name: format!("{}-node{nth}", setting.cluster),
                port: Port::reserve()?,
                running: Mutex::new(None),
            })
        };
        let nodes = (1..=count).map(node).collect::<Result<Vec<_>>>()?;
        let mut looking = JoinSet::new();
        for node in &nodes {
            let (cluster, facts) = (setting.cluster.clone(), setting.facts.clone());
            looking.spawn(look(cluster, node.name.clone(), node.port.address(), facts));
        }
        let agents = Self {
            nodes,
            setting,
            _looking: looking,
        };
        // Nodes do not ask in step with each other.
        let period = agents.setting.thresholds.period();
        for (node, nth) in agents.nodes.iter().zip(0..) {
            agents.run(node, period * nth / agents.count())?;
        }
        Ok(agents)
    }

    /// Starts the agent of a node whose agent was killed.
    pub(super) fn revive(&self, node: &str) -> Result<()> {
        self.run(self.node(node)?, Duration::ZERO)
    }

    /// Kills the agent of a node: it has no time to give anything back.
    pub(super) async fn kill(&self, node: &str) -> Result<()> {
        let node = self.node(node)?;
        let running = node.running.lock().take();
        let Some(running) = running.filter(|running| !running.kill.is_closed()) else {
            bail!("the agent of {} does not run", node.name);
        };
        drop(running.kill);
        drop(running.ended.await);
        Ok(())
    }

    fn node(&self, name: &str) -> Result<&Node> {
        let found = self.nodes.iter().find(|node| node.name == name);
        found.with_context(|| {
            let names: Vec<_> = self.nodes.iter().map(|node| node.name.as_str()).collect();
            format!("no node {name:?}: there are {}", names.join(", "))
        })
    }

    fn count(&self) -> u32 {
        u32::try_from(self.nodes.len()).unwrap_or(u32::MAX)
    }

    /// Runs the agent of a node, after a while.
    fn run(&self, node: &Node, delay: Duration) -> Result<()> {
        let mut running = node.running.lock();
        if running
            .as_ref()
            .is_some_and(|running| !running.kill.is_closed())
        {
            bail!("the agent of {} runs already", node.name);
        }
        let args = Args::try_parse_from(self.flags(node))?;
        let alive = Alive::new(&self.setting, &node.name);
        let span = tracing::error_span!("agent", node = node.name);
        let address = node.port.address();
        let agent = async move {
            sleep(delay).await;
            let mut program = Program::new(NAME, address);
            let started = async {
                start(args, &mut program).await?;
                program.serve().await
            };
            match started.await {
                Ok(_) => drop(
                    program
                        .run_until(async || std::future::pending().await)
                        .await,
                ),
                Err(error) => tracing::error!(%error, "The agent does not start"),
            }
        };
        // A runtime of its own is to an agent what a process is: with it ends all that it began.
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
        Ok(())
    }

    fn flags(&self, node: &Node) -> Vec<OsString> {
        let setting = &self.setting;
        let mut kubeconfig = OsString::from("--karmada-kubeconfig=");
        kubeconfig.push(&setting.kubeconfig);
        let mut flags = vec![
            NAME.into(),
            kubeconfig,
            format!("--cluster-name={}", setting.cluster).into(),
            format!("--host-name={}", node.name).into(),
            format!("--listen-address={}", node.port.address()).into(),
            format!("--nameserver={}", setting.nameserver).into(),
            // With its final dot no search list of this machine matters.
            "--probe-name=kubernetes.default.svc.cluster.local.".into(),
        ];
        let others = self.nodes.iter().filter(|other| other.name != node.name);
        flags.extend(others.map(|other| format!("--peer={}", other.port.address()).into()));
        flags.extend(setting.thresholds.flags().into_iter().map(Into::into));
        flags
    }
}

/// Tells that an agent began, and, however it ends, that it ended.
struct Alive {
    cluster: String,
    node: String,
    facts: Facts,
}

impl Alive {
    fn new(setting: &Setting, node: &str) -> Self {
        let alive = Self {
            cluster: setting.cluster.clone(),
            node: node.to_owned(),
            facts: setting.facts.clone(),
        };
        alive.tell(true);
        alive
    }

    fn tell(&self, alive: bool) {
        self.facts.tell(Fact::Agent {
            cluster: self.cluster.clone(),
            node: self.node.clone(),
            alive,
        });
    }
}

impl Drop for Alive {
    fn drop(&mut self) {
        self.tell(false);
    }
}

/// Tells what an agent says of its node, again and again.
async fn look(cluster: String, node: String, address: SocketAddr, facts: Facts) {
    let getter = Getter::new("sandbox", Duration::from_secs(1));
    let mut ticks = interval(LOOK);
    loop {
        ticks.tick().await;
        let observation = match getter.get(address, "/v1/observation").await {
            Ok((status, text)) if status.is_success() => serde_json::from_str(&text).ok(),
            _ => None,
        };
        facts.tell(Fact::Voted {
            cluster: cluster.clone(),
            node: node.clone(),
            observation,
        });
    }
}

#[cfg(test)]
mod tests {
    use tokio::io::{AsyncReadExt, AsyncWriteExt};
    use tokio::net::TcpStream;

    use super::*;
    use crate::facts::{self, Told};

    const NODE: &str = "member1-node1";

    /// Waits until the agent of the only node tells what it votes.
    async fn answers(told: &mut Told) {
        loop {
            let (_, fact) = told.recv().await.unwrap();
            let observation = match fact {
                Fact::Voted { observation, .. } => observation,
                _ => None,
            };
            if observation.is_some() {
                return;
            }
        }
    }

    #[tokio::test]
    async fn a_killed_agent_ends_every_connection_and_frees_its_port_for_the_next() {
        let nobody = Port::reserve().unwrap();
        let folder = tempfile::tempdir().unwrap();
        let kubeconfig = folder.path().join("kubeconfig");
        let server = format!("{{ server: 'http://{}' }}", nobody.address());
        let text = format!(
            "{{ apiVersion: v1, kind: Config, current-context: c, users: [{{ name: u, user: {{}} }}], \
             clusters: [{{ name: c, cluster: {server} }}], \
             contexts: [{{ name: c, context: {{ cluster: c, user: u }} }}] }}"
        );
        std::fs::write(&kubeconfig, text).unwrap();
        let (facts, mut told) = facts::channel();
        let setting = Setting {
            cluster: "member1".to_owned(),
            kubeconfig,
            nameserver: nobody.address(),
            thresholds: Thresholds::Short,
            facts,
        };
        let agents = Agents::start(1, setting).unwrap();
        let address = agents.node(NODE).unwrap().port.address();
        for _ in 0..2 {
            answers(&mut told).await;
            let mut kept = TcpStream::connect(address).await.unwrap();
            let request = "GET /livez HTTP/1.1\r\nHost: agent\r\n\r\n";
            kept.write_all(request.as_bytes()).await.unwrap();
            let mut first = [0; 12];
            kept.read_exact(&mut first).await.unwrap();
            assert_eq!(&first, b"HTTP/1.1 200");

            agents.kill(NODE).await.unwrap();
            // It ends, in whatever way, though nobody closed it here.
            drop(kept.read_to_end(&mut Vec::new()).await);
            assert!(TcpStream::connect(address).await.is_err());
            assert!(agents.kill(NODE).await.is_err());
            while told.try_recv().is_ok() {}
            agents.revive(NODE).unwrap();
        }
    }
}
