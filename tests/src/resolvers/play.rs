//! One world in its namespace: its servers, the lookups of real resolvers, and an agent.

use std::path::{Path, PathBuf};
use std::time::Duration;

use anyhow::{Context, Result};
use futures::future::try_join3;
use karmada_rules::health::resolver::Resolver;
use lab_parts::dns::{DnsServer, KUBERNETES_IP};
use lab_parts::kubeconfig::{self, Access};
use serde::{Deserialize, Serialize};
use tokio::process::Command;
use tokio::time::{Instant, timeout};
use tools::resolvers::Lookups;

use super::world::{NAME, World, address};
use crate::netns;
use crate::programs::{Binary, Profile, Running};
use crate::scratch;

/// The limit of a lookup. glibc waits without end for a server that is silent over TCP.
const LOOKUP_LIMIT: Duration = Duration::from_secs(30);
/// So many rounds show what lasts.
const ROUNDS: f64 = 6.0;
const CLUSTER: &str = "member1";
/// Karmada: the agent votes without it.
const NOWHERE: ([u8; 4], u16) = ([127, 0, 0, 1], 1);

/// What is seen in a world.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Seen {
    /// By real resolvers, in the order of [`Resolver::ALL`].
    pub(super) lookups: [Lookup; 3],
    /// The agent's vote document.
    pub(super) vote: serde_json::Value,
}

/// The result of a lookup.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(super) struct Lookup {
    /// The addresses, none if it fails.
    pub(super) addresses: Vec<String>,
    pub(super) took: Duration,
}

impl Lookup {
    /// Returns `true` if a right address is among those found.
    pub(super) fn is_right(&self) -> bool {
        self.addresses.iter().any(is_right)
    }

    /// Returns `true` if an address of somebody else is among those found.
    pub(super) fn has_stranger(&self) -> bool {
        !self.addresses.iter().all(is_right)
    }
}

fn is_right(address: &String) -> bool {
    *address == KUBERNETES_IP.to_string()
}

/// Plays a world in the namespace of this process.
pub async fn play(world: &World) -> Result<Seen> {
    let mut servers = Vec::new();
    for (place, server) in world.servers.iter().enumerate() {
        let address = address(place);
        netns::add_address(address)?;
        if !server.is_closed {
            servers.push(DnsServer::start_at((address, 53).into(), server.behaviour()).await?);
        }
    }
    netns::mount_resolv_conf(&world.resolv_conf())?;
    let programs = Lookups::built()?;
    let lookups = try_join3(
        look_up(&programs.glibc),
        look_up(&programs.musl),
        look_up(&programs.go),
    );
    let (lookups, vote) = tokio::join!(lookups, vote());
    let (glibc, musl, go) = lookups?;
    Ok(Seen {
        lookups: [glibc, musl, go],
        vote: vote?,
    })
}

async fn look_up(program: &Path) -> Result<Lookup> {
    let start = Instant::now();
    let mut command = Command::new(program);
    command.arg(NAME).kill_on_drop(true);
    let addresses = match timeout(LOOKUP_LIMIT, command.output()).await {
        Ok(output) => {
            let output = output.with_context(|| program.display().to_string())?;
            let text = String::from_utf8_lossy(&output.stdout).into_owned();
            text.lines().map(ToOwned::to_owned).collect()
        }
        Err(_) => Vec::new(),
    };
    Ok(Lookup {
        addresses,
        took: start.elapsed(),
    })
}

/// Returns the vote of an agent after some rounds.
async fn vote() -> Result<serde_json::Value> {
    let folder = scratch::folder("nowhere")?;
    let path: PathBuf = folder.path().join("kubeconfig");
    kubeconfig::write(&path, &[&Access::open("karmada", NOWHERE.into())])?;
    let flags = [
        format!("--karmada-kubeconfig={}", path.display()),
        format!("--cluster-name={CLUSTER}"),
        "--host-name=n1".to_owned(),
        "--peer=127.0.0.1:2".to_owned(),
        // Longer than the rest by so much that a busy machine does not matter.
        "--detect-period=2s".to_owned(),
        "--probe-timeout=1s".to_owned(),
        "--detect-failure-threshold=4s".to_owned(),
        "--detect-success-threshold=4s".to_owned(),
    ];
    let agent = Running::start_unready(Binary::Agent, Profile::Debug, flags).await?;
    let rounds = "karmada_cluster_health_agent_probe_rounds_total";
    agent
        .until_metric(rounds, |rounds| rounds >= ROUNDS)
        .await?;
    let vote = agent.vote_for("n2", CLUSTER).await?;
    agent.kill().await?;
    Ok(serde_json::from_str(&vote)?)
}

/// Returns the lookup of a resolver.
pub(super) fn of(seen: &Seen, resolver: Resolver) -> &Lookup {
    &seen.lookups[resolver as usize]
}
