//! A world in a run, with its programs: its steps and checks.

use std::time::Duration;

use anyhow::{Context, Result, bail, ensure};
use embedded_apiserver::ApiServer;
use tokio::time::{Instant, sleep};

use super::fault::{About, Api, ApiFault, Part};
use super::message::Role;
use super::oracle::Oracle;
use super::programs::Programs;
use super::record::Record;
use super::step::Step;
use super::world::{Figures, StepOf, World};

/// A world in a run.
#[derive(Debug)]
pub(crate) struct Session<W: World> {
    pub(crate) world: W,
    pub(crate) programs: Programs<W::Role>,
    pub(super) record: Record<W::Role>,
    oracle: Oracle<W::Role>,
    /// The versions of the objects that were observed last.
    versions: Vec<u64>,
}

impl<W: World> Session<W> {
    /// Begins the run of a world. No program runs yet.
    pub(crate) fn new(world: W, record: Record<W::Role>) -> Self {
        Self {
            world,
            programs: Programs::new(record.clone()),
            record,
            oracle: Oracle::default(),
            versions: Vec::new(),
        }
    }

    /// Starts every replica.
    pub(crate) async fn start_all(&mut self) -> Result<()> {
        for (program, replica) in self.programs.all() {
            self.start(program, replica).await?;
        }
        Ok(())
    }

    async fn start(&mut self, program: W::Role, replica: u8) -> Result<()> {
        let world = &self.world;
        self.programs
            .start((program, replica), async |connections| {
                world.assemble(connections).await
            })
            .await
    }

    /// Lets all processes live on, and starts one of each program that has none.
    pub(crate) async fn revive(&mut self) -> Result<()> {
        self.programs.spare();
        for program in self.programs.missing() {
            self.start(program, 0).await?;
        }
        Ok(())
    }

    /// Kills every process.
    pub(crate) async fn kill_all(&mut self) {
        for (program, replica) in self.programs.all() {
            self.programs.kill(program, replica).await;
        }
    }

    /// Ends every fault.
    async fn repair(&mut self) -> Result<()> {
        for server in self.world.servers() {
            server.faults().clear();
        }
        self.world.repair().await
    }

    /// Applies a step. One that concerns absent objects does nothing.
    pub(crate) async fn apply(&mut self, step: &StepOf<W>) -> Result<()> {
        self.record.note(format!("{step:?}"));
        match *step {
            Step::Change(ref change) => {
                self.world.apply(change).await?;
                if let Some(program) = W::restarted(change) {
                    self.programs.kill(program, 0).await;
                    self.start(program, 0).await?;
                }
            }
            Step::Kill { program, replica } => self.programs.kill(program, replica).await,
            Step::Stop { program, replica } => self.programs.stop(program, replica),
            Step::Start { program, replica } => self.start(program, replica).await?,
            Step::Crash {
                program,
                replica,
                write,
                stored,
            } => self.programs.crash(program, replica, write, stored),
            Step::Fault {
                api,
                program,
                about,
                fault,
                seconds,
            } => {
                let lasting = Duration::from_secs(seconds.into());
                self.inject(api, program, about, fault, lasting).await?;
            }
            Step::Repair => self.repair().await?,
            Step::Settle => {
                self.repair().await?;
                self.revive().await?;
            }
            Step::Wait { millis } => sleep(Duration::from_millis(millis.into())).await,
        }
        Ok(())
    }

    async fn inject(
        &self,
        api: Api,
        program: Option<W::Role>,
        about: Option<About>,
        fault: ApiFault,
        lasting: Duration,
    ) -> Result<()> {
        let injection = match fault.injection() {
            Ok(injection) => injection,
            Err(late) => return self.world.delay(api, program, late),
        };
        // A part of the programs' user agents: the steps' own requests must succeed.
        let client = program.map_or_else(|| "/".to_owned(), Role::user_agent);
        let mut injection = injection.lasting(lasting).client(client);
        if let Some(About { plural, part }) = about {
            injection = injection.kind(plural);
            injection = match part {
                None => injection,
                Some(Part::Spec) => injection.subresource(""),
                Some(Part::Status) => injection.subresource("status"),
            };
        }
        if let Some(server) = self.world.server(api).await? {
            server.faults().inject(injection);
        }
        Ok(())
    }

    /// Applies a step, checks the rules of every moment, and waits until the world has settled if the step asks
    /// for that.
    pub(super) async fn play(&mut self, step: &StepOf<W>) -> Result<()> {
        self.apply(step).await?;
        self.check(Some(step)).await?;
        if matches!(step, Step::Settle) {
            self.settle().await?;
        }
        Ok(())
    }

