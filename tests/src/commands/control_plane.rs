//! `control-plane`: runs a Kubernetes API until interrupted.

use anyhow::{Result, bail};
use pipeline_tests::{
    control_plane::{ApiKind, ControlPlane},
    crds,
};
use tokio::signal::unix::{SignalKind, signal};
use tools::Tool;

pub(crate) fn run() -> Result<()> {
    tools::build(&[Tool::Etcd, Tool::KubeApiserver])?;
    tokio::runtime::Builder::new_multi_thread()
        .enable_all()
        .build()?
        .block_on(serve())
}

/// Runs until the first signal, even during start-up, and leaves nothing behind.
async fn serve() -> Result<()> {
    let mut interrupted = signal(SignalKind::interrupt())?;
    let mut terminated = signal(SignalKind::terminate())?;
    let mut hung_up = signal(SignalKind::hangup())?;
    tokio::select! {
        ended = run_until_it_fails() => ended,
        _ = interrupted.recv() => Ok(()),
        _ = terminated.recv() => Ok(()),
        _ = hung_up.recv() => Ok(()),
    }
}

async fn run_until_it_fails() -> Result<()> {
    eprintln!("starting etcd and kube-apiserver");
    let mut control_plane = ControlPlane::start("karmada", ApiKind::Real).await?;
    control_plane.install_crds(&crds::karmada()).await?;
    eprintln!("ready; stop it with Ctrl-C; its kubeconfig is");
    println!("{}", control_plane.kubeconfig_path().display());
    bail!(control_plane.failure().await)
}
