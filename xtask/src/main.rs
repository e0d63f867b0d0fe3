//! `cargo xtask …`: the developer's commands. CI runs the same ones.
#![expect(
    clippy::print_stdout,
    clippy::print_stderr,
    reason = "these commands speak to a person"
)]

use std::process::ExitCode;

use clap::{Parser, Subcommand};

use crate::bench::Bench;
use crate::fuzz::Fuzz;
use crate::scenario::Scenario;
use crate::simulate::Simulation;

mod bench;
mod cargo;
mod control_plane;
mod fuzz;
mod generate;
mod scenario;
mod screenshots;
mod simulate;
mod test;
mod tools;

/// The developer's commands.
#[derive(Debug, Parser)]
#[command(name = "cargo xtask", bin_name = "cargo xtask")]
struct Arguments {
    #[command(subcommand)]
    command: Command,
}

#[derive(Debug, Subcommand)]
enum Command {
    /// Write the files generated from the types, flags, metrics and Events: the CRDs, docs/reference, docs/man
    Generate {
        /// Write nothing; fail when a file differs
        #[arg(long)]
        check: bool,
    },
    /// Check and test everything
    Test,
    /// Search for failures with new random seeds
    Fuzz(Fuzz),
    /// Play a scenario on real parts, in a network namespace of its own, and print its timeline
    Scenario {
        #[command(subcommand)]
        scenario: Scenario,
    },
    /// Take the screenshots of the sandbox's page in docs/images, with Chromium
    Screenshots,
    /// Run our programs at a scale that no test has, and print figures
    Simulate {
        #[command(subcommand)]
        simulation: Simulation,
    },
    /// Measure what our programs cost, next to a limit from the same run
    Bench {
        #[command(subcommand)]
        bench: Bench,
    },
    /// Build the real parts that are missing and print their folder, alone on the last line
    Tools,
    /// Run a Kubernetes API with the Karmada CRDs until interrupted, and print its kubeconfig
    ControlPlane,
}

fn main() -> ExitCode {
    match run(&Arguments::parse().command) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("error: {error:#}");
            ExitCode::FAILURE
        }
    }
}

fn run(command: &Command) -> anyhow::Result<()> {
    match command {
        Command::Generate { check } => generate::run(*check),
        Command::Test => test::run(),
        Command::Fuzz(fuzz) => fuzz::run(fuzz),
        Command::Scenario { scenario } => scenario::run(scenario),
        Command::Screenshots => screenshots::run(),
        Command::Simulate { simulation } => simulate::run(simulation),
        Command::Bench { bench } => bench::run(bench),
        Command::Tools => tools::run(),
        Command::ControlPlane => control_plane::run(),
    }
}

/// Runs `work` to its end.
///
/// # Errors
/// Returns its error, or one for an interrupt.
fn until_interrupted(work: impl Future<Output = anyhow::Result<()>>) -> anyhow::Result<()> {
    tokio::runtime::Runtime::new()?.block_on(async {
        tokio::select! {
            biased;
            interrupted = tokio::signal::ctrl_c() => {
                interrupted?;
                anyhow::bail!("interrupted")
            }
            done = work => done,
        }
    })
}
