//! `cluster-health-agent`: probes a cluster from each of its nodes and reports its health to the Karmada
//! control plane.
//!
//! ```text
//!   probe → rounds → vote → votes → peers → tallies → report → conditions of the Cluster
//! ```
//!
//! Each arrow carries one value for each signal (`health::signal`), and only `probe` knows
//! the subject of a signal.
//!
//! - Which signals are there, and how is one probed: `probe/`, with a folder for each, and `probe/declared` for those that users
//!   declare in a file.
//! - When does this node's vote change: `vote`; who reads it: `peers` (other agents), `node_condition`.
//! - Who else votes, and how: `peers/`.
//! - Which agent leads: `campaign`.
//! - The writes to the Cluster, or to the `MemberCluster` of a fleet, or from a gateway to each Cluster: `report/`.
//! - Which flags are there: `args/`, and those of a probe in its folder; `flag_values` checks those that both have.
//! - Which names must stay known while DNS is dead: `addresses`.

mod addresses;
mod args;
mod backoff;
mod campaign;
mod flag_values;
mod identity;
mod metrics;
mod node_condition;
mod peers;
mod probe;
mod reason;
mod report;
mod vote;

pub use health::SIGNALS;
use health::dns::DNS;
use health::report::Terms;
use health::signal::PerTarget;
use health::threshold::Round;
use karmada_runtime::contention::Contention;
use karmada_runtime::events::{EventBudget, EventRecorder};
use karmada_runtime::lease::{self, CampaignMode, Leadership, LeaseConfig};
use karmada_runtime::metrics::WriteMetrics;
use karmada_runtime::program::{Program, StartError};
use karmada_runtime::write::Writer;
use kube::Client;
use tokio::sync::{mpsc, watch};
use uuid::Uuid;

pub use crate::args::Args;
use crate::args::Config;
pub use crate::identity::{IDENTITY, NAME};
use crate::metrics::VerdictMetrics;
use crate::node_condition::NodeCondition;
use crate::peers::{Election, Identity, PeerSettings};
pub use crate::probe::check_if_asked;
use crate::probe::{Defaults, Shared};
pub use crate::reason::Reason;
use crate::report::{Report, Subject};
use crate::vote::{Rounds, Votes};

/// The Events of an agent: it records one where a condition is refused, of which the agents of a gateway have two for each
/// member.
const EVENTS: EventBudget = EventBudget {
    burst: 100,
    per_second: 1,
};

/// Connects to the APIs that the flags name and spawns the tasks of `program`.
///
/// # Errors
/// Returns an error if the flags contradict each other or a file they name cannot be used.
pub async fn start(args: Args, program: &mut Program) -> Result<(), StartError> {
    let config = Config::try_from(args)?;
    let client = program.connect("karmada", &config.source).await?;
    let member = match &config.member {
        Some(member) if config.needs_member() => Some(member.connect(program).await?),
        _ => None,
    };
    let probes = &config.probes;
    let rounds = probes.start(program, &config.cluster, member.clone())?;
    run(config, client, member, rounds, program)
}

/// Spawns the tasks of `program` with the given clients of the Karmada API and of the member
/// cluster's API instead of those that the flags name.
///
/// # Errors
/// Returns an error if the flags contradict each other.
pub fn assemble(
    args: Args,
    client: Client,
    member: Option<Client>,
    program: &mut Program,
) -> Result<(), StartError> {
    let config = Config::try_from(args)?;
    let probes = &config.probes;
    let rounds = probes.start(program, &config.cluster, member.clone())?;
    run(config, client, member, rounds, program)
}

/// Spawns the tasks of `program`, which probes nothing: `rounds` are the caller's observations of DNS.
///
/// # Errors
/// Returns an error if the flags contradict each other.
pub fn observe(
    args: Args,
    client: Client,
    rounds: mpsc::Receiver<Round>,
    program: &mut Program,
) -> Result<(), StartError> {
    let rounds = Rounds::Own(PerTarget::from_iter([(&DNS, rounds)]));
    run(Config::try_from(args)?, client, None, rounds, program)
}

