//! The sandbox's flags.

use clap::ValueEnum;
use karmada_runtime::args::log_levels;
use lab_parts::thresholds::ProbeTiming;
use tracing_subscriber::filter::Targets;

use crate::scenario::Scenario;

/// Shows karmada-rs at work on this machine, with nothing installed: three member clusters, their DNS, traffic, and faults to inject.
#[derive(clap::Parser, Debug)]
#[command(name = "sandbox", version)]
pub(crate) struct Args {
    /// Port of the page on 127.0.0.1; a free one by default.
    #[arg(long, default_value_t = 0, hide_default_value = true)]
    pub(crate) port: u16,
    /// Time for which DNS must fail, or resolve again, until traffic follows.
    #[arg(long, value_enum, default_value_t = Timing::Short)]
    pub(crate) thresholds: Timing,
    /// Play this scenario and exit: with code 0 only if everything happened as expected.
    #[arg(long, value_enum)]
    pub(crate) scenario: Option<Scenario>,
    /// Least severe log level, for all modules or for each: `info`, `warn,cluster_health_agent=info`.
    #[arg(long, default_value = "error", value_name = "LEVEL", value_parser = log_levels)]
    pub(crate) log_level: Targets,
}

/// The agents' timing.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum Timing {
    /// A round every 500 ms, thresholds of 3 s
    Short,
    /// The agent's own defaults: a round every 5 s, thresholds of 30 s
    Default,
}

impl Timing {
    /// Returns the agents' thresholds.
    pub(crate) fn thresholds(self) -> ProbeTiming {
        match self {
            Self::Short => ProbeTiming::SHORT,
            Self::Default => ProbeTiming::DEFAULT,
        }
    }
}

#[cfg(test)]
mod tests {
    use clap::CommandFactory;

    use super::*;

    #[test]
    fn the_flags_are_well_formed() {
        Args::command().debug_assert();
    }
}
