//! `bench …`: measures what our programs cost, next to a limit from the same run.

use std::path::PathBuf;
use std::time::Duration;

use clap::{Args, Subcommand};
use lab_parts::interrupt::until_interrupted;
use pipeline_tests::bench::placement::{Part, PlacementBench};
use pipeline_tests::bench::propagation::PropagationBench;
use pipeline_tests::bench::{agent, ingresses, placement, propagation, remedies};
use pipeline_tests::netns::{COMMAND_LIMIT, inside, isolated_command};
use pipeline_tests::programs::{self, Binary, Profile, path};
use tools::Tool;
use tools::cargo::build_dist;

/// The benchmarks.
#[derive(Debug, Subcommand)]
pub(crate) enum Bench {
    /// One agent at rest, and one that leads 10 to 1,000 nodes
    Agent(Agent),
    /// The remedy controller in a large fleet, on a real API server in a network namespace of its own
    Remedies {
        /// The number of clusters
        #[arg(long, default_value_t = 1_000, value_parser = clap::value_parser!(u16).range(1..=20_000))]
        clusters: u16,
        /// The number of Remedies, each of which is about the DNS of ten clusters, beside the measured ones
        #[arg(long, default_value_t = 0)]
        remedies: u16,
    },
    /// The ingress controller with many ingresses, when a cluster of some of them is blocked and admitted again, likewise
    Ingresses {
        /// The number of ingresses, each with a Service of its own in three of the clusters
        #[arg(long, alias = "ingresses", default_value_t = 1_000, value_parser = clap::value_parser!(u16).range(2..=20_000))]
        mcis: u16,
        /// The number of clusters, over which the ingresses are spread evenly
        #[arg(long, default_value_t = 2, value_parser = clap::value_parser!(u16).range(2..=1_000))]
        clusters: u16,
    },
    /// The three programs that propagate, from templates to members with embedded APIs
    Propagation {
        /// The number of templates, each with a policy of its own
        #[arg(long, default_value_t = 300, value_parser = clap::value_parser!(u16).range(1..=20_000))]
        templates: u16,
        /// The number of templates of one Lazy policy
        #[arg(long, default_value_t = 300, value_parser = clap::value_parser!(u16).range(1..=20_000))]
        lazy_templates: u16,
        /// The number of members
        #[arg(long, default_value_t = 3, value_parser = clap::value_parser!(u8).range(2..=100))]
        clusters: u8,
        /// Measure a customization of the templates' kind, with what the programs know of it by themselves as the limit
        #[arg(long)]
        interpreted: bool,
    },
    /// Both programs that place: many clusters on a hub, and three real members
    Placement {
        /// The part that is measured; may be repeated
        #[arg(long = "part", value_enum, default_values_t = Part::ALL, value_name = "PART")]
        parts: Vec<Part>,
        /// The number of placements
        #[arg(long, default_value_t = 100, value_parser = clap::value_parser!(u16).range(1..=1_000))]
        placements: u16,
        /// The number of clusters, whose agents are scripted
        #[arg(long, default_value_t = 100, value_parser = clap::value_parser!(u16).range(1..=1_000))]
        clusters: u16,
        /// The number of overrides of each placement with which it is measured once more; each changes a map of its own, so that there are as many of these
        #[arg(long, default_value_t = 0, value_parser = clap::value_parser!(u16).range(0..=100))]
        overrides: u16,
        /// The number of rounds on the hub
        #[arg(long, default_value_t = 3, value_parser = clap::value_parser!(u8).range(1..=9))]
        rounds: u8,
    },
}

/// The extent of the agent's benchmark.
#[derive(Debug, Args)]
pub(crate) struct Agent {
    /// Time over which each figure is taken, in seconds
    #[arg(long, default_value_t = 30, value_parser = clap::value_parser!(u64).range(5..=3600))]
    window: u64,
    /// Numbers of nodes to measure a leader with
    #[arg(long, value_delimiter = ',', default_value = "10,100,300,1000", value_parser = clap::value_parser!(u16).range(2..=20_000))]
    nodes: Vec<u16>,
}

/// The package of the program against which the agent's memory is measured.
const BASELINE: &str = "agent-baseline";

/// Runs a benchmark.
pub(crate) fn run(bench: &Bench) -> anyhow::Result<()> {
    match bench {
        Bench::Agent(arguments) => measure_agent(arguments),
        Bench::Remedies { clusters, remedies } => {
            let build = programs::build_controllers;
            in_a_fleet(build, async || {
                remedies::bench(*clusters, *remedies, print).await
            })
        }
        Bench::Ingresses { mcis, clusters } => {
            let build = programs::build_controllers;
            in_a_fleet(build, async || {
                ingresses::bench(*mcis, *clusters, print).await
            })
        }
        Bench::Propagation {
            templates,
            lazy_templates,
            clusters,
            interpreted,
        } => {
            let extent = PropagationBench {
                templates: *templates,
                lazy_templates: *lazy_templates,
                clusters: *clusters,
                interpreted: *interpreted,
            };
            in_a_fleet(programs::build_propagation, async || {
                propagation::bench(extent, print).await
            })
        }
        Bench::Placement {
            parts,
            placements,
            clusters,
            overrides,
            rounds,
        } => {
            let extent = PlacementBench {
                placements: *placements,
                clusters: *clusters,
                overrides: *overrides,
                rounds: *rounds,
            };
            in_a_fleet(programs::build_placement, async || {
                placement::bench(parts, extent, print).await
            })
        }
    }
}

fn print(line: &str) {
    println!("{line}");
}

/// Runs a benchmark on real parts, and `build` before.
fn in_a_fleet(
    build: fn() -> anyhow::Result<()>,
    bench: impl AsyncFnOnce() -> anyhow::Result<()>,
) -> anyhow::Result<()> {
    if !inside() {
        if cfg!(debug_assertions) {
            println!(
                "this build is not optimised, which raises the limit of the bare client by about a fifth; for exact figures use: cargo run --release --package pipeline-tests -- bench …"
            );
        }
        tools::build(&Tool::CONTROL_PLANE)?;
        build()?;
    }
    isolated_command(COMMAND_LIMIT, bench)
}

fn measure_agent(arguments: &Agent) -> anyhow::Result<()> {
    let (binary, limit) = build()?;
    let bench = agent::AgentBench {
        agent: binary,
        limit,
        window: Duration::from_secs(arguments.window),
        nodes: arguments.nodes.clone(),
    };
    let benching = until_interrupted(agent::bench(&bench, print));
    tokio::runtime::Runtime::new()?.block_on(benching)?
}

/// Builds the agent and its limit as clusters run them.
fn build() -> anyhow::Result<(PathBuf, PathBuf)> {
    println!("building the agent and its baseline as clusters run them: this takes minutes");
    build_dist(&[Binary::Agent.name(), BASELINE])?;
    let agent = path(Binary::Agent, Profile::Dist)?;
    let limit = agent.with_file_name(BASELINE);
    Ok((agent, limit))
}
