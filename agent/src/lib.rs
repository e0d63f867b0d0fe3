//! `cluster-health-agent`: probes the cluster's DNS and reports its health to the Karmada control
//! plane. Data flows one way: probe → vote → report.

mod args;
mod backoff;
mod campaign;
mod metrics;
mod node_condition;
mod peers;
mod probe;
mod report;
mod vote;

use karmada_runtime::lease::{self, Leadership, LeaseConfig};
use karmada_runtime::metrics::WriteMetrics;
use karmada_runtime::program::{Program, StartError};
use karmada_runtime::write::Writer;
use kube::Client;

pub use crate::args::Args;
use crate::args::Config;
use crate::metrics::VerdictMetrics;
use crate::node_condition::NodeConditions;
use crate::peers::Identity;
use crate::report::Report;

/// The program's name: its user agent, the name of its lease, and the prefix of its metrics.
pub const NAME: &str = "cluster-health-agent";

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
    run(config, client, member, program)
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
    run(Config::try_from(args)?, client, member, program)
}

fn run(
    config: Config,
    client: Client,
    member: Option<Client>,
    program: &mut Program,
) -> Result<(), StartError> {
    for flag in &config.ignored {
        tracing::warn!(
            flag,
            "Flag of Karmada's detector that means nothing here, ignored"
        );
    }
    program.listen_address = config.listen_address;

    let rounds = config.probes.start(program, member.clone())?;
    let votes = vote::start(program, config.thresholds, rounds);
    let own = Identity {
        cluster: config.cluster.clone(),
        node: config.node.clone(),
        port: config.listen_address.port(),
    };
    let source = (config.peers, member.clone());
    let peers::Started {
        peers,
        contacts,
        known,
    } = peers::start(program, own, source, config.pace.period, votes.clone())?;
    let leadership = if config.leader_elect {
        let seeking = campaign::start(program, contacts, known);
        let own = LeaseConfig {
            namespace: karmada_api::execution_namespace(&config.cluster),
            name: NAME,
            host: config.node.clone(),
            mode: seeking,
        };
        lease::campaign(program, client.clone(), own)
    } else {
        Leadership::always()
    };
    let writes = WriteMetrics::register(&mut program.registry);
    writes.announce("conditions");
    if let Some(client) = member.filter(|_| config.node_condition) {
        writes.announce("node_condition");
        let conditions = NodeConditions {
            client,
            node: config.node,
            votes,
            // Each agent writes its own Node only, so no lease is needed.
            writer: Writer::new(Leadership::always(), writes.clone()),
        };
        let task = conditions.run(program.stopping.clone());
        program.tasks.spawn("node-condition", task);
    }
    let report = Report {
        client,
        cluster: config.cluster,
        pace: config.pace,
        quorum: config.quorum,
        peers,
        metrics: VerdictMetrics::register(&mut program.registry),
        leadership: leadership.clone(),
        writer: Writer::new(leadership, writes),
        clock: program.clock,
    };
    program
        .tasks
        .spawn("report", report.run(program.stopping.clone()));
    Ok(())
}
