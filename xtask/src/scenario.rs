//! `cargo xtask scenario …`: plays a story on real parts and prints its timeline.

use clap::{Args, Subcommand, ValueEnum};
use lab_parts::thresholds::ProbeTiming;
use pipeline_tests::{
    control_plane::ApiKind,
    netns::{inside, isolated_command},
    outage::{self, DnsOutage},
    programs::{self, Profile},
    tools::{self, Tool},
};

/// The stories.
#[derive(Debug, Subcommand)]
pub(crate) enum Scenario {
    /// DNS dies in a member cluster, its traffic goes elsewhere; DNS returns, and so does the traffic
    CorednsOutage(Outage),
}

/// How to play it.
#[derive(Debug, Args)]
pub(crate) struct Outage {
    /// What becomes of DNS queries
    #[arg(long, value_enum, default_value_t = Queries::Refused)]
    queries: Queries,
    /// How long DNS must fail until the verdict changes
    #[arg(long, value_enum, default_value_t = Timing::Short)]
    thresholds: Timing,
    /// Build our programs as clusters run them; takes minutes, and their memory is theirs
    #[arg(long)]
    dist: bool,
}

#[derive(Clone, Copy, Debug, ValueEnum)]
enum Queries {
    /// Nobody listens
    Refused,
    /// They are lost on the way
    Dropped,
}

#[derive(Clone, Copy, Debug, ValueEnum)]
enum Timing {
    /// A round every 500 ms, a threshold of 3 s
    Short,
    /// The agent's defaults: a round every 5 s, a threshold of 30 s
    Default,
}

/// Plays a story.
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
