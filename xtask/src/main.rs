//! `cargo xtask …`: the developer's commands. CI runs the same ones.
//!
//! This program depends on nothing that it builds, so that it starts soon: [`mod@test`] has cargo build tests and runs them; [`lint`] checks the code;
//! [`build_times`] tells the cost of builds; [`tools`] builds the real parts; [`program`] has cargo build a program of the workspace, which
//! does the rest; [`provider_contract`] tries a program of somebody else's; [`installed`] are programs of others that cargo installs.
#![expect(
    clippy::print_stdout,
    clippy::print_stderr,
    reason = "these commands speak to a person"
)]

use std::ffi::OsString;
use std::path::PathBuf;

use anyhow::Result;
use clap::{Args, Parser, Subcommand};
use tools::{Tool, resolvers};

mod book;
mod build_times;
mod cargo;
mod deny;
mod image;
mod installed;
mod lint;
mod phase;
mod program;
mod provider_contract;
mod test;

use self::test::Selection;

/// The developer's commands.
#[derive(Debug, Parser)]
#[command(name = "cargo xtask", bin_name = "cargo xtask")]
struct Arguments {
    #[command(subcommand)]
    command: Command,
}

#[derive(Debug, Subcommand)]
enum Command {
    /// Run the tests
    Test(Selection),
    /// Check formatting, lints, documentation, and the licences of dependencies
    Lint,
    /// Build the sandbox and the agent anew, and write what their builds spend time on into a page
    BuildTimes,
    /// Build the real parts that are missing, and print the path of each
    Tools,
    /// Write the files generated from the types, flags, metrics and Events (the CRDs, docs/reference, docs/man), and the charts' copies
    Generate(Passed),
    /// Lint the Helm charts, try each of their values, compare them with the kustomizations, and have a kube-apiserver admit them
    Charts,
    /// Build the pages of docs/ as a site, and print the path of its first page
    Book,
    /// Build the images of programs, of all by default, with buildah and without the net, and print their sizes
    Image {
        /// The programs
        programs: Vec<String>,
    },
    /// Count what the code is made of: lines by kind, circles between modules, and more
    House {
        /// The folder of another version of it
        tree: Option<PathBuf>,
    },
    /// Look for known vulnerabilities of the dependencies, which needs the net
    Advisories,
    /// Search for failures with new random seeds
    Fuzz(Passed),
    /// Run our programs at a scale that no test has, or beside real parts (resolvers, scheduling), and print figures
    Simulate(Passed),
    /// Play a scenario on real parts, in a network namespace of its own, and print its timeline
    Scenario(Passed),
    /// Measure what our programs cost, next to a limit from the same run
    Bench(Passed),
    /// Hold the programs of a fleet up by faults for a long time, and check that nothing is stuck and nothing grows
    Soak(Passed),
    /// Hand a fleet over from an earlier version to this one and back, while templates are edited
    Upgrade(Passed),
    /// Try the contract of load balancers on a program that runs already: whether it keeps what `--provider webhook` needs
    ProviderContract(provider_contract::Provider),
    /// Take the screenshots of the sandbox's page in docs/images, with Chromium
    Screenshots(Passed),
    /// Run a Kubernetes API with the Karmada CRDs until interrupted, and print its kubeconfig
    ControlPlane(Passed),
}

/// The arguments of a command that another program reads, `--help` among them.
#[derive(Debug, Args)]
#[command(disable_help_flag = true)]
struct Passed {
    #[arg(trailing_var_arg = true, allow_hyphen_values = true, hide = true)]
    arguments: Vec<OsString>,
}

/// The tests of the charts.
const CHARTS: [&str; 8] = [
    "test",
    "--locked",
    "--package",
    "pipeline-tests",
    "--test",
    "pipeline",
    "--",
    "charts::",
];

fn main() -> Result<()> {
    match Arguments::parse().command {
        Command::Test(selection) => test::run(&selection),
        Command::Lint => lint::run(),
        Command::BuildTimes => build_times::run(),
        Command::Tools => build_tools(),
        Command::Generate(passed) => program::become_it("generate", &[], &[], &passed.arguments),
        Command::Charts => try_charts(),
        Command::Book => book::build(),
        Command::Image { programs } => image::build(&programs),
        Command::House { tree } => {
            let tree = tree.unwrap_or_else(tools::cargo::root);
            program::become_it("house", &[], &[], &[tree.into_os_string()])
        }
        Command::Advisories => deny::advisories(),
        Command::Fuzz(passed) => {
            program::become_it("simulation", &[], &["fuzz"], &passed.arguments)
        }
        Command::Simulate(passed) if is_beside_real_parts(&passed) => {
            on_real_parts("simulate", &passed)
        }
        Command::Simulate(passed) => {
            program::become_it("simulation", &[], &["simulate"], &passed.arguments)
        }
        Command::Scenario(passed) => on_real_parts("scenario", &passed),
        Command::Bench(passed) => on_real_parts("bench", &passed),
        Command::Soak(passed) => on_real_parts("soak", &passed),
        Command::Upgrade(passed) => on_real_parts("upgrade", &passed),
        Command::ProviderContract(provider) => provider_contract::run(&provider),
        Command::Screenshots(passed) => program::become_it(
            "pipeline-tests",
            &test::BROWSER,
            &["screenshots"],
            &passed.arguments,
        ),
        Command::ControlPlane(passed) => on_real_parts("control-plane", &passed),
    }
}

fn try_charts() -> Result<()> {
    tools::build(&[
        Tool::KubeApiserver,
        Tool::Etcd,
        Tool::Kubectl,
        Tool::Helm,
        Tool::Helm4,
    ])?;
    cargo::run(&CHARTS, &[])
}

/// Returns `true` for a simulation that runs where the real parts are.
fn is_beside_real_parts(passed: &Passed) -> bool {
    let simulation = passed.arguments.first();
    simulation.is_some_and(|name| ["resolvers", "scheduling"].iter().any(|one| name == *one))
}

fn on_real_parts(command: &str, passed: &Passed) -> Result<()> {
    program::become_it("pipeline-tests", &[], &[command], &passed.arguments)
}

fn build_tools() -> Result<()> {
    tools::build(&Tool::ALL)?;
    if let Err(why) = resolvers::build() {
        // Only a long test needs them.
        eprintln!("{why:#}");
    }
    for tool in Tool::ALL {
        println!("{}", tool.path()?.display());
    }
    Ok(())
}
