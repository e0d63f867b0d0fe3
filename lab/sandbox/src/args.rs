//! The sandbox's flags.

use karmada_runtime::args::log_levels;
use tracing_subscriber::filter::Targets;

use crate::scenario::Scenario;
use crate::thresholds::Thresholds;

/// Shows karmada-rs at work on this machine, with nothing installed: three member clusters, their DNS, traffic, and everything to break.
#[derive(clap::Parser, Debug)]
#[command(name = "sandbox", version)]
pub(crate) struct Args {
    /// Port of the page, on 127.0.0.1; without it a free one.
    #[arg(long, default_value_t = 0, hide_default_value = true)]
    pub(crate) port: u16,
    /// How long DNS must fail, or work again, until traffic follows.
    #[arg(long, value_enum, default_value_t = Thresholds::Short)]
    pub(crate) thresholds: Thresholds,
    /// Play this story and end: with code 0 only if it happened as promised.
    #[arg(long, value_enum)]
    pub(crate) scenario: Option<Scenario>,
    /// Least severe log level shown, alone or for each module: `info`, `warn,cluster_health_agent=info`.
    #[arg(long, default_value = "error", value_name = "LEVEL", value_parser = log_levels)]
    pub(crate) log_level: Targets,
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