fn run(
    config: Config,
    client: Client,
    member: Option<Client>,
    rounds: Rounds,
    program: &mut Program,
) -> Result<(), StartError> {
    warn_of_ignored(&config.ignored);
    program.listen_address = config.listen_address;

    let own = Identity {
        cluster: config.cluster.clone(),
        node: config.node.clone(),
        id: Uuid::new_v4(),
        port: config.listen_address.port(),
    };
    let (seeking, mode) = watch::channel(CampaignMode::Off);
    let election = elect(program, &config, &client, own.id, mode);
    let leadership = election.leadership.clone();
    let lease = report::lease_in(config.lease_namespace());

    let addresses = program.addresses.clone();
    for name in config.peers.names() {
        addresses.keep(&name);
    }
    addresses::start(program, addresses.clone());
    // Every signal has the thresholds and the quorum of the flags.
    let quorums = rounds.per_signal(&config.quorum);
    let changed = vote::start(program, config.thresholds, rounds);
    let votes = changed.subscribe();
    let declared = declare(
        program,
        &config,
        member.clone(),
        &election.leadership,
        changed,
    );
    let settings = PeerSettings {
        source: config.peers,
        member: member.clone(),
        addresses,
        election,
        period: config.pace.period,
        quorums: quorums.clone(),
    };
    let peers::Started {
        peers,
        contacts,
        known,
    } = peers::start(program, own, settings, votes.clone())?;
    let (abstentions, abstained) = watch::channel(None);
    let facts = campaign::Facts {
        contacts,
        known,
        abstentions: abstained,
    };
    campaign::start(program, facts, seeking);
    let writes = WriteMetrics::register(&mut program.registry);
    writes.announce("conditions");
    if let Some(member) = member.filter(|_| config.node_condition) {
        report_node(program, &member, &config.node, &votes, &writes);
    }
    let events = EventRecorder::spawn(program, client.clone(), EVENTS);
    let report = Report {
        client,
        kind: config.cluster_kind,
        subject: config.subject,
        pace: config.pace,
        metrics: VerdictMetrics::register(&mut program.registry, &quorums),
        quorums,
        declared,
        peers,
        leadership: leadership.clone(),
        abstentions,
        writer: Writer::new(leadership, writes),
        events,
        lease,
        contention: Contention::default(),
        clock: program.clock,
    };
    program
        .tasks
        .spawn("report", report.run(program.stopping.clone()));
    Ok(())
}

/// Spawns the follower of the file of signals, and returns which of them are declared. Nothing is known of that on a gateway.
fn declare(
    program: &mut Program,
    config: &Config,
    member: Option<Client>,
    leadership: &Leadership,
    votes: watch::Sender<Votes>,
) -> watch::Receiver<Option<PerTarget<Terms>>> {
    let (announced, declared) = watch::channel(None);
    if matches!(config.subject, Subject::Own(_)) {
        let shared = Shared {
            defaults: Defaults {
                thresholds: config.thresholds,
                timeout: config.probes.timeout,
                quorum: config.quorum,
            },
            member,
            leadership: leadership.clone(),
            votes,
            declared: announced,
        };
        config.probes.declared.clone().start(program, shared);
    }
    declared
}

fn warn_of_ignored(flags: &[&str]) {
    if flags.is_empty() {
        return;
    }
    let flags: Vec<_> = flags.iter().map(|flag| format!("--{flag}")).collect();
    let flags = flags.join(", ");
    tracing::warn!(
        flags,
        "Flags of Karmada's detector that mean nothing here, ignored"
    );
}

/// Spawns the campaign for the cluster's lease, which `mode` directs, unless the flags rule it out.
fn elect(
    program: &mut Program,
    config: &Config,
    client: &Client,
    id: Uuid,
    mode: watch::Receiver<CampaignMode>,
) -> Election {
    let leadership = if config.leader_elect {
        let own = LeaseConfig {
            namespace: config.lease_namespace(),
            name: NAME.to_owned(),
            host: config.node.clone(),
            id,
            mode: mode.clone(),
        };
        lease::campaign(program, client.clone(), own)
    } else {
        Leadership::always()
    };
    Election { mode, leadership }
}

/// Spawns the writers of the conditions of this agent's Node, one for each signal.
fn report_node(
    program: &mut Program,
    member: &Client,
    node: &str,
    votes: &watch::Receiver<Votes>,
    writes: &WriteMetrics,
) {
    writes.announce("node_condition");
    let signals: Vec<_> = votes
        .borrow()
        .iter()
        .map(|(target, _)| target.signal)
        .collect();
    for signal in signals {
        let condition = NodeCondition {
            client: member.clone(),
            node: node.to_owned(),
            signal,
            votes: votes.clone(),
            // Each agent writes its own Node only, so no lease is needed.
            writer: Writer::new(Leadership::always(), writes.clone()),
        };
        let task = condition.run(program.stopping.clone());
        program.tasks.spawn("node-condition", task);
    }
}

#[cfg(test)]
mod tests;
