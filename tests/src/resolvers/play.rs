//! One world in its namespace: its servers, the lookups of real resolvers, and an agent.

use std::collections::BTreeSet;
use std::convert::Infallible;
use std::net::IpAddr;
use std::path::{Path, PathBuf};
use std::time::Duration;

use anyhow::{Context, Result};
use futures::future::{join, try_join3};
use health::observation::Symptom;
use health::resolver::Resolver;
use lab_parts::dns::DnsServer;
use lab_parts::kubeconfig::{self, Access};
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};
use tokio::process::Command;
use tokio::time::{Instant, sleep, timeout};
use tools::resolvers::Lookups;

use super::world::{NAME, PROBE_TIMEOUT, World, address};
use crate::netns;
use crate::programs::{Binary, Profile, Running};
use crate::scratch;

/// The limit of a lookup. glibc waits without end for a server that is silent over TCP.
const LOOKUP_LIMIT: Duration = Duration::from_mins(2);
/// The rounds after which a state counts as lasting.
const ROUNDS: f64 = 6.0;
const CLUSTER: &str = "member1";
/// Karmada: the agent votes without it.
const NOWHERE: ([u8; 4], u16) = ([127, 0, 0, 1], 1);

/// The interval of looks at the clock.
const TICK: Duration = Duration::from_millis(20);
/// A delay of the machine by which a world may show another result.
const MOST_DELAYED: Duration = Duration::from_millis(200);

/// The results of a world.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Seen {
    /// By real resolvers, in the order of [`Resolver::ALL`].
    lookups: [Lookup; 3],
    /// The agent's vote document.
    pub(super) vote: Value,
    /// The longest that the machine kept this process from running.
    delayed: Duration,
}

/// The result of a lookup.
#[derive(Clone, Debug, Serialize, Deserialize)]
struct Lookup {
    /// The addresses, none if it fails.
    addresses: Vec<IpAddr>,
    took: Duration,
}

/// The result of a real resolver.
#[derive(Clone, Copy, Debug)]
pub(super) struct Real {
    /// True if a right address is among those found.
    pub(super) is_right: bool,
    /// True if an address of somebody else is among those found.
    pub(super) has_stranger: bool,
    pub(super) took: Duration,
}

impl Real {
    /// Returns `true` if it found right addresses, and no others.
    pub(super) fn is_clean(self) -> bool {
        self.is_right && !self.has_stranger
    }

    /// Returns `true` if it found right addresses, and others.
    pub(super) fn is_mixed(self) -> bool {
        self.is_right && self.has_stranger
    }
}

/// The agent's verdict on pods with a resolver.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Said {
    /// Nothing: it has no vote.
    NoVote,
    /// Nothing: the vote is about other pods.
    OfOthers,
    /// The fault of their lookups, if there is one.
    Pods(Option<Symptom>),
}

impl Seen {
    /// Returns `true` if the results may come from a busy machine.
    pub(super) fn is_delayed(&self) -> bool {
        self.delayed > MOST_DELAYED
    }

    pub(super) fn real(&self, world: &World, resolver: Resolver) -> Real {
        let Lookup { addresses, took } = &self.lookups[resolver as usize];
        let is_right = |address: &IpAddr| world.is_right(*address);
        Real {
            is_right: addresses.iter().any(is_right),
            has_stranger: !addresses.iter().all(is_right),
            took: *took,
        }
    }

    pub(super) fn said(&self, resolver: Resolver) -> Said {
        let word = |value: &Value| value.as_str().map(ToOwned::to_owned);
        match (
            word(&self.vote["vote"]).as_deref(),
            word(&self.vote["resolver"]),
        ) {
            (Some("unhealthy"), Some(judged)) if judged != resolver.as_str() => Said::OfOthers,
            (Some("unhealthy"), _) => Said::Pods(Some(Symptom::Fails)),
            (Some("healthy"), _) => {
                let symptom = word(&self.vote["pods"][resolver.as_str()]["symptom"]);
                let mut all = Symptom::ALL.into_iter();
                Said::Pods(symptom.and_then(|name| all.find(|known| known.as_str() == name)))
            }
            _ => Said::NoVote,
        }
    }
}

/// The outcomes of a vote: all of them are to be seen.
pub(super) const OUTCOMES: [&str; 3] = [HEALTHY, UNHEALTHY, JUDGED];
const HEALTHY: &str = "healthy";
const UNHEALTHY: &str = "unhealthy";
const JUDGED: &str = "unhealthy by one resolver";
const RESOLVED: &str = "fails at times and resolved";
const FAILED: &str = "fails at times and failed";

