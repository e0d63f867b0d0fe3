//! `cluster-health-agent`: asks the cluster's DNS real questions, and reports to the Karmada control
//! plane whether they are answered. Data flows one way: probe → vote → report.

mod args;
mod campaign;
mod metrics;
mod node_condition;
mod peers;
mod probe;
mod report;
mod vote;

use karmada_rules::health::threshold::{Threshold, Thresholds, Vote};
use karmada_runtime::client;
use karmada_runtime::lease::{self, Leadership, LeaseConfig};
use karmada_runtime::metrics::WriteMetrics;
use karmada_runtime::program::{Program, StartError};
use karmada_runtime::write::Writer;
use kube::Client;
use tokio::sync::{mpsc, watch};

pub use crate::args::Args;
use crate::args::Config;
use crate::metrics::{ProbeMetrics, VerdictMetrics, VoteMetrics};
use crate::node_condition::NodeConditions;
use crate::peers::Own;
use crate::probe::{Past, Probe};
use crate::report::Report;

/// The program's name: its user agent, its lease, and the prefix of its metrics.
pub const NAME: &str = "cluster-health-agent";

/// Connects, and gives `program` its tasks.
///
/// # Errors
/// When the flags do not fit together, or a file they name cannot be used.
pub async fn start(args: Args, program: &mut Program) -> Result<(), StartError> {
    let config = Config::try_from(args)?;
    let client = client::connect(&config.source, NAME).await?;
    let member = match &config.member {
        Some(member) if config.asks_member() => Some(member.connect().await?),
        _ => None,
    };
    run(config, client, member, program)
}

/// Gives `program` its tasks, with connections to the Karmada API and to that of the member cluster in
/// place of those that the flags name.
///
/// # Errors
/// When the flags do not fit together.
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

    let dns = (config.probe, config.past, member.clone());
    let votes = start_vote(program, dns, config.thresholds)?;
    let own = Own {
        cluster: config.cluster.clone(),
        node: config.node.clone(),
        port: config.listen_address.port(),
    };
    let others = (config.others, member.clone());
    let peers::Started {
        peers,
        asked,
        known,
    } = peers::start(program, own, others, config.pace.period, votes.clone())?;
    let leadership = if config.leader_elect {
        let seeking = campaign::start(program, asked, known);
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

/// Asks DNS, and makes this node's vote of the answers.
fn start_vote(
    program: &mut Program,
    (probe, past, member): (Probe, Past, Option<Client>),
    thresholds: Thresholds,
) -> Result<watch::Receiver<Option<Vote>>, StartError> {
    let (finished, rounds) = mpsc::channel(1);
    let (changed, votes) = watch::channel(None);
    let first_round = program.readiness.gate("probe");
    let behind = probe::behind(program, past, member)?;
    let probe = probe.run(
        behind,
        finished,
        ProbeMetrics::register(&mut program.registry),
        move || first_round.open(),
        program.stopping.clone(),
    );
    let vote = vote::run(
        Threshold::new(thresholds),
        rounds,
        changed,
        VoteMetrics::register(&mut program.registry),
        program.stopping.clone(),
    );
    program.tasks.spawn("probe", probe);
    program.tasks.spawn("vote", vote);
    Ok(votes)
}
