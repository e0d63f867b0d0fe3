//! Many worlds, each in a process and a namespace of its own, and how often the agent and the resolvers differ.

use std::collections::BTreeMap;
use std::fmt;
use std::path::Path;
use std::process::{Command, Stdio};
use std::sync::Mutex;
use std::thread;

use anyhow::{Context, Result, ensure};
use karmada_rules::health::resolver::Resolver;
use lab_parts::dns::KUBERNETES_IP;
use tools::resolvers;

use super::difference::{Reason, What, between, reason};
use super::play::Seen;
use super::world::World;

/// The variables by which a pod knows the address of the API.
const API: [&str; 2] = ["KUBERNETES_SERVICE_HOST", "KUBERNETES_PORT_443_TCP_ADDR"];

/// The comparison of many worlds.
#[derive(Debug, Default)]
pub struct Table {
    worlds: usize,
    /// Worlds in which nothing differs.
    alike: usize,
    /// Worlds by vote.
    votes: BTreeMap<String, usize>,
    differences: BTreeMap<(Option<Reason>, What, Resolver), usize>,
    /// Worlds with a difference for which no reason is known.
    unexplained: Vec<String>,
}

/// Plays the worlds of these seeds, so many at once. `program` is that of the commands on real parts.
///
/// # Errors
/// A world cannot be played.
pub fn compare(
    program: &Path,
    seeds: impl Iterator<Item = u64> + Send,
    at_once: usize,
) -> Result<Table> {
    resolvers::build()?;
    let seeds = Mutex::new(seeds);
    let table = Mutex::new(Table::default());
    let work = || -> Result<()> {
        loop {
            let seed = seeds.lock().ok().and_then(|mut seeds| seeds.next());
            let Some(seed) = seed else { return Ok(()) };
            let outcome = play_alone(program, seed)?;
            if let Ok(mut table) = table.lock() {
                table.add(&World::draw(seed), &outcome);
            }
        }
    };
    thread::scope(|scope| {
        let workers: Vec<_> = (0..at_once).map(|_| scope.spawn(work)).collect();
        workers
            .into_iter()
            .try_for_each(|worker| match worker.join() {
                Ok(result) => result,
                Err(_) => anyhow::bail!("a worker panicked"),
            })
    })?;
    let table = table.into_inner();
    Ok(table.unwrap_or_else(std::sync::PoisonError::into_inner))
}

fn play_alone(program: &Path, seed: u64) -> Result<Seen> {
    let output = Command::new(program)
        .args(["simulate", "resolvers", "--alone", "--seed"])
        .arg(seed.to_string())
        .envs(API.map(|variable| (variable, KUBERNETES_IP.to_string())))
        .stdin(Stdio::null())
        .output()?;
    ensure!(
        output.status.success(),
        "the world of seed {seed} cannot be played:\n{}",
        String::from_utf8_lossy(&output.stderr)
    );
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    let last = text.lines().last().unwrap_or_default();
    serde_json::from_str(last).with_context(|| format!("seed {seed}: {text}"))
}

impl Table {
    fn add(&mut self, world: &World, seen: &Seen) {
        self.worlds += 1;
        let vote = seen.vote["vote"].as_str().unwrap_or("none");
        *self.votes.entry(vote.to_owned()).or_default() += 1;
        let mut differs = false;
        let mut told = false;
        for resolver in Resolver::ALL {
            let Some(what) = between(seen, resolver) else {
                continue;
            };
            differs = true;
            let reason = reason(world, resolver, what);
            *self
                .differences
                .entry((reason, what, resolver))
                .or_default() += 1;
            if reason.is_none() && !std::mem::replace(&mut told, true) {
                let line = format!("{resolver}: {what}\n{world}{seen:?}");
                self.unexplained.push(line);
            }
        }
        self.alike += usize::from(!differs);
    }

    /// Checks that every difference has its reason.
    pub fn check(&self) -> Result<()> {
        ensure!(
            self.unexplained.is_empty(),
            "{} worlds differ without a row in docs/probe.md:\n{}",
            self.unexplained.len(),
            self.unexplained.join("\n")
        );
        Ok(())
    }

    /// Returns the rows of `docs/probe.md` that the differences need.
    pub fn rows(&self) -> impl Iterator<Item = &'static str> {
        let reasons = self.differences.keys().filter_map(|(reason, ..)| *reason);
        reasons.map(Reason::row)
    }
}

impl fmt::Display for Table {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { worlds, alike, .. } = self;
        write!(f, "{worlds} worlds, {alike} alike; votes:")?;
        for (vote, count) in &self.votes {
            write!(f, " {vote} {count}")?;
        }
        for ((reason, what, resolver), count) in &self.differences {
            let reason = reason.map_or("no reason", Reason::row);
            write!(f, "\n{count:>6}  {resolver}: {what} ({reason})")?;
        }
        Ok(())
    }
}