impl Seen {
    /// Returns the vote, its message, and the outcome of lookups that fail at times.
    pub(super) fn kinds(&self, world: &World) -> BTreeSet<String> {
        let mut kinds = BTreeSet::new();
        let mut add = |value: &Value| kinds.extend(value.as_str().map(ToOwned::to_owned));
        add(&self.vote["vote"]);
        add(&self.vote["class"]);
        for pods in self.vote["pods"]
            .as_object()
            .into_iter()
            .flat_map(Map::values)
        {
            add(&pods["class"]);
            add(&pods["symptom"]);
        }
        kinds.extend(self.vote["resolver"].is_string().then(|| JUDGED.to_owned()));
        for resolver in Resolver::ALL {
            let real = self.real(world, resolver);
            if self.said(resolver) == Said::Pods(Some(Symptom::FailsAtTimes)) && !real.is_mixed() {
                kinds.insert(if real.is_right { RESOLVED } else { FAILED }.to_owned());
            }
        }
        kinds
    }
}

/// Plays a world in the namespace of this process.
pub async fn play(world: &World) -> Result<Seen> {
    let mut servers = Vec::new();
    for (place, server) in world.servers.iter().enumerate() {
        let address = address(place);
        netns::add_address(address)?;
        if !server.is_closed {
            let behaviour = world.behaviour(server);
            servers.push(DnsServer::start_at((address, 53).into(), behaviour).await?);
        }
    }
    netns::mount_resolv_conf(&world.resolv_conf())?;
    let programs = Lookups::built()?;
    let lookups = try_join3(
        look_up(&programs.glibc),
        look_up(&programs.musl),
        look_up(&programs.go),
    );
    let mut delayed = Duration::ZERO;
    let (lookups, vote) = tokio::select! {
        both = join(lookups, vote(world)) => both,
        never = watch_clock(&mut delayed) => match never {},
    };
    let (glibc, musl, go) = lookups?;
    Ok(Seen {
        lookups: [glibc, musl, go],
        vote: vote?,
        delayed,
    })
}

/// Keeps the longest time for which this process did not run.
async fn watch_clock(delayed: &mut Duration) -> Infallible {
    loop {
        let begun = Instant::now();
        sleep(TICK).await;
        *delayed = (*delayed).max(begun.elapsed().saturating_sub(TICK));
    }
}

async fn look_up(program: &Path) -> Result<Lookup> {
    let start = Instant::now();
    let mut command = Command::new(program);
    command.arg(NAME).kill_on_drop(true);
    let addresses = match timeout(LOOKUP_LIMIT, command.output()).await {
        Ok(output) => {
            let output = output.with_context(|| program.display().to_string())?;
            let text = String::from_utf8_lossy(&output.stdout).into_owned();
            text.lines().map(str::parse).collect::<Result<_, _>>()?
        }
        Err(_) => Vec::new(),
    };
    Ok(Lookup {
        addresses,
        took: start.elapsed(),
    })
}

/// Returns the vote of an agent after some rounds.
async fn vote(world: &World) -> Result<Value> {
    let folder = scratch::folder("nowhere")?;
    let path: PathBuf = folder.path().join("kubeconfig");
    kubeconfig::write(&path, &[&Access::open("karmada", NOWHERE.into())])?;
    let mut flags = vec![
        format!("--karmada-kubeconfig={}", path.display()),
        format!("--cluster-name={CLUSTER}"),
        "--host-name=n1".to_owned(),
        "--peer=127.0.0.1:2".to_owned(),
        format!("--probe-timeout={}ms", PROBE_TIMEOUT.as_millis()),
        "--detect-period=3s".to_owned(),
        "--detect-failure-threshold=6s".to_owned(),
        "--detect-success-threshold=6s".to_owned(),
    ];
    flags.extend(
        world
            .judges
            .iter()
            .map(|judge| format!("--judge-as={}", judge.as_str())),
    );
    let agent = Running::start_unready(Binary::Agent, Profile::Debug, flags).await?;
    let rounds = "karmada_cluster_health_agent_probe_rounds_total";
    agent
        .until_metric(rounds, |rounds| rounds >= ROUNDS)
        .await?;
    let vote = agent.vote_for(CLUSTER).await?;
    agent.kill().await?;
    Ok(serde_json::from_str(&vote)?)
}
