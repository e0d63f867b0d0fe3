//! `simulate …`: runs our programs at a scale that no test has, and prints figures.

use std::path::PathBuf;
use std::time::Duration;

use clap::{Args, Subcommand};
use lab_parts::interrupt::until_interrupted;
use simulation::agents;
use simulation::convergence::Convergence;
use simulation::harness::{self, Property, random_seed, search, sequence_of};
use simulation::placement::Placement;
use simulation::propagation::{Lazy, Propagation};
use tools::cargo::{DIST, build_dist, built};

/// The simulations.
#[derive(Debug, Subcommand)]
pub(crate) enum Simulation {
    /// All agents of a cluster: the speed of the verdict, and its cost
    Agents(Agents),
    /// Both controllers through random histories of objects, programs and APIs, in virtual time
    Convergence(Sequences),
    /// Propagation through random histories of users, members, programs and APIs, in virtual time
    Propagation(Sequences),
    /// The same through many short histories of Lazy policies
    Lazy(Sequences),
    /// KubeFleet's placements through random histories of users, members, programs and APIs, in virtual time
    Placement(Sequences),
}

/// The sequences to run.
#[derive(Debug, Args)]
pub(crate) struct Sequences {
    /// Seed of the first sequence; random by default
    #[arg(long)]
    seed: Option<u64>,
    /// Number of sequences; a single one is printed with every request and response
    #[arg(long, default_value_t = 1_000, value_parser = clap::value_parser!(u64).range(1..))]
    sequences: u64,
}

/// The cluster to simulate.
#[derive(Debug, Args)]
pub(crate) struct Agents {
    /// Number of nodes in the cluster
    #[arg(long, default_value_t = 1000, value_parser = clap::value_parser!(u16).range(2..=20_000))]
    nodes: u16,
    /// Probe period, in seconds
    #[arg(long, default_value_t = 5, value_parser = clap::value_parser!(u64).range(1..=3600))]
    period: u64,
    /// Time for which DNS must fail, or work again, until a node changes its vote, in seconds
    #[arg(long, default_value_t = 30, value_parser = clap::value_parser!(u64).range(1..=3600))]
    threshold: u64,
    /// Time to watch the cluster at rest, in seconds
    #[arg(long, default_value_t = 60, value_parser = clap::value_parser!(u64).range(1..=3600))]
    rest: u64,
    /// Binary of the leading agent; by default a build of this checkout
    #[arg(long, value_name = "PATH")]
    agent: Option<PathBuf>,
}

/// Runs a simulation.
pub(crate) fn run(simulation: &Simulation) -> anyhow::Result<()> {
    match simulation {
        Simulation::Agents(agents) => run_agents(agents),
        Simulation::Convergence(sequences) => run_sequences::<Convergence>(sequences),
        Simulation::Propagation(sequences) => run_sequences::<Propagation>(sequences),
        Simulation::Lazy(sequences) => run_sequences::<Lazy>(sequences),
        Simulation::Placement(sequences) => run_sequences::<Placement>(sequences),
    }
}

/// Runs the sequences of a property. A single one is printed.
fn run_sequences<P: Property>(Sequences { seed, sequences }: &Sequences) -> anyhow::Result<()> {
    let seed = seed.unwrap_or_else(random_seed);
    if *sequences == 1 {
        let steps = sequence_of::<P>(seed);
        for step in &steps {
            println!("{step:?}");
        }
        println!("{}", harness::run::<P>(&steps, seed).log());
    }
    let threads = std::thread::available_parallelism()?.get();
    let seeds = (0..*sequences).map(|nth| seed.wrapping_add(nth));
    match search::<P>(seeds, threads) {
        Ok(summary) => println!("from seed {seed}\n{summary}"),
        Err(found) => anyhow::bail!("{found}"),
    }
    Ok(())
}

fn run_agents(agents: &Agents) -> anyhow::Result<()> {
    let binary = match &agents.agent {
        Some(path) => path.clone(),
        None => build()?,
    };
    let options = agents::Options {
        nodes: agents.nodes,
        period: Duration::from_secs(agents.period),
        threshold: Duration::from_secs(agents.threshold),
        rest: Duration::from_secs(agents.rest),
        binary,
    };
    let running = until_interrupted(agents::run(&options, |line| println!("{line}")));
    tokio::runtime::Runtime::new()?.block_on(running)?
}

fn build() -> anyhow::Result<PathBuf> {
    println!("building the agent as clusters run it");
    build_dist(&[cluster_health_agent::NAME])?;
    Ok(built(DIST)?.join(cluster_health_agent::NAME))
}
