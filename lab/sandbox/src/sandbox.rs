//! The whole pipeline in this process: the APIs, the members, the controllers and the traffic.

use std::path::PathBuf;
use std::time::Duration;

use anyhow::{Context, Result, bail};
use jiff::Timestamp;
use karmada_api::Remedy;
use lab_parts::thresholds::ProbeTiming;
use serde::Deserialize;
use tokio::sync::Mutex;
use tokio::task::JoinSet;

use crate::apis::Apis;
use crate::failover::Placement;
use crate::fault::{ApiFault, DnsFault, Outage, ServiceNetworkFault};
use crate::member::Member;
use crate::network::{Network, Pod, address};
use crate::new_remedy::NewRemedy;
use crate::picture::{Picture, ThresholdsState, ms};
use crate::plan::{self, PlanState};
use crate::record::{self, Record};
use crate::sample_remedy::SampleRemedy;
use crate::site::Site;
use crate::update::UpdateSender;
use crate::{
    availability, balancer, collector, command, failover, hub, member_controllers, objects,
    programs, rollout, traffic, update, watch,
};

const MEMBERS: u8 = 3;
/// The longest API outage, in seconds.
const LONGEST_CUT: u64 = 600;

/// An action of a reader of the page or of a scenario.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
#[serde(tag = "do", rename_all = "kebab-case", deny_unknown_fields)]
pub(crate) enum Action {
    /// Injects a fault into the DNS of a cluster, or ends it.
    Dns { cluster: String, fault: DnsFault },
    /// Injects a fault into the Service network of a cluster, or ends it.
    ServiceNetwork {
        cluster: String,
        fault: ServiceNetworkFault,
    },
    /// Takes the power or the link of a cluster, or gives them back.
    Outage { cluster: String, fault: Outage },
    /// Makes the Karmada API unavailable for a while.
    CutApi { seconds: u64 },
    /// Injects a fault into the Karmada API, or ends it.
    ApiFault { fault: ApiFault },
    /// Kills the agent of a node.
    KillAgent { cluster: String, node: String },
    /// Starts the agent of a node again.
    StartAgent { cluster: String, node: String },
    /// Kills the agent that leads.
    KillLeader { cluster: String },
    /// Declares a signal of a cluster: whether its instance of the store responds.
    Declare { cluster: String },
    /// Takes the declaration back.
    Withdraw { cluster: String },
    /// Creates a sample Remedy.
    CreateSample { remedy: String },
    /// Creates any other Remedy.
    CreateRemedy(NewRemedy),
    /// Deletes a Remedy.
    DeleteRemedy { remedy: String },
    /// Drains a cluster of its traffic, and keeps new workloads away.
    Drain { cluster: String },
    /// Takes the drain of a cluster back.
    EndDrain { cluster: String },
    /// Gives the Deployment its next version.
    NewVersion {},
    /// Holds the Deployment's changes back from a cluster, or from all.
    Pause { cluster: Option<String> },
    /// Lets the Deployment's changes reach a cluster, or all.
    Resume { cluster: Option<String> },
    /// Gives the Deployment other clusters.
    Place { placement: Placement },
    /// Has the scheduler choose the Deployment's clusters anew.
    Reschedule {},
    /// Gives the website that is placed its next version.
    RollOut {},
    /// Gives it one with pods that never become ready.
    Break {},
    /// Keeps new placements away from a cluster.
    Cordon { cluster: String },
    /// Lets placements go to a cluster again.
    Uncordon { cluster: String },
    /// Takes the website from a cluster.
    Evict { cluster: String },
    /// Takes a cluster out of the fleet of placements.
    Leave { cluster: String },
    /// Brings a cluster into the fleet of placements.
    Join { cluster: String },
}

/// The running pipeline. Dropping it ends everything.
#[derive(Debug)]
pub(crate) struct Sandbox {
    apis: Apis,
    members: Vec<Member>,
    record: Record,
    /// Tasks that end only by a failure, with their names.
    tasks: Mutex<JoinSet<&'static str>>,
    _watches: JoinSet<()>,
}

