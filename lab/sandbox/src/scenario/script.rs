//! The actions of a scenario, and waiting for their effects.

use std::time::Duration;

use anyhow::{Result, bail};
use lab_parts::thresholds::ProbeTiming;
use tokio::time::{Instant, sleep_until, timeout_at};

use super::print::stamp;
use crate::fault::{DnsFault, Outage};
use crate::picture::{Stage, State, Step, TimelineEntry};
use crate::record::Record;
use crate::sandbox::{Action, Sandbox};
use crate::terminal::print;

/// The cluster that scenarios act on.
pub(super) const MEMBER: &str = "member1";
/// The time beyond every limit that a busy machine is given. Where nothing is late, none of it passes.
const SLACK: Duration = Duration::from_secs(20);

/// A scenario that is being played.
pub(super) struct Script<'a> {
    sandbox: &'a Sandbox,
    pub(super) record: Record,
    pub(super) thresholds: ProbeTiming,
    pub(super) began: Instant,
}

impl<'a> Script<'a> {
    pub(super) fn new(sandbox: &'a Sandbox, thresholds: ProbeTiming) -> Self {
        Self {
            sandbox,
            record: sandbox.record(),
            thresholds,
            began: Instant::now(),
        }
    }

    /// Prints a line and performs an action.
    pub(super) async fn act(&self, line: &str, action: Action) -> Result<()> {
        print(&format!("{}  {line}", stamp(self.began.elapsed())));
        self.sandbox.act(action).await
    }

    /// Performs an action and waits for the step that shows it.
    pub(super) async fn acts(
        &self,
        line: &str,
        action: Action,
        step: Step,
    ) -> Result<TimelineEntry> {
        let newest = self.newest();
        self.act(line, action).await?;
        self.since(newest, step, Duration::ZERO).await
    }

    /// Injects a fault into the DNS of the member, or ends it, and waits until pods notice.
    pub(super) async fn dns(&self, fault: DnsFault) -> Result<TimelineEntry> {
        let since = self.newest();
        let (line, step) = match fault {
            DnsFault::None => (
                format!("mending DNS of {MEMBER}"),
                Step(Stage::DnsMended, true),
            ),
            fault => {
                let fault = format!("{fault:?}").to_lowercase();
                let line = format!("breaking DNS of {MEMBER}: {fault}");
                (line, Step(Stage::DnsBroken, false))
            }
        };
        let cluster = MEMBER.to_owned();
        self.act(&line, Action::Dns { cluster, fault }).await?;
        self.since(since, step, Duration::ZERO).await
    }

    /// Takes the power or the link of the member, or gives it back, and waits for the stage that shows it.
    pub(super) async fn outage(&self, fault: Outage, stage: Stage) -> Result<TimelineEntry> {
        let line = match fault {
            Outage::None => format!("restoring {MEMBER}"),
            Outage::PowerOff => format!("powering {MEMBER} off"),
            Outage::LinkCut => format!("cutting the link between {MEMBER} and the control plane"),
        };
        let cluster = MEMBER.to_owned();
        let action = Action::Outage { cluster, fault };
        self.acts(&line, action, Step(stage, fault == Outage::None))
            .await
    }

    /// Waits for the first such step of the member after `cause`, within a limit after it.
    pub(super) async fn after(
        &self,
        cause: &TimelineEntry,
        step: Step,
        limit: Duration,
    ) -> Result<TimelineEntry> {
        self.within(step, cause.id, cause.at, limit).await
    }

    /// Waits for the first such step after the entry of that id, within a limit from now.
    pub(super) async fn since(
        &self,
        id: u64,
        step: Step,
        limit: Duration,
    ) -> Result<TimelineEntry> {
        self.within(step, id, Instant::now(), limit).await
    }

    async fn within(
        &self,
        step: Step,
        since: u64,
        from: Instant,
        limit: Duration,
    ) -> Result<TimelineEntry> {
        let wanted = |entry: &&TimelineEntry| {
            let cluster = entry.cluster.as_deref();
            let is_ours = cluster.is_none_or(|cluster| cluster == MEMBER);
            entry.id > since && is_ours && entry.step() == step
        };
        let mut timeline = self.record.timeline.clone();
        let waiting = async {
            let timeline =
                timeline.wait_for(|timeline| timeline.iter().any(|entry| wanted(&entry)));
            let timeline = timeline.await.ok()?;
            timeline.iter().find(wanted).cloned()
        };
        if let Ok(Some(entry)) = timeout_at(from + limit + SLACK, waiting).await {
            return Ok(entry);
        }
        let Step(stage, good) = step;
        let direction = if good { "towards" } else { "away from" };
        let what = format!("{stage:?} {direction} health");
        self.missed(&what, limit, since)
    }

    /// Waits until `is` holds, within a limit from now, and returns the state then.
    pub(super) async fn reach(
        &self,
        what: &str,
        limit: Duration,
        is: impl Fn(&State) -> bool,
    ) -> Result<State> {
        let newest = self.newest();
        let mut state = self.record.state.clone();
        let deadline = Instant::now() + limit + SLACK;
        match timeout_at(deadline, state.wait_for(|state| is(state))).await {
            Ok(Ok(state)) => Ok(State::clone(&state)),
            _ => self.missed(what, limit, newest),
        }
    }

    /// Fails with the expectation, its limit, and the observations since the entry of that id.
    fn missed<T>(&self, what: &str, limit: Duration, since: u64) -> Result<T> {
        bail!(
            "expected: {what} within {:.1} s (and {} s for a busy machine); observed: {}",
            limit.as_secs_f64(),
            SLACK.as_secs(),
            self.observed_since(since)
        )
    }

    /// Waits until some time after an entry.
    pub(super) async fn until_after(&self, since: &TimelineEntry, duration: Duration) {
        sleep_until(since.at + duration).await;
    }

    /// Returns the id of the newest entry.
    pub(super) fn newest(&self) -> u64 {
        let timeline = self.record.timeline.borrow();
        timeline.last().map_or(0, |entry| entry.id)
    }

    pub(super) fn state(&self) -> State {
        State::clone(&self.record.state.borrow())
    }

    /// Returns the node whose agent is the member's leader.
    pub(super) fn leader(&self) -> Result<String> {
        self.sandbox.leader(MEMBER)
    }

    fn observed_since(&self, id: u64) -> String {
        let timeline = self.record.timeline.borrow();
        let texts = timeline.iter().filter(|entry| entry.id > id);
        let texts: Vec<_> = texts.map(|entry| entry.text.as_str()).collect();
        if texts.is_empty() {
            "nothing".to_owned()
        } else {
            texts.join("; ")
        }
    }
}
