//! `cargo run`: the whole pipeline on one machine, with nothing installed.
//!
//! What runs is real: the programs' own libraries with their own flags, DNS and HTTP over sockets.
//! Only the API is the embedded one. `world` starts everything and does things to it; everything
//! that is seen of it becomes a [`facts::Fact`], facts become the [`picture`], and the picture is
//! what the page shows and what a scenario judges by.

mod apis;
mod args;
mod balancer;
mod facts;
mod get;
mod member;
mod network;
mod objects;
mod picture;
mod port;
mod record;
mod scenario;
mod serve;
mod story;
mod terminal;
mod thresholds;
mod traffic;
mod watch;
mod world;

use std::process::ExitCode;
use std::sync::Arc;

use anyhow::{Result, bail};
use clap::Parser;
use tokio::net::TcpListener;
use tokio::signal::unix::{SignalKind, signal};
use tracing_subscriber::layer::SubscriberExt;
use tracing_subscriber::util::SubscriberInitExt;

use crate::args::Args;
use crate::world::World;

/// For flags that cannot be used.
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
    // An error only says that a provider is installed already.
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
    terminal::complain(&format!("error: {error:#}"));
    code
}

/// Runs until a signal, or to the end of the scenario.
async fn run(args: Args, listener: TcpListener) -> Result<()> {
    let mut interrupt = signal(SignalKind::interrupt())?;
    let mut terminate = signal(SignalKind::terminate())?;
    let mut hangup = signal(SignalKind::hangup())?;
    let work = async {
        let page = listener.local_addr()?;
        let world = Arc::new(World::start(args.thresholds).await?);
        terminal::say(&format!("page: http://{page}"));
        terminal::say(&format!("kubeconfig: {}", world.kubeconfig().display()));
        let play = async {
            if let Some(scenario) = args.scenario {
                return scenario.play(&world, args.thresholds).await;
            }
            terminal::say("open that address in a browser; Ctrl-C ends all of it");
            std::future::pending().await
        };
        tokio::select! {
            biased;
            ended = world.ended() => bail!(ended),
            served = serve::serve(listener, Arc::clone(&world)) => Ok(served?),
            played = play => played,
        }
    };
    let told = async {
        tokio::select! {
            biased;
            _ = interrupt.recv() => {}
            _ = terminate.recv() => {}
            _ = hangup.recv() => {}
        }
    };
    tokio::select! {
        biased;
        () = told => match args.scenario {
            Some(_) => bail!("told to stop before the end of the scenario"),
            None => Ok(()),
        },
        done = work => done,
    }
}
