//! `simulate …`: runs our programs beside real parts through random worlds.

use clap::{Args, Subcommand};
use pipeline_tests::netns::{COMMAND_LIMIT, inside, isolated_command};
use pipeline_tests::programs;
use pipeline_tests::resolvers::{self, World};
use pipeline_tests::scheduling;
use tools::Tool;

/// The simulations.
#[derive(Debug, Subcommand)]
pub(crate) enum Simulation {
    /// The agent's verdict beside real lookups with glibc, musl and Go, in random DNS worlds
    Resolvers(Worlds),
    /// The scheduler's decisions beside those of Karmada's own scheduler, in random fleets
    Scheduling(Decisions),
}

/// The worlds to run.
#[derive(Debug, Args)]
pub(crate) struct Worlds {
    /// Seed of the first world; random by default
    #[arg(long)]
    seed: Option<u64>,
    /// Number of worlds
    #[arg(long = "worlds", default_value_t = 1_000, value_parser = clap::value_parser!(u64).range(1..))]
    number: u64,
    /// Number of worlds at a time
    #[arg(long, default_value_t = 24, value_parser = clap::value_parser!(u16).range(1..))]
    at_once: u16,
    /// Run the first world alone, in this process
    #[arg(long, hide = true)]
    alone: bool,
}

/// The decisions to make.
#[derive(Debug, Args)]
pub(crate) struct Decisions {
    /// Seed of the first binding, about which three are made; random by default
    #[arg(long)]
    seed: Option<u64>,
    /// Number of decisions
    #[arg(long = "decisions", default_value_t = 3_000, value_parser = clap::value_parser!(u64).range(1..))]
    number: u64,
}

/// Runs a simulation.
pub(crate) fn run(simulation: &Simulation) -> anyhow::Result<()> {
    match simulation {
        Simulation::Resolvers(worlds) => run_worlds(worlds),
        Simulation::Scheduling(decisions) => make(decisions),
    }
}

fn make(decisions: &Decisions) -> anyhow::Result<()> {
    tools::build(&[Tool::KarmadaScheduler])?;
    let seed = decisions.seed.unwrap_or_else(|| fastrand::u64(..));
    let table = scheduling::compare(seed, decisions.number)?;
    println!("from seed {seed}\n{table}");
    table.check()
}

fn run_worlds(worlds: &Worlds) -> anyhow::Result<()> {
    let seed = worlds.seed.unwrap_or_else(|| fastrand::u64(..));
    if worlds.alone {
        return isolated_command(COMMAND_LIMIT, async || {
            let outcome = resolvers::play(&World::draw(seed)).await?;
            println!("{}", serde_json::to_string(&outcome)?);
            Ok(())
        });
    }
    if !inside() {
        tools::resolvers::build()?;
        programs::build_for_tests()?;
    }
    let program = std::env::current_exe()?;
    let seeds = (0..worlds.number).map(|nth| seed.wrapping_add(nth));
    let table = resolvers::compare(&program, seeds, worlds.at_once.into())?;
    println!("from seed {seed}\n{table}");
    table.check()
}
