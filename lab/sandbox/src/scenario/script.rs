//! How a scenario acts, and waits for what must follow.

use std::time::Duration;

use anyhow::{Result, bail};
use tokio::time::{Instant, sleep_until, timeout_at};

use super::timeline::stamp;
use crate::facts::DnsFault;
use crate::picture::{Happened, Stage, State, Step};
use crate::record::Record;
use crate::terminal::say;
use crate::thresholds::Thresholds;
use crate::world::{Action, World};

/// The cluster that stories happen to.
pub(super) const MEMBER: &str = "member1";
/// Besides what is promised, on a machine that is busy with other things.
const SLACK: Duration = Duration::from_secs(5);

/// A scenario that is being played.
pub(super) struct Script<'a> {
    world: &'a World,
    pub(super) record: Record,
    pub(super) thresholds: Thresholds,
    pub(super) began: Instant,
}

impl<'a> Script<'a> {
    pub(super) fn new(world: &'a World, thresholds: Thresholds) -> Self {
        Self {
            world,
            record: world.record(),
            thresholds,
            began: Instant::now(),
        }
    }

    /// Does something, and says so.
    pub(super) async fn act(&self, saying: &str, action: Action) -> Result<()> {
        say(&format!("{}  {saying}", stamp(self.began.elapsed())));
        self.world.act(action).await
    }

    /// Breaks the DNS of the member, or mends it, and waits until pods notice.
    pub(super) async fn dns(&self, fault: DnsFault) -> Result<Happened> {
        let since = self.newest();
        let (saying, step) = match fault {
            DnsFault::None => (
                format!("mending DNS of {MEMBER}"),
                Step(Stage::DnsMended, true),
            ),
            fault => {
                let fault = format!("{fault:?}").to_lowercase();
                let saying = format!("breaking DNS of {MEMBER}: {fault}");
                (saying, Step(Stage::DnsBroken, false))
            }
        };
        let cluster = MEMBER.to_owned();
        self.act(&saying, Action::Dns { cluster, fault }).await?;
        self.since(since, step, Duration::ZERO).await
    }

    /// Waits for the first such step of the member after `cause`, which must come within so long
    /// after it.
    pub(super) async fn after(
        &self,
        cause: &Happened,
        step: Step,
        limit: Duration,
    ) -> Result<Happened> {
        self.within(step, cause.id, cause.at, limit).await
    }

    /// Waits for the first such step after that id, which must come within so long from now.
    pub(super) async fn since(&self, id: u64, step: Step, limit: Duration) -> Result<Happened> {
        self.within(step, id, Instant::now(), limit).await
    }

    async fn within(
        &self,
        step: Step,
        since: u64,
        from: Instant,
        limit: Duration,
    ) -> Result<Happened> {
        let wanted = |happened: &&Happened| {
            let cluster = happened.cluster.as_deref();
            let is_ours = cluster.is_none_or(|cluster| cluster == MEMBER);
            happened.id > since && is_ours && happened.step() == step
        };
        let mut story = self.record.story.clone();
        let waiting = async {
            let story = story.wait_for(|story| story.iter().any(|h| wanted(&h)));
            let story = story.await.ok()?;
            story.iter().find(wanted).cloned()
        };
        if let Ok(Some(happened)) = timeout_at(from + limit + SLACK, waiting).await {
            return Ok(happened);
        }
        let Step(stage, good) = step;
        bail!(
            "promised: {stage:?} {} health within {:.1} s (and {} s for a busy machine); seen: {}",
            if good { "towards" } else { "away from" },
            limit.as_secs_f64(),
            SLACK.as_secs(),
            self.seen_since(since)
        )
    }

    /// Waits until everything `is` so, which must be within so long from now.
    pub(super) async fn reach(
        &self,
        what: &str,
        limit: Duration,
        is: impl Fn(&State) -> bool,
    ) -> Result<State> {
        let mut state = self.record.state.clone();
        let deadline = Instant::now() + limit + SLACK;
        match timeout_at(deadline, state.wait_for(|state| is(state))).await {
            Ok(Ok(state)) => Ok(State::clone(&state)),
            _ => bail!(
                "promised: {what} within {limit:?}; seen: {:?}",
                self.state()
            ),
        }
    }

    /// Lets a fault last until that long after something happened.
    pub(super) async fn last(&self, since: &Happened, duration: Duration) {
        sleep_until(since.at + duration).await;
    }

    /// The id of the newest thing that happened.
    pub(super) fn newest(&self) -> u64 {
        let story = self.record.story.borrow();
        story.last().map_or(0, |happened| happened.id)
    }

    pub(super) fn state(&self) -> State {
        State::clone(&self.record.state.borrow())
    }

    /// The node whose agent leads those of the member.
    pub(super) fn leader(&self) -> Result<String> {
        self.world.leader(MEMBER)
    }

    fn seen_since(&self, id: u64) -> String {
        let story = self.record.story.borrow();
        let texts = story.iter().filter(|happened| happened.id > id);
        let texts: Vec<_> = texts.map(|happened| happened.text.as_str()).collect();
        if texts.is_empty() {
            "nothing".to_owned()
        } else {
            texts.join("; ")
        }
    }
}