impl Sandbox {
    /// Starts everything, with the Remedies `dns` and `unreachable` in place.
    pub(crate) async fn start(thresholds: ProbeTiming) -> Result<Self> {
        let names: Vec<String> = (1..=MEMBERS).map(|nth| format!("member{nth}")).collect();
        let (updates, received) = update::channel();
        let apis = Apis::start(&names, updates.clone()).await?;
        let kubeconfig = apis.kubeconfig();
        let shown = ThresholdsState {
            period_ms: ms(thresholds.period),
            failure_ms: ms(thresholds.threshold),
            success_ms: ms(thresholds.threshold),
        };
        let picture = Picture::new(&names, shown, kubeconfig.display().to_string());
        let (record, recording) = record::keep(picture, received);
        let mut tasks = JoinSet::new();
        tasks.spawn(named("record", recording));

        objects::create_everything(&apis).await?;
        hub::create_fleet(&apis).await?;
        let karmada = apis.karmada()?;
        for sample in [SampleRemedy::Dns, SampleRemedy::Unreachable] {
            objects::create_remedy(karmada.clone(), &sample.remedy()?).await?;
        }
        let member_clients = apis.members()?;
        let mut watches = watch::all(&karmada, &apis.hub()?, &member_clients, &updates);
        let programs = programs::start(&kubeconfig, &apis.gateway_kubeconfig()).await?;
        let placing = programs::start_placement(&kubeconfig, names.iter()).await?;
        for program in programs.into_iter().chain(placing) {
            tasks.spawn(named(program.identity.name, programs::live(program)));
        }
        hub::place(&apis.hub()?, &names).await?;

        let mut members = Vec::new();
        let mut network = Network::new();
        for (nth, (name, client)) in (1..).zip(&member_clients) {
            let collecting = collector::run(name.clone(), client.clone(), karmada.clone());
            tasks.spawn(named("collector", collecting));
            // The backend of the shop responds whatever its Deployment says.
            let [_, ready] = Site::BOTH.map(|site| {
                let (ready, run) = member_controllers::start(client, site, address(nth, site));
                tasks.spawn(named("member controllers", run));
                ready
            });
            let member = Member::start(
                name,
                apis.agent_kubeconfig(name),
                thresholds,
                ready,
                updates.clone(),
            );
            let member = member.await?;
            let reporter =
                programs::start_reporter(&kubeconfig, name, member.nameserver(), thresholds);
            tasks.spawn(named("hub reporter", programs::live(reporter.await?)));
            network.extend(Site::BOTH.map(|site| (address(nth, site), member.pod(site))));
            members.push(member);
        }
        let pods = members.iter().map(|member| member.pod(Site::Shop));
        let pods: Vec<Pod> = pods.collect();
        look_from_outside(&apis, &pods, thresholds, &updates, &mut watches).await?;
        let shop = balancer::of_shop(&apis.gateway()?, network.clone(), updates.clone());
        let store = balancer::of_store(&member_clients, network, updates.clone());
        for (site, balancer) in Site::BOTH.into_iter().zip([shop, store]) {
            let running = traffic::run(site, balancer, updates.clone());
            tasks.spawn(named("traffic", running));
        }
        Ok(Self {
            apis,
            members,
            record,
            tasks: Mutex::new(tasks),
            _watches: watches,
        })
    }

    /// Returns a reader's view of the fleet.
    pub(crate) fn record(&self) -> Record {
        self.record.clone()
    }

    /// Returns the path of a kubeconfig for both APIs.
    pub(crate) fn kubeconfig(&self) -> PathBuf {
        self.apis.kubeconfig()
    }

    /// Waits until a part ends that never should, and describes its end.
    pub(crate) async fn ended(&self) -> String {
        match self.tasks.lock().await.join_next().await {
            Some(Ok(name)) => format!("{name} ended; --log-level warn shows why"),
            Some(Err(error)) => format!("a task failed: {error}"),
            None => "no task is running".to_owned(),
        }
    }

