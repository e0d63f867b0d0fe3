//! `kubectl remedy drain` and `uncordon`: a cluster that is emptied for a while, and what is given back.
//!
//! ```text
//! survey → taint NoSchedule → survey again → Remedy → traffic has left → notes → taint NoExecute → workloads have left
//!          undo: both taints, the Remedy, then each note: its workload is scheduled anew
//! ```
//!
//! Each write can be the last: `uncordon` looks for each on its own, and takes back nothing else. Of two who drain two
//! clusters at once, each writes its taint before it looks for the last time, so that one of them sees the other's.
//!
//! - `target`: the cluster, in whichever API it is, and its taints. `survey`: what the rest lacks.
//! - `fleet` and `hub`: the steps on a Karmada or in a fleet of its own, and on a hub of placements.
//! - `observed`, `progress`: what is left, and how that is shown. `bindings`: the writes to them.

mod bindings;
mod fleet;
mod hub;
mod observed;
mod progress;
mod survey;
mod target;
#[cfg(test)]
mod tests;
mod uncordon;

use jiff::Timestamp;
use karmada_api::Remedy;
use karmada_api::remedy::DRAIN;
use kube::{Client, ResourceExt};

use self::progress::Left;
use self::target::{Home, Target};
pub(crate) use self::uncordon::run as uncordon;
use crate::answer::Answer;
use crate::args::DrainArgs;
use crate::block::blocking;
use crate::error::Error;
use crate::terminal;

/// Drains a cluster, or tells what that would do.
pub(crate) async fn run(
    args: &DrainArgs,
    client: &Client,
    now: Timestamp,
) -> Result<Answer, Error> {
    let cluster = &*args.cluster;
    let target = Target::find(cluster, client).await?;
    let target = target.ok_or_else(|| absent(cluster))?;
    if target.is_deleting {
        let problem = format!("cluster {cluster} is being deleted");
        return Err(Error::Unusable(problem));
    }
    match target.home {
        Home::Fleet => fleet::drain(args, &target, client, now).await,
        Home::Hub => hub::drain(args, &target, client, now).await,
    }
}

/// Returns the name of the Remedy that takes the traffic of a cluster away which is drained.
pub(crate) fn name(cluster: &str) -> String {
    format!("drain-{cluster}")
}

/// Returns that Remedy.
fn remedy(cluster: &str, end: Timestamp, reason: Option<&str>) -> Remedy {
    let mut remedy = blocking(&name(cluster), cluster, end, reason);
    let annotations = remedy.annotations_mut();
    annotations.insert(DRAIN.to_owned(), cluster.to_owned());
    remedy
}

fn absent(cluster: &str) -> Error {
    Error::Unusable(format!("there is no cluster {cluster}"))
}

/// Says that a cluster is not drained, for the reason that stands above.
fn refuse(cluster: &str) -> Answer {
    terminal::print_error(&format!(
        "{cluster} not drained: the other clusters cannot do without it; --force drains it all the same"
    ));
    Answer::No
}

/// Says what is left, if anything is.
fn report(cluster: &str, left: &[Left]) -> Answer {
    let items: Vec<_> = left.iter().flat_map(|left| &left.items).collect();
    for item in &items {
        terminal::print_error(&format!("{cluster}: {item}"));
    }
    items.is_empty().into()
}