    /// Checks the rules of every moment.
    pub(super) async fn check(&mut self, step: Option<&StepOf<W>>) -> Result<()> {
        if let Some(ended) = self.programs.ended() {
            bail!(ended);
        }
        self.record.check_pace()?;
        let entries = self.record.since(self.oracle.position());
        if let Some(unexplained) = self.oracle.read(&entries) {
            bail!(unexplained);
        }
        let servers = self.world.servers();
        let versions: Vec<u64> = servers.iter().map(ApiServer::version).collect();
        let is_changed = versions != self.versions;
        none(&self.world.observe(step, is_changed).await?)?;
        self.versions = versions;
        Ok(())
    }

    /// Waits until no program writes and the model finds no difference.
    async fn settle(&mut self) -> Result<()> {
        let (begun, timing) = (Instant::now(), W::TIMING);
        let (mut seen, mut calm) = (self.record.len(), 0);
        loop {
            sleep(timing.look).await;
            self.check(None).await?;
            let unrest = self.unrest(seen);
            seen = self.record.len();
            calm = if unrest.is_none() { calm + 1 } else { 0 };
            let missing = match unrest {
                Some(unrest) => vec![unrest],
                None if calm < timing.calm_looks => {
                    vec!["the programs became calm only now".to_owned()]
                }
                None => self.world.differences().await?,
            };
            if missing.is_empty() {
                return none(&self.world.settled());
            }
            ensure!(
                begun.elapsed() < timing.settles_within,
                "not settled after {:?}: {}",
                timing.settles_within,
                missing.join("; ")
            );
        }
    }

    /// Returns why the world cannot have settled, as far as the programs show it.
    fn unrest(&self, seen: usize) -> Option<String> {
        if let Some(program) = self.oracle.leaderless(&self.programs) {
            return Some(format!("no replica leads the {}", program.user_agent()));
        }
        if self.record.is_writing() || self.write_since(seen).is_some() {
            return Some("programs still write, or wait for a response to a write".to_owned());
        }
        self.world.unrest()
    }

    /// Returns the first write from a place in the record on that is no heartbeat.
    fn write_since(&self, nth: usize) -> Option<String> {
        let writes = self.record.writes_since(nth);
        let mut writes = writes.iter();
        let write = writes.find(|write| !write.message.written().is_some_and(W::is_heartbeat))?;
        Some(write.to_string())
    }

    /// Checks that no program writes for `quiet`, but heartbeats no more often than they should, and that the model
    /// finds no difference then.
    async fn stay_quiet(&mut self, quiet: Duration) -> Result<()> {
        let seen = self.record.len();
        sleep(quiet).await;
        self.check(None).await?;
        if let Some(write) = self.write_since(seen) {
            bail!("a write in a settled world: {write}");
        }
        none(&self.world.differences().await?).context("the world did not stay settled")?;
        let heartbeats = self.record.writes_since(seen).len();
        let minutes = usize::try_from(quiet.as_secs() / 60)? + 1;
        let most = W::HEARTBEATS * minutes;
        ensure!(
            heartbeats <= most,
            "{heartbeats} heartbeats in {quiet:?}, over {most}"
        );
        Ok(())
    }

    /// Starts every program anew.
    async fn restart(&mut self) -> Result<()> {
        self.record.note("every program starts again".to_owned());
        self.kill_all().await;
        self.revive().await
    }

    /// Ends a run after its steps: settles, and then lets nothing write for as long as `quiet`, nor once the programs
    /// have started anew.
    pub(super) async fn finish(&mut self, steps: &[StepOf<W>], quiet: Duration) -> Result<()> {
        let mut changes = steps.iter().filter_map(Step::change);
        if changes.any(W::is_noticed_at_start) {
            self.play(&Step::Settle).await?;
            self.restart().await?;
        }
        self.play(&Step::Settle).await?;
        self.stay_quiet(quiet).await?;
        let Some(part) = W::TIMING.after_restart else {
            return Ok(());
        };
        self.restart().await?;
        let restarted = self.stay_quiet(quiet / part).await;
        restarted.context("after a restart")
    }

    /// Returns the figures of the run so far.
    pub(super) fn figures(&self) -> Figures {
        let mut faults = self.world.faults();
        for server in self.world.servers() {
            for (fault, count) in server.faults().hits() {
                *faults.entry(fault).or_default() += count;
            }
        }
        Figures {
            requests: self.record.requests(),
            judged: self.oracle.judged().clone(),
            faults,
        }
    }
}

/// Fails with the faults that were found, if there are any.
fn none(found: &[String]) -> Result<()> {
    ensure!(found.is_empty(), "{}", found.join("; "));
    Ok(())
}
