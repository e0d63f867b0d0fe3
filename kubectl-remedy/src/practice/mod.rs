//! `kubectl remedy practice`: a block that is over after a while, to see whether the other clusters can do without one, as
//! ARC of AWS practises zonal shifts.
//!
//! ```text
//! refused: it would take something down, or all is not well → Remedy → look again and again → outcome
//! ```
//!
//! The Remedy ends by itself, so that a program which is killed leaves nothing behind. It stays when it has: its status
//! has the outcome, and the next practice is by the same.
//!
//! - `health`: the parts that are well, and those that are worse than they were. `prometheus`: a query that must hold.
//! - `outcome`: how it has ended, and where that is recorded.

mod health;
mod outcome;
mod prometheus;
#[cfg(test)]
mod tests;

use std::time::Duration;

use jiff::Timestamp;
use karmada_api::TRAFFIC_CONTROL;
use karmada_api::remedy::EXPIRES_AT;
use kube::{Client, ResourceExt};
use objects::Key;
use tokio::time::{Instant, sleep, timeout};

use self::health::Health;
use self::outcome::Outcome;
use self::prometheus::Query;
use crate::answer::Answer;
use crate::args::{DryRun, PracticeArgs};
use crate::block::{blocking, expiry, own, tell, write};
use crate::error::Error;
use crate::fleet::FleetSnapshot;
use crate::plan::Plan;
use crate::terminal;
use crate::why::requires;

/// The time between two looks at the fleet.
const PERIOD: Duration = Duration::from_secs(5);
/// The time in which a look must end: meanwhile the traffic is away.
const LOOK_LIMIT: Duration = Duration::from_secs(30);
/// The looks in a row after which it is worse: one may be a rollout, or a lost answer.
const FAILURE_THRESHOLD: usize = 2;

/// Practises without a cluster.
pub(crate) async fn run(
    args: &PracticeArgs,
    client: &Client,
    now: Timestamp,
) -> Result<Answer, Error> {
    let fleet = FleetSnapshot::read(client, None, now).await?;
    let query = query(args)?;
    if let Some(reason) = obstacle(args, &fleet, query.as_ref()).await? {
        terminal::print_error(&format!("{} not practised: {reason}", args.cluster));
        return Ok(Answer::No);
    }
    let known = own(&fleet, &name(&args.cluster))?;
    let end = expiry(now, args.length)?;
    let mut remedy = blocking(&name(&args.cluster), &args.cluster, end, Some("practice"));
    let start = Health::of(&fleet, &args.cluster);
    let plan = Plan::of(fleet, vec![remedy.clone()], &args.controllers);
    plan.warn();
    terminal::print_error(plan.to_string().trim_end());
    if plan.cuts_off() {
        let problem = "nothing would serve a backend any more";
        terminal::print_error(&format!("{} not practised: {problem}", args.cluster));
        return Ok(Answer::No);
    }
    write(client, &remedy, DryRun::None).await?;
    tell(&remedy.name_any(), known.is_some(), DryRun::None);
    let watched = Watched {
        args,
        end,
        start,
        query,
        client,
    };
    let outcome = tokio::select! {
        outcome = watched.run() => outcome,
        _ = tokio::signal::ctrl_c() => Outcome::Interrupted("somebody has interrupted it".to_owned()),
    };
    if matches!(outcome, Outcome::Worse(_) | Outcome::Interrupted(_)) {
        let at = Timestamp::now().to_string();
        let annotations = remedy.annotations_mut();
        annotations.insert(EXPIRES_AT.to_owned(), at);
        write(client, &remedy, DryRun::None).await?;
    }
    terminal::print(&format!("{}: {outcome}\n", args.cluster));
    outcome.record(&remedy.name_any(), client).await?;
    Ok(outcome.is_well().into())
}

/// Returns the name of the Remedy of the practices of a cluster.
fn name(cluster: &str) -> String {
    format!("practice-{cluster}")
}

