//! Our programs of the control plane: each with its own flags, in this process.

use std::ffi::OsString;
use std::path::Path;

use anyhow::Result;
use clap::Parser;
use karmada_api::condition::{DNS_READY, FALSE};
use karmada_runtime::program::{Identity, Program, StartError};
use tracing::Instrument;

/// Starts all of them. `karmada` and `gateway` are kubeconfigs.
pub(crate) async fn start(karmada: &Path, gateway: &Path) -> Result<[Program; 6]> {
    let own = |name: &str| {
        let flags = [
            flag("--kubeconfig", karmada),
            flag("--listen-address", "127.0.0.1:0"),
        ];
        [name.into()].into_iter().chain(flags)
    };
    let served = [
        flag("--provider", "kubernetes"),
        flag("--gateway-kubeconfig", gateway),
    ];
    let remedy = remedy_controller::Args::try_parse_from(own(remedy_controller::NAME))?;
    let ingress = own(ingress_controller::NAME).chain(served);
    let ingress = ingress_controller::Args::try_parse_from(ingress)?;
    let propagation = own(propagation_controller::NAME);
    let propagation = propagation_controller::Args::try_parse_from(propagation)?;
    let schedule = own(scheduler::NAME).chain(["--evict-untolerated".into()]);
    let schedule = scheduler::Args::try_parse_from(schedule)?;
    let execution = execution_controller::Args::try_parse_from(own(execution_controller::NAME))?;
    let taints = ["NoSchedule", "NoExecute"].map(|effect| {
        let taint = format!("{DNS_READY}={FALSE}:{effect}");
        flag("--taint-on-condition", taint)
    });
    let clusters = own(cluster_controller::NAME).chain(taints);
    let clusters = cluster_controller::Args::try_parse_from(clusters)?;
    Ok([
        started(remedy_controller::IDENTITY, async |program| {
            remedy_controller::start(remedy, program).await
        })
        .await?,
        started(ingress_controller::IDENTITY, async |program| {
            ingress_controller::start(ingress, program).await
        })
        .await?,
        started(propagation_controller::IDENTITY, async |program| {
            propagation_controller::start(propagation, program).await
        })
        .await?,
        started(scheduler::IDENTITY, async |program| {
            scheduler::start(schedule, program).await
        })
        .await?,
        started(execution_controller::IDENTITY, async |program| {
            execution_controller::start(execution, program).await
        })
        .await?,
        started(cluster_controller::IDENTITY, async |program| {
            cluster_controller::start(clusters, program).await
        })
        .await?,
    ])
}

async fn started(
    identity: Identity,
    start: impl AsyncFnOnce(&mut Program) -> Result<(), StartError>,
) -> Result<Program> {
    let mut program = Program::new(identity, ([127, 0, 0, 1], 0).into());
    let span = tracing::error_span!("controller", name = identity.name);
    async {
        start(&mut program).await?;
        program.serve()
    }
    .instrument(span)
    .await?;
    Ok(program)
}

/// Runs a program until it ends.
pub(crate) async fn live(program: Program) {
    let name = program.identity.name;
    let clean = program
        .run_until(async || std::future::pending().await)
        .await;
    tracing::error!(name, clean, "A program ended unexpectedly");
}

fn flag(name: &str, value: impl AsRef<std::ffi::OsStr>) -> OsString {
    let mut flag = OsString::from(name);
    flag.push("=");
    flag.push(value);
    flag
}
