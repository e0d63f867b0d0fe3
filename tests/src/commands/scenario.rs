//! `scenario …`: plays a scenario on real parts and prints its timeline.

use clap::{Args, Subcommand, ValueEnum};
use lab_parts::thresholds::ProbeTiming;
use pipeline_tests::{
    control_plane::ApiKind,
    netns::{inside, isolated_command},
    outage::{self, DnsOutage},
    programs::{self, Profile},
};
use tools::Tool;

/// The scenarios.
#[derive(Debug, Subcommand)]
pub(crate) enum Scenario {
    /// DNS fails in a member cluster and its traffic moves elsewhere; DNS returns, and so does the traffic
    CorednsOutage(Outage),
}

/// The variants of an outage.
#[derive(Debug, Args)]
pub(crate) struct Outage {
    /// Fate of DNS queries
    #[arg(long, value_enum, default_value_t = Queries::Refused)]
    queries: Queries,
    /// Timing of the agent's probe and vote
    #[arg(long, value_enum, default_value_t = Timing::Short)]
    thresholds: Timing,
    /// Build our programs as clusters run them, for realistic memory figures; takes minutes
    #[arg(long)]
    dist: bool,
}

#[derive(Clone, Copy, Debug, ValueEnum)]
enum Queries {
    /// No server listens
    Refused,
    /// Queries are dropped on the way
    Dropped,
}

#[derive(Clone, Copy, Debug, ValueEnum)]
enum Timing {
    /// A round every 500 ms, a threshold of 3 s
    Short,
    /// The agent's defaults: a round every 5 s, a threshold of 30 s
    Default,
}

/// Plays a scenario.
pub(crate) fn run(scenario: &Scenario) -> anyhow::Result<()> {
    let Scenario::CorednsOutage(Outage {
        queries,
        thresholds,
        dist,
    }) = scenario;
    let profile = if *dist { Profile::Dist } else { Profile::Debug };
    let fault = match queries {
        Queries::Refused => DnsOutage::Refused,
        Queries::Dropped => DnsOutage::Dropped,
    };
    let thresholds = match thresholds {
        Timing::Short => ProbeTiming::SHORT,
        Timing::Default => ProbeTiming::DEFAULT,
    };
    if !inside() {
        tools::build(&Tool::ALL)?;
        programs::build(profile)?;
    }
    isolated_command(async || {
        let timeline = outage::play(ApiKind::Real, profile, fault, thresholds).await?;
        println!("{timeline}");
        timeline.check()
    })
}
