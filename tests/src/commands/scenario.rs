//! `scenario …`: plays a scenario on real parts and prints its timeline.

use clap::{Args, Subcommand, ValueEnum};
use lab_parts::thresholds::ProbeTiming;
use pipeline_tests::{
    control_plane::ApiKind,
    netns::{COMMAND_LIMIT, inside, isolated_command},
    outage::{self, DnsOutage, Home},
    programs::{self, Profile},
    service_outage,
};
use tools::Tool;

/// The scenarios.
#[derive(Debug, Subcommand)]
pub(crate) enum Scenario {
    /// DNS fails in a member cluster and its traffic moves elsewhere; DNS returns, and so does the traffic
    CorednsOutage(Outage),
    /// The Service network fails on one node of a member cluster, then on most, and its traffic moves elsewhere
    ServiceNetwork,
}

/// The variants of an outage.
#[derive(Debug, Args)]
pub(crate) struct Outage {
    /// Who brings workloads to the members, and their endpoints back
    #[arg(long, value_enum, default_value_t = By::Karmada)]
    by: By,
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
enum By {
    /// A Karmada, for which the objects that it makes stand
    Karmada,
    /// Our own programs, in a fleet without Karmada
    Us,
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
    match scenario {
        Scenario::CorednsOutage(outage) => outage.play(),
        Scenario::ServiceNetwork => on_real_parts(Profile::Debug, async || {
            let timeline = service_outage::play(ApiKind::Real).await?;
            println!("{timeline}");
            timeline.check()
        }),
    }
}

impl Outage {
    fn play(&self) -> anyhow::Result<()> {
        let profile = if self.dist {
            Profile::Dist
        } else {
            Profile::Debug
        };
        let home = match self.by {
            By::Karmada => Home::Karmada,
            By::Us => Home::Own,
        };
        let fault = match self.queries {
            Queries::Refused => DnsOutage::Refused,
            Queries::Dropped => DnsOutage::Dropped,
        };
        let thresholds = match self.thresholds {
            Timing::Short => ProbeTiming::SHORT,
            Timing::Default => ProbeTiming::DEFAULT,
        };
        on_real_parts(profile, async || {
            let timeline = outage::play(ApiKind::Real, profile, home, fault, thresholds).await?;
            println!("{timeline}");
            timeline.check()
        })
    }
}

/// Plays in a network namespace of its own, with the real parts and our programs built.
fn on_real_parts(
    profile: Profile,
    play: impl AsyncFnOnce() -> anyhow::Result<()>,
) -> anyhow::Result<()> {
    if !inside() {
        tools::build(&Tool::CONTROL_PLANE)?;
        tools::build(&[Tool::CoreDns, Tool::Traefik])?;
        programs::build(profile)?;
    }
    isolated_command(COMMAND_LIMIT, play)
}