    /// Performs an action.
    ///
    /// # Errors
    /// Fails with a message of one line for the reader.
    pub(crate) async fn act(&self, action: Action) -> Result<()> {
        match action {
            Action::Dns { cluster, fault } => self.member(&cluster)?.inject_dns(fault).await?,
            Action::ServiceNetwork { cluster, fault } => {
                self.member(&cluster)?.inject_network(fault);
            }
            Action::Outage { cluster, fault } => {
                let member = self.member(&cluster)?;
                self.apis.inject_outage(member.name(), fault);
                member.inject_outage(fault).await?;
            }
            Action::CutApi { seconds } => {
                if !(1..=LONGEST_CUT).contains(&seconds) {
                    bail!("the API can be cut off for 1 to {LONGEST_CUT} seconds");
                }
                self.apis
                    .inject(ApiFault::Cut, Some(Duration::from_secs(seconds)));
            }
            Action::ApiFault { fault } => self.apis.inject(fault, None),
            Action::KillAgent { cluster, node } => self.member(&cluster)?.kill_agent(&node).await?,
            Action::StartAgent { cluster, node } => self.member(&cluster)?.start_agent(&node)?,
            Action::KillLeader { cluster } => {
                let leader = self.leader(&cluster)?;
                self.member(&cluster)?.kill_agent(&leader).await?;
            }
            Action::Declare { cluster } => self.member(&cluster)?.declare()?,
            Action::Withdraw { cluster } => self.member(&cluster)?.withdraw()?,
            Action::CreateSample { remedy } => {
                let remedy = SampleRemedy::named(&remedy)?.remedy()?;
                objects::create_remedy(self.apis.karmada()?, &remedy).await?;
            }
            Action::CreateRemedy(new) => {
                let remedy = self.described(&new)?;
                objects::create_remedy(self.apis.karmada()?, &remedy).await?;
            }
            Action::DeleteRemedy { remedy } => {
                objects::delete_remedy(self.apis.karmada()?, &remedy).await?;
            }
            Action::Drain { cluster } => self.command("drain", &cluster).await?,
            Action::EndDrain { cluster } => self.command("uncordon", &cluster).await?,
            Action::NewVersion {} => rollout::new_version(&self.apis.karmada()?).await?,
            Action::Pause { cluster } => self.suspend(cluster.as_deref(), true).await?,
            Action::Resume { cluster } => self.suspend(cluster.as_deref(), false).await?,
            Action::Place { placement } => {
                failover::place(&self.apis.karmada()?, placement).await?;
            }
            Action::Reschedule {} => failover::reschedule(&self.apis.karmada()?).await?,
            Action::RollOut {} => hub::roll_out(&self.apis.hub()?, false).await?,
            Action::Break {} => hub::roll_out(&self.apis.hub()?, true).await?,
            Action::Cordon { cluster } => {
                let cluster = self.member(&cluster)?.name();
                hub::cordon(&self.apis.hub()?, cluster, true).await?;
            }
            Action::Uncordon { cluster } => {
                let cluster = self.member(&cluster)?.name();
                hub::cordon(&self.apis.hub()?, cluster, false).await?;
            }
            Action::Evict { cluster } => {
                hub::evict(&self.apis.hub()?, self.member(&cluster)?.name()).await?;
            }
            Action::Leave { cluster } => {
                hub::leave(&self.apis.hub()?, self.member(&cluster)?.name()).await?;
            }
            Action::Join { cluster } => {
                hub::join(&self.apis.hub()?, self.member(&cluster)?.name()).await?;
            }
        }
        Ok(())
    }

    /// Tells the effect of a Remedy.
    ///
    /// # Errors
    /// Fails, with a message of one line for the reader, if it cannot be created.
    pub(crate) async fn plan(&self, new: &NewRemedy) -> Result<PlanState> {
        let remedy = self.described(new)?;
        let karmada = self.apis.karmada()?;
        objects::check_remedy(karmada.clone(), &remedy).await?;
        plan::plan(&karmada, remedy, Timestamp::now()).await
    }

    fn described(&self, new: &NewRemedy) -> Result<Remedy> {
        let members: Vec<&str> = self.members.iter().map(Member::name).collect();
        new.remedy(Timestamp::now(), &members)
    }

    /// Runs a command of `kubectl remedy` on a cluster.
    async fn command(&self, name: &str, cluster: &str) -> Result<()> {
        let cluster = self.member(cluster)?.name();
        command::run(name, cluster, &self.apis.kubeconfig()).await
    }

    /// Pauses or resumes the rollout to a cluster, or to all.
    async fn suspend(&self, cluster: Option<&str>, pauses: bool) -> Result<()> {
        if let Some(cluster) = cluster {
            self.member(cluster)?;
        }
        let members = self.members.iter().map(Member::name).collect();
        rollout::suspend(&self.apis.karmada()?, &members, cluster, pauses).await
    }

    /// Returns the node whose agent holds the lease.
    pub(crate) fn leader(&self, cluster: &str) -> Result<String> {
        let state = self.record.state.borrow().clone();
        let nodes = state.cluster(cluster).map(|known| &known.nodes);
        let leader = nodes.into_iter().flatten().find(|node| node.leader);
        let leader = leader.map(|node| node.name.clone());
        leader.with_context(|| format!("no agent of {cluster} is the leader now"))
    }

    fn member(&self, name: &str) -> Result<&Member> {
        let found = self.members.iter().find(|member| member.name() == name);
        found.with_context(|| {
            let names: Vec<_> = self.members.iter().map(Member::name).collect();
            format!("no cluster {name:?}; the clusters are {}", names.join(", "))
        })
    }
}

/// Starts the checks of the members from outside, for the page, and the agents of the gateway.
async fn look_from_outside(
    apis: &Apis,
    pods: &[Pod],
    thresholds: ProbeTiming,
    updates: &UpdateSender,
    tasks: &mut JoinSet<()>,
) -> Result<()> {
    for (pod, (_, api)) in pods.iter().zip(apis.endpoints()) {
        availability::check_member(&pod.cluster, [pod.socket, api], updates, tasks);
    }
    let kubeconfig = apis.kubeconfig();
    let agents = programs::start_gateway_agents(&kubeconfig, pods, thresholds).await?;
    for (program, port) in agents {
        tasks.spawn(async move {
            programs::live(program).await;
            drop(port);
        });
    }
    Ok(())
}

async fn named(name: &'static str, task: impl Future<Output = ()>) -> &'static str {
    task.await;
    name
}
