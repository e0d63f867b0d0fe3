//! Many worlds, each in a process and a namespace of its own, and how often the agent and the resolvers differ.

use std::collections::BTreeMap;
use std::fmt;
use std::path::Path;
use std::process::{Command, Stdio};
use std::sync::Mutex;
use std::thread;

use anyhow::{Context, Result, ensure};
use health::dns::DnsClass;
use health::observation::Symptom;
use health::resolver::Resolver;
use tools::resolvers::Lookups;

use super::difference::{Difference, between};
use super::play::{OUTCOMES, Seen};
use super::world::{TRAITS, World};

/// The variables by which a pod knows the address of the API.
const API: [&str; 2] = ["KUBERNETES_SERVICE_HOST", "KUBERNETES_PORT_443_TCP_ADDR"];

/// The number of plays of a world on a machine that is busy each time.
const MOST_PLAYS: usize = 4;
/// The number of worlds from which on all that there is occurs.
const ENOUGH: usize = 100;

/// The comparison of many worlds.
#[derive(Debug, Default)]
pub struct Table {
    worlds: usize,
    /// Worlds that were played again, since the machine was busy.
    again: usize,
    /// Worlds that could not be played without a delay, and tell nothing.
    delayed: usize,
    /// Worlds in which nothing differs.
    alike: usize,
    /// Of the worlds in which nothing differs, how many have a vote, a class, a symptom or a trait.
    seen: BTreeMap<String, usize>,
    differences: BTreeMap<Difference, usize>,
    /// Worlds with a difference for which no reason is known.
    unexplained: Vec<String>,
}

/// Plays the worlds of these seeds, so many at once. `program` is that of the commands on real parts.
///
/// # Errors
/// The resolvers are not [built](tools::resolvers::build), or a world cannot be played.
pub fn compare(
    program: &Path,
    seeds: impl Iterator<Item = u64> + Send,
    at_once: usize,
) -> Result<Table> {
    Lookups::built()?;
    let seeds = Mutex::new(seeds);
    let table = Mutex::new(Table::default());
    let work = || -> Result<()> {
        loop {
            let seed = seeds.lock().ok().and_then(|mut seeds| seeds.next());
            let Some(seed) = seed else { return Ok(()) };
            let world = World::draw(seed);
            // Only a play that the machine did not delay tells something, whatever that is.
            let mut plays = (0..MOST_PLAYS)
                .map(|_| play_alone(program, &world))
                .enumerate();
            let found = plays.find(|(_, play)| !play.as_ref().is_ok_and(Seen::is_delayed));
            let found = found.map(|(again, play)| anyhow::Ok((again, play?)));
            let found = found.transpose()?;
            if let Ok(mut table) = table.lock() {
                table.add(&world, found);
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

fn play_alone(program: &Path, world: &World) -> Result<Seen> {
    let (seed, host) = (world.seed, world.service_host().to_string());
    let output = Command::new(program)
        .args(["simulate", "resolvers", "--alone", "--seed"])
        .arg(seed.to_string())
        .envs(API.map(|variable| (variable, &host)))
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
    /// Adds the results of a world after so many plays before.
    fn add(&mut self, world: &World, seen: Option<(usize, Seen)>) {
        self.worlds += 1;
        let Some((again, seen)) = seen else {
            self.delayed += 1;
            return;
        };
        self.again += usize::from(again > 0);
        let differences = Resolver::ALL.into_iter().filter_map(|resolver| {
            let (said, real) = (seen.said(resolver), seen.real(world, resolver));
            between(world, resolver, said, real)
        });
        let differences: Vec<_> = differences.collect();
        if differences.is_empty() {
            self.alike += 1;
            let traits = world.traits().map(ToOwned::to_owned);
            for kind in seen.kinds(world).into_iter().chain(traits) {
                *self.seen.entry(kind).or_default() += 1;
            }
        }
        let mistake = differences.iter().find(|one| one.reasons.is_empty());
        if let Some(Difference { what, resolver, .. }) = mistake {
            let line = format!("{resolver}: {what}\n{world}{seen:?}");
            self.unexplained.push(line);
        }
        for difference in differences {
            *self.differences.entry(difference).or_default() += 1;
        }
    }

    /// Checks that every difference has its reason, that most worlds are alike, and that the agent was right about all that
    /// there is to say.
    ///
    /// # Errors
    /// It is not so.
    pub fn check(&self) -> Result<()> {
        ensure!(
            self.unexplained.is_empty(),
            "{} worlds differ without a row in docs/probe.md:\n{}",
            self.unexplained.len(),
            self.unexplained.join("\n")
        );
        ensure!(
            self.delayed * 20 <= self.worlds,
            "{} of {} worlds were delayed in each of {MOST_PLAYS} plays: the machine is too busy",
            self.delayed,
            self.worlds
        );
        if self.worlds < ENOUGH {
            return Ok(());
        }
        ensure!(self.alike * 2 >= self.worlds, "most worlds differ:\n{self}");
        let missing: Vec<_> = all_kinds()
            .filter(|kind| !self.seen.contains_key(kind))
            .collect();
        ensure!(
            missing.is_empty(),
            "never seen where nothing differs: {}\n{self}",
            missing.join(", ")
        );
        Ok(())
    }

    /// Returns the rows of `docs/probe.md` that the differences need.
    pub fn rows(&self) -> impl Iterator<Item = &'static str> {
        let reasons = self.differences.keys().flat_map(|one| &one.reasons);
        reasons.map(|reason| reason.row())
    }
}

/// Returns the verdicts of the agent and the features of worlds, all of which are to be seen.
fn all_kinds() -> impl Iterator<Item = String> {
    let classes = DnsClass::ALL.map(|class| class.to_string());
    let symptoms = Symptom::ALL.map(|symptom| symptom.as_str().to_owned());
    let traits = TRAITS.map(ToOwned::to_owned);
    let outcomes = OUTCOMES.map(ToOwned::to_owned);
    classes
        .into_iter()
        .chain(symptoms)
        .chain(traits)
        .chain(outcomes)
}

impl fmt::Display for Table {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self {
            worlds,
            again,
            delayed,
            alike,
            ..
        } = self;
        write!(
            f,
            "{worlds} worlds, {alike} alike; {again} played again, {delayed} delayed each time"
        )?;
        f.write_str("\nalike:")?;
        for (kind, count) in &self.seen {
            write!(f, " {kind} {count};")?;
        }
        for (difference, count) in &self.differences {
            let Difference {
                what,
                reasons,
                resolver,
            } = difference;
            let rows: Vec<_> = reasons.iter().map(|reason| reason.row()).collect();
            let rows = if rows.is_empty() {
                "no reason".to_owned()
            } else {
                rows.join("; ")
            };
            write!(f, "\n{count:>6}  {resolver}: {what} ({rows})")?;
        }
        Ok(())
    }
}
