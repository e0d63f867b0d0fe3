//! `kubectl-remedy`, which kubectl runs as `kubectl remedy`: shows which clusters of a fleet are blocked
//! and why, tells what a Remedy would do, blocks and unblocks clusters, empties one for a while, practises that, prints the
//! rights to propagate a kind, and tells what interpreters say of an object. It installs the agents of clusters, and lets clusters join a fleet without
//! Karmada: `membership`. Of a fleet's placements it says where they stand, approves stages, and evicts.
//!
//! Each command about Remedies reads the fleet once, decides by the rules as the controllers do, and prints. `send` sends the
//! writes of commands.

mod address;
mod age;
mod answer;
mod approve;
mod args;
mod block;
mod change;
mod check;
mod clusters;
mod completion;
mod credentials;
mod drain;
mod error;
mod evict;
#[cfg(test)]
mod fixtures;
mod fleet;
mod identity;
mod interpret;
mod lease;
mod lists;
mod manifest;
mod membership;
mod namespace;
mod placement;
mod plan;
mod practice;
mod propagation;
mod requests;
mod rights;
mod secret;
mod send;
mod status;
mod table;
mod terminal;
mod token;
mod unblock;
mod waiting;
mod why;
mod writer;

use std::process::ExitCode;

use clap::Parser;
use jiff::Timestamp;
use karmada_runtime::client::connect;
use karmada_runtime::program::{print_clap_output, unprinted};
use kube::Client;

use crate::answer::Answer;
pub use crate::args::{Args, ControllerArgs};
use crate::args::{Command, FleetCommand, WhyArgs};
pub use crate::change::{Change, ChangeKind};
pub use crate::error::Error;
pub use crate::fleet::FleetSnapshot;
pub use crate::identity::NAME;
pub use crate::plan::{ClusterChange, Plan};
use crate::propagation::Named;

/// Runs the program from its flags to its exit code: 0, 1 for bad news, 2 for an error, which an output that cannot be
/// written is, too.
pub fn run() -> ExitCode {
    let args = match Args::try_parse() {
        Ok(args) => args,
        Err(output) => return print_clap_output(&output),
    };
    // The only error is that a provider is already installed.
    drop(rustls::crypto::ring::default_provider().install_default());
    let answer = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .map_err(Error::Runtime)
        .and_then(|runtime| runtime.block_on(execute(args)));
    if let (Ok(_), Some(error)) = (&answer, terminal::unprinted()) {
        return unprinted(error);
    }
    match answer {
        Ok(Answer::Yes) => ExitCode::SUCCESS,
        Ok(Answer::No) => ExitCode::FAILURE,
        Err(error) => {
            terminal::print_error(&format!("error: {error}"));
            ExitCode::from(2)
        }
    }
}

/// Executes a command, which prints its answer, and returns `true` where the program's exit code would be 0.
///
/// # Errors
/// Fails with a message of one line for the user where it would be 2.
pub async fn perform(args: Args) -> Result<bool, Error> {
    Ok(execute(args).await? == Answer::Yes)
}

/// Explains a placement, an object that is propagated, or a cluster.
async fn explain(
    args: &WhyArgs,
    client: &Client,
    namespace: Option<&str>,
    now: Timestamp,
) -> Result<Answer, Error> {
    let own = namespace.unwrap_or_else(|| client.default_namespace());
    if let Some((scope, name)) = placement::named(&args.subject) {
        let key = placement::key(scope, own, name);
        return placement::run(&key, args.output, client).await;
    }
    match Named::parse(&args.subject)? {
        Some(named) if !named.is_cluster() => {
            propagation::run(&named, args, client, own, now).await
        }
        Some(named) => why::run(named.name, args, client, namespace, now).await,
        None => why::run(&args.subject, args, client, namespace, now).await,
    }
}

async fn execute(args: Args) -> Result<Answer, Error> {
    let command = match args.command {
        Command::Complete(args) => return Ok(completion::run(&args.words).await),
        Command::Rights(args) => return rights::run(&args),
        Command::Interpret(question) => {
            return interpret::run(&question, &args.connection).await;
        }
        Command::Fleet(FleetCommand::Renew(renewal)) if renewal.only_programs => {
            let source = args.connection.source();
            return credentials::renew(&renewal, &source, Timestamp::now()).await;
        }
        Command::Fleet(command) => command,
    };
    let source = args.connection.source();
    let client = connect(&source, NAME).await?;
    let namespace = args.connection.namespace.as_deref();
    let now = Timestamp::now();
    match command {
        FleetCommand::Status(args) => status::run(&args, &client, namespace, now).await,
        FleetCommand::Why(args) => explain(&args, &client, namespace, now).await,
        FleetCommand::Plan(args) => plan::run(&args, &client, namespace, now).await,
        FleetCommand::Block(args) => block::run(&args, &client, namespace, now).await,
        FleetCommand::Unblock(args) => unblock::run(&args, &client, now).await,
        FleetCommand::Drain(args) => drain::run(&args, &client, now).await,
        FleetCommand::Uncordon(args) => drain::uncordon(&args, &client).await,
        FleetCommand::Practice(args) => practice::run(&args, &client, now).await,
        FleetCommand::Approve(args) => {
            let own = namespace.unwrap_or_else(|| client.default_namespace());
            approve::run(&args, &client, own, now).await
        }
        FleetCommand::Evict(args) => evict::run(&args, &client).await,
        FleetCommand::Check(args) => check::run(&args, &source, &client, namespace).await,
        FleetCommand::Join(args) => membership::join(&args, &source, &client, now).await,
        FleetCommand::Leave(args) => membership::leave(&args, &source, &client).await,
        FleetCommand::Renew(args) => membership::renew(&args, &source, &client, now).await,
    }
}
