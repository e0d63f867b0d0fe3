//! The world of the controllers of health and traffic.

use std::time::Duration;

use anyhow::{Result, bail, ensure};
use jiff::Timestamp;
use proptest::strategy::{BoxedStrategy, Strategy};

use super::apis::Apis;
use super::explain::{Explainer, is_write};
use super::fleet::Fleet;
use super::log::{Entries, shown};
use super::program::Role;
use super::record::{Entry, Message, Record};
use super::sequences::sequences;
use super::settled;
use super::step::Step;
use crate::harness::{Figures, Log, Property, Timing, World, settle, stay_quiet};

/// The longest interval between two renewals of a leader's lease.
const RENEWAL: Duration = Duration::from_secs(5);

/// The property that the fleet converges.
#[derive(Clone, Copy, Debug)]
pub struct Convergence;

impl Property for Convergence {
    type World = Controllers;
    const NAME: &'static str = "convergence";
    const FAILED_ONCE: &'static str = include_str!("../../seeds.txt");
    const SEEDS: &'static str = "lab/simulation/seeds.txt";
    // It exceeds the longest backoff, 30 s.
    const QUIET: Duration = Duration::from_secs(40);

    fn sequences() -> BoxedStrategy<Vec<Step>> {
        sequences().boxed()
    }
}

/// A small fleet with two replicas of each controller, and why each of its writes was made.
#[derive(Debug)]
pub struct Controllers {
    fleet: Fleet,
    explainer: Explainer,
}

impl Controllers {
    fn record(&self) -> &Record {
        &self.fleet.replicas.record
    }

    /// Returns a program that has no leader, or whose leader has not renewed the lease in time.
    fn leaderless(&self) -> Option<Role> {
        let leads = |program: &Role| {
            let leader = self.explainer.leader(*program);
            leader.is_some_and(|(process, since)| {
                since.elapsed() <= RENEWAL && self.fleet.replicas.runs(process)
            })
        };
        Role::ALL.into_iter().find(|program| !leads(program))
    }
}

impl World for Controllers {
    type Step = Step;
    const BEGINNING: Timestamp = Timestamp::UNIX_EPOCH;
    const TIMING: Timing = Timing {
        look: Duration::from_secs(6),
        // An event may be delayed by 8 s, a failed watch starts again after 5 s, and the Event of a Service without
        // endpoints waits for 15 s.
        calm_looks: 5,
        // The longest chain is: a stolen lease expires after 15 s, a failed reconcile is requeued after 30 s, a watch
        // starts again after 5 s, a slow response arrives after 20 s, and then no request may be made for some looks.
        settles_within: Duration::from_mins(2),
    };

    async fn new() -> Result<Self> {
        Ok(Self {
            fleet: Fleet::new(Apis::embedded()?, Record::default()).await?,
            explainer: Explainer::default(),
        })
    }

    async fn start(&mut self) -> Result<()> {
        self.fleet.start_all().await
    }

    async fn apply(&mut self, step: &Step) -> Result<()> {
        self.fleet.apply(step).await?;
        self.check().await
    }

    async fn check(&mut self) -> Result<()> {
        if let Some(ended) = self.fleet.replicas.ended() {
            bail!(ended);
        }
        ensure!(!self.fleet.has_lost_an_agent(), "an agent ended by itself");
        if let Some(request) = self.record().without_pause() {
            bail!("a program repeats a request without a pause: {request}");
        }
        let entries = self.record().since(self.explainer.position());
        if let Some(unexplained) = self.explainer.read(&entries) {
            bail!(unexplained);
        }
        Ok(())
    }

    async fn recover(&mut self) -> Result<()> {
        self.fleet.repair().await?;
        self.fleet.replicas.start_missing(&self.fleet.apis).await
    }

    fn position(&self) -> usize {
        self.record().len()
    }

    fn write_since(&self, position: usize) -> Option<String> {
        let entries = self.record().since(position);
        entries.iter().find(|entry| is_write(entry)).map(shown)
    }

    fn unrest(&self) -> Option<String> {
        if let Some(program) = self.leaderless() {
            return Some(format!("no replica leads the {}", program.name()));
        }
        let waits = || "programs wait for a response".to_owned();
        self.record().is_waiting().then(waits)
    }

    async fn differences(&mut self) -> Result<Vec<String>> {
        Ok(settled::differences(&self.fleet.apis.objects().await?))
    }

    async fn finish(&mut self, _: &[Step], quiet: Duration) -> Result<()> {
        self.recover().await?;
        settle(self).await?;
        stay_quiet(self, quiet).await
    }

    fn figures(&self) -> Figures {
        let entries = self.record().since(0);
        let is_request = |entry: &&Entry| matches!(entry.message, Message::Request { .. });
        Figures {
            requests: entries.iter().filter(is_request).count() as u64,
            judged: self.explainer.judged().clone(),
            faults: self.fleet.faults(),
        }
    }

    fn log(&self) -> Box<dyn Log> {
        Box::new(Entries(self.record().since(0)))
    }
}
