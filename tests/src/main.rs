//! The commands of `cargo xtask` that start real parts or a browser.
#![expect(
    clippy::print_stdout,
    clippy::print_stderr,
    reason = "these commands speak to a person"
)]

use clap::{Parser, Subcommand};

use crate::commands::bench::Bench;
use crate::commands::scenario::Scenario;
#[cfg(feature = "browser")]
use crate::commands::screenshots;
use crate::commands::simulate::Simulation;
use crate::commands::{bench, control_plane, scenario, simulate, soak, upgrade};

mod commands;

/// The commands on real parts.
#[derive(Debug, Parser)]
#[command(name = "cargo xtask", bin_name = "cargo xtask")]
struct Arguments {
    #[command(subcommand)]
    command: Command,
}

#[derive(Debug, Subcommand)]
enum Command {
    /// Play a scenario on real parts, in a network namespace of its own, and print its timeline
    Scenario {
        #[command(subcommand)]
        scenario: Scenario,
    },
    /// Run our programs beside real parts through random worlds, and print where they differ
    Simulate {
        #[command(subcommand)]
        simulation: Simulation,
    },
    #[cfg(feature = "browser")]
    /// Take the screenshots of the sandbox's page in docs/images, with Chromium
    Screenshots,
    /// Measure what our programs cost, next to a limit from the same run
    Bench {
        #[command(subcommand)]
        bench: Bench,
    },
    /// Hold the programs of a fleet up by faults for a long time, and check that nothing is stuck and nothing grows
    Soak(soak::Extent),
    /// Hand a fleet over from an earlier version to this one and back, while templates are edited
    Upgrade(upgrade::Earlier),
    /// Run a Kubernetes API with the Karmada CRDs until interrupted, and print its kubeconfig
    ControlPlane,
}

fn main() -> anyhow::Result<()> {
    match &Arguments::parse().command {
        Command::Scenario { scenario } => scenario::run(scenario),
        Command::Simulate { simulation } => simulate::run(simulation),
        #[cfg(feature = "browser")]
        Command::Screenshots => screenshots::run(),
        Command::Bench { bench } => bench::run(bench),
        Command::Soak(extent) => soak::run(extent),
        Command::Upgrade(earlier) => upgrade::run(earlier),
        Command::ControlPlane => control_plane::run(),
    }
}
