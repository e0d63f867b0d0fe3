//! The commands of `cargo xtask` that simulate.
#![expect(clippy::print_stdout, reason = "these commands speak to a person")]

use clap::{Parser, Subcommand};

use crate::commands::fuzz::{self, Fuzz};
use crate::commands::simulate::{self, Simulation};

mod commands;

/// The simulations.
#[derive(Debug, Parser)]
#[command(name = "cargo xtask", bin_name = "cargo xtask")]
struct Arguments {
    #[command(subcommand)]
    command: Command,
}

#[derive(Debug, Subcommand)]
enum Command {
    /// Search for failures with new random seeds
    Fuzz(Fuzz),
    /// Run our programs at a scale that no test has, and print figures
    Simulate {
        #[command(subcommand)]
        simulation: Simulation,
    },
}

fn main() -> anyhow::Result<()> {
    match &Arguments::parse().command {
        Command::Fuzz(fuzz) => fuzz::run(fuzz),
        Command::Simulate { simulation } => simulate::run(simulation),
    }
}
