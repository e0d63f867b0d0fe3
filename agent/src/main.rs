//! `cluster-health-agent`: asks the cluster's DNS real questions, and reports to the Karmada control
//! plane whether they are answered. Data flows one way: probe → vote → report.

mod args;
mod metrics;
mod probe;
mod report;
mod vote;

use std::process::ExitCode;

use rules::threshold::Threshold;
use runtime::client;
use runtime::lease::{self, Campaign, Leadership};
use runtime::metrics::WriteMetrics;
use runtime::program::{self, Program, StartError};
use runtime::write::Writer;
use tokio::sync::{mpsc, watch};

use crate::args::{Args, Config};
use crate::metrics::{ProbeMetrics, VoteMetrics};
use crate::report::Report;

/// The program's name: its user agent, its lease, and the prefix of its metrics.
const NAME: &str = "cluster-health-agent";

fn main() -> ExitCode {
    program::run(NAME, start)
}

async fn start(args: Args, program: &mut Program) -> Result<(), StartError> {
    let config = Config::try_from(args)?;
    let client = client::connect(&config.source, NAME).await?;
    for flag in config.ignored {
        tracing::warn!(
            flag,
            "Flag of Karmada's detector that means nothing here, ignored"
        );
    }
    program.listen_address = config.listen_address;
    let leadership = if config.leader_elect {
        let campaign = Campaign {
            namespace: api::execution_namespace(&config.cluster),
            name: NAME,
            host: config.node.clone(),
        };
        lease::campaign(program, client.clone(), campaign)
    } else {
        Leadership::always()
    };

    let (finished, rounds) = mpsc::channel(1);
    let (changed, votes) = watch::channel(None);
    let first_round = program.readiness.gate("probe");
    let probe = config.probe.run(
        finished,
        ProbeMetrics::register(&mut program.registry),
        move || first_round.open(),
        program.stopping.clone(),
    );
    let vote = vote::run(
        Threshold::new(config.thresholds),
        rounds,
        changed,
        VoteMetrics::register(&mut program.registry),
        program.stopping.clone(),
    );
    let report = Report {
        client,
        cluster: config.cluster,
        node: config.node,
        pace: config.pace,
        votes,
        leadership: leadership.clone(),
        writer: Writer::new(leadership, WriteMetrics::register(&mut program.registry)),
    };
    program.tasks.spawn("probe", probe);
    program.tasks.spawn("vote", vote);
    program
        .tasks
        .spawn("report", report.run(program.stopping.clone()));
    Ok(())
}
