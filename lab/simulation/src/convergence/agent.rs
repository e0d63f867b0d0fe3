//! The agent of a cluster. The steps decide the observations of its probe.

use std::time::Duration;

use anyhow::Result;
use clap::Parser;
use cluster_health_agent::{Args, IDENTITY, NAME};
use health::dns::DnsClass;
use health::observation::{Failure, Observation};
use health::threshold::Round;
use tokio::sync::{mpsc, watch};
use tokio::task::JoinHandle;
use tokio::time::{Instant, sleep};

use super::apis::Apis;
use super::kinds::Side;
use crate::harness::access::Access;
use crate::harness::{clusters, programs};

/// The interval between two rounds.
const PERIOD: Duration = Duration::from_secs(1);

/// A running agent, which is killed when dropped.
#[derive(Debug)]
pub(crate) struct Agent {
    resolves: watch::Sender<bool>,
    task: JoinHandle<bool>,
}

impl Agent {
    /// Starts the agent of a cluster, and creates the namespace of its lease.
    pub(crate) async fn start(apis: &Apis, cluster: u8, resolves: bool) -> Result<Self> {
        let name = clusters::name(cluster);
        let namespace = karmada_api::execution_namespace(&name);
        let karmada = apis.access(Side::Karmada);
        karmada.create_namespace(&namespace).await?;
        let args = Args::try_parse_from([
            NAME,
            "--karmada-kubeconfig=none",
            "--host-name=n0",
            &format!("--cluster-name={name}"),
            "--detect-period=1s",
            "--detect-failure-threshold=3s",
            "--detect-success-threshold=3s",
            // Its verdict follows every change, however often DNS has failed.
            "--max-recovery-hold=3s",
        ])?;
        let mut program = programs::program(IDENTITY);
        let (finished, rounds) = mpsc::channel(1);
        cluster_health_agent::observe(args, apis.unrecorded(NAME).await?, rounds, &mut program)?;
        let (resolves, observed) = watch::channel(resolves);
        let task = tokio::spawn(program.run_until(async move || probe(&observed, &finished).await));
        Ok(Self { resolves, task })
    }

    /// Lets DNS resolve or fail from now on.
    pub(crate) fn set_resolves(&self, resolves: bool) {
        self.resolves.send_replace(resolves);
    }

    /// Returns `true` if the agent ended by itself.
    pub(crate) fn has_ended(&self) -> bool {
        self.task.is_finished()
    }
}

impl Drop for Agent {
    fn drop(&mut self) {
        self.task.abort();
    }
}

/// Observes DNS once a period, until the agent takes no more rounds.
async fn probe(resolves: &watch::Receiver<bool>, finished: &mpsc::Sender<Round>) {
    loop {
        let now = Instant::now().into_std();
        let observation = if *resolves.borrow() {
            Observation::Success
        } else {
            let server = ([192, 0, 2, 10], 53).into();
            Observation::Failed(Failure::new(DnsClass::Timeout, server))
        };
        let round = Round {
            scheduled: now,
            finished: now,
            observation,
        };
        if finished.send(round).await.is_err() {
            return;
        }
        sleep(PERIOD).await;
    }
}