fn query(args: &PracticeArgs) -> Result<Option<Query>, Error> {
    let both = args.prometheus.as_ref().zip(args.holds.as_deref());
    both.map(|(url, promql)| Query::new(url, promql))
        .transpose()
}

/// Returns the reason why a practice cannot begin.
///
/// # Errors
/// Fails if there is no such cluster.
async fn obstacle(
    args: &PracticeArgs,
    fleet: &FleetSnapshot,
    query: Option<&Query>,
) -> Result<Option<String>, Error> {
    let cluster = fleet.require(&args.cluster)?;
    let acting = fleet.acting_on(cluster);
    let mut blocks = acting
        .iter()
        .filter(|(remedy, _)| requires(remedy, TRAFFIC_CONTROL));
    if let Some((remedy, cause)) = blocks.next() {
        let name = remedy.name_any();
        return Ok(Some(format!("Remedy {name} blocks it already: {cause}")));
    }
    if let Some(query) = query
        && let Err(reason) = query.holds().await
    {
        return Ok(Some(reason));
    }
    Ok(None)
}

/// A practice that goes on.
struct Watched<'a> {
    args: &'a PracticeArgs,
    end: Timestamp,
    /// The fleet before it.
    start: Health,
    query: Option<Query>,
    client: &'a Client,
}

impl Watched<'_> {
    /// Looks at the fleet again and again, until the time is over or it is worse than it was.
    async fn run(&self) -> Outcome {
        let (start, length) = (Instant::now(), self.args.length);
        let (mut was_blocked, mut bad_looks) = (false, 0);
        loop {
            let rest = length.saturating_sub(start.elapsed());
            // If the last look was bad, one more decides.
            if rest.is_zero() && bad_looks == 0 {
                return Outcome::of_whole(self.args, was_blocked);
            }
            sleep(rest.min(PERIOD)).await;
            let look = timeout(LOOK_LIMIT, self.look(&mut was_blocked)).await;
            let troubles = match look {
                Ok(Look::Over(reason)) => return Outcome::Replaced(reason),
                Ok(Look::At(troubles)) => troubles,
                Err(_) => vec!["the API or Prometheus does not answer in time".to_owned()],
            };
            for trouble in &troubles {
                terminal::print_error(&format!("worse: {trouble}"));
            }
            bad_looks = if troubles.is_empty() {
                0
            } else {
                bad_looks + 1
            };
            if bad_looks >= FAILURE_THRESHOLD {
                return Outcome::Worse(troubles);
            }
        }
    }

    async fn look(&self, was_blocked: &mut bool) -> Look {
        let cluster = &*self.args.cluster;
        let fleet = FleetSnapshot::read(self.client, None, Timestamp::now()).await;
        let fleet = match fleet {
            Ok(fleet) => fleet,
            Err(error) => return Look::At(vec![error.to_string()]),
        };
        if let Some(reason) = self.ended(&fleet) {
            return Look::Over(reason);
        }
        if let Ok(cluster) = fleet.require(cluster) {
            let mut actions = cluster.remedy_actions().iter();
            *was_blocked |= actions.any(|action| action == TRAFFIC_CONTROL);
        }
        let mut troubles = Health::of(&fleet, cluster).worse_than(&self.start);
        if let Some(query) = &self.query
            && let Err(trouble) = query.holds().await
        {
            troubles.push(trouble);
        }
        Look::At(troubles)
    }

    /// Returns why the Remedy is no longer that of this practice.
    fn ended(&self, fleet: &FleetSnapshot) -> Option<String> {
        let name = name(&self.args.cluster);
        let found = fleet.remedies.get(&Key::cluster_scoped(&name));
        let Some(found) = found else {
            return Some(format!("somebody has deleted Remedy {name}"));
        };
        let end = found.annotations().get(EXPIRES_AT);
        let is_ours = end.is_some_and(|end| *end == self.end.to_string());
        (!is_ours).then(|| format!("somebody has changed the end of Remedy {name}"))
    }
}

/// The result of a look at the fleet.
enum Look {
    /// The parts that are worse than they were.
    At(Vec<String>),
    /// The practice is over, for this reason.
    Over(String),
}
