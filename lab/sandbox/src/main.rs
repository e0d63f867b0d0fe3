//! `cargo run`: the whole pipeline on one machine, with nothing installed.
//!
//! Everything that runs is real: the programs' own libraries with their own flags, DNS and HTTP over
//! sockets. Only the APIs are embedded ones, and [`member_controllers`] and [`collector`] stand for the parts that are
//! not ours. [`sandbox`] starts everything and acts on it; everything
//! observed becomes an [`update::Update`], updates make up the [`picture`], and the picture is all that the
//! page shows and a [`scenario`] checks.

mod apis;
mod args;
mod availability;
mod balancer;
mod collector;
mod command;
mod failover;
mod fault;
mod get;
mod hub;
mod member;
mod member_controllers;
mod network;
mod new_remedy;
mod node_vote;
mod objects;
mod origin;
mod picture;
mod plan;
mod programs;
mod record;
mod rollout;
mod sample_remedy;
mod sandbox;
mod scenario;
mod serve;
mod site;
mod terminal;
mod traffic;
mod update;
mod watch;

use std::process::ExitCode;
use std::sync::Arc;

use anyhow::{Result, bail};
use clap::Parser;
use tokio::net::TcpListener;
use tokio::signal::unix::{SignalKind, signal};
use tracing_subscriber::layer::SubscriberExt;
use tracing_subscriber::util::SubscriberInitExt;

use crate::args::Args;
use crate::sandbox::Sandbox;

/// The exit code for flags that cannot be used.
const BAD_FLAGS: u8 = 2;

fn main() -> ExitCode {
    let args = Args::parse();
    let logs = tracing_subscriber::fmt::layer()
        .with_writer(std::io::stderr)
        .with_ansi(karmada_runtime::telemetry::is_coloured());
    tracing_subscriber::registry()
        .with(args.log_level.clone())
        .with(logs)
        .init();
    // The error means that a provider is installed already.
    drop(rustls::crypto::ring::default_provider().install_default());
    let runtime = match tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
    {
        Ok(runtime) => runtime,
        Err(error) => return fail(&error.into(), ExitCode::FAILURE),
    };
    runtime.block_on(async {
        match serve::listen(args.port).await {
            Err(error) => fail(&error, ExitCode::from(BAD_FLAGS)),
            Ok(listener) => match run(args, listener).await {
                Ok(()) => ExitCode::SUCCESS,
                Err(error) => fail(&error, ExitCode::FAILURE),
            },
        }
    })
}

fn fail(error: &anyhow::Error, code: ExitCode) -> ExitCode {
    terminal::print_error(&format!("error: {error:#}"));
    code
}

/// Runs until a signal, or until the end of the scenario.
async fn run(args: Args, listener: TcpListener) -> Result<()> {
    let mut interrupt = signal(SignalKind::interrupt())?;
    let mut terminate = signal(SignalKind::terminate())?;
    let mut hangup = signal(SignalKind::hangup())?;
    let work = async {
        let page = listener.local_addr()?;
        let thresholds = args.thresholds.thresholds();
        let sandbox = Arc::new(Sandbox::start(thresholds).await?);
        terminal::print(&format!("page: http://{page}"));
        terminal::print(&format!("kubeconfig: {}", sandbox.kubeconfig().display()));
        let play = async {
            if let Some(scenario) = args.scenario {
                return scenario.play(&sandbox, thresholds).await;
            }
            terminal::print("open the page in a browser; Ctrl-C ends everything");
            std::future::pending().await
        };
        tokio::select! {
            biased;
            ended = sandbox.ended() => bail!(ended),
            served = serve::serve(listener, Arc::clone(&sandbox)) => Ok(served?),
            played = play => played,
        }
    };
    let signalled = async {
        tokio::select! {
            biased;
            _ = interrupt.recv() => {}
            _ = terminate.recv() => {}
            _ = hangup.recv() => {}
        }
    };
    tokio::select! {
        biased;
        () = signalled => match args.scenario {
            Some(_) => bail!("interrupted before the end of the scenario"),
            None => Ok(()),
        },
        done = work => done,
    }
}
