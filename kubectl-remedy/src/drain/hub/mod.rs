//! The steps of a drain on a hub of placements: a taint of the MemberCluster, a Remedy where the hub has such, and, once
//! the traffic has left, evictions, which budgets bound.
//!
//! - `placements`: the departure of each, with the clusters that others drain at the same time.
//! - `evictions`: those of the drain, again and again until the cluster is empty.

mod evictions;
mod placements;

use std::collections::BTreeMap;
use std::time::Duration;

use jiff::Timestamp;
use karmada_api::{MultiClusterIngress, Remedy};
use kube::{Client, ResourceExt};
use placement_rules::drain::Departure;
use tokio::time::{Instant, sleep, timeout};

use self::evictions::evict_all;
pub(super) use self::evictions::take_back;
use self::placements::{Hub, namespaced};
use super::observed::{Observed, TRAFFIC_LIMIT};
use super::progress::{Left, Progress, report};
use super::remedy::{name, remedy};
use super::survey::refuse;
use super::target::{Effect, Target};
use crate::answer::Answer;
use crate::args::{DrainArgs, DryRun};
use crate::block::{expiry, own, tell, write};
use crate::error::Error;
use crate::fleet::FleetSnapshot;
use crate::lists::{if_served, serves};
use crate::table::Table;
use crate::terminal;

/// The time between two looks at the rest.
const PERIOD: Duration = Duration::from_secs(2);

/// Drains a cluster.
pub(super) async fn drain(
    args: &DrainArgs,
    target: &Target,
    client: &Client,
    now: Timestamp,
) -> Result<Answer, Error> {
    let end = expiry(now, args.length)?;
    let dry_run = args.dry_run.dry_run;
    let departures = departures(args, client, now).await?;
    print(&departures);
    if is_short(&departures) && !args.force {
        return Ok(refuse(&args.cluster));
    }
    let known = known(&args.cluster, client, now).await?;
    let is_new = target.taint(Effect::KeepAway, dry_run).await?;
    if is_new && !args.force && dry_run == DryRun::None {
        let again = self::departures(args, client, now).await?;
        if is_short(&again) {
            print(&again);
            target.untaint(dry_run).await?;
            return Ok(refuse(&args.cluster));
        }
    }
    let takes_traffic = matches!(known, Known::Remedies { .. });
    match known {
        Known::Unserved => terminal::print_error(
            "This hub has no Remedies, so that nothing takes the traffic of ingresses away.",
        ),
        Known::Remedies { is_there } => {
            let remedy = remedy(&args.cluster, end, args.reason.as_deref());
            write(client, &remedy, dry_run).await?;
            tell(&remedy.name_any(), is_there, dry_run);
        }
    }
    if dry_run == DryRun::None {
        terminal::print_error(&format!(
            "`kubectl remedy uncordon {}` takes all of it back.",
            args.cluster
        ));
    }
    let start = Instant::now();
    let waits = args.workloads || args.wait.is_some();
    if takes_traffic && waits && dry_run == DryRun::None {
        let left = traffic(args, client).await?;
        if !left.is_empty() {
            return Ok(report(&args.cluster, &left));
        }
    }
    if !args.workloads {
        return Ok(Answer::Yes);
    }
    let namespaced = namespaced(&args.cluster, client).await?;
    if namespaced > 0 {
        terminal::print_error(&format!(
            "{namespaced} ResourcePlacements stay in {}: evictions are not for them",
            args.cluster
        ));
    }
    let limit = args.wait.map(|limit| limit.saturating_sub(start.elapsed()));
    empty(args, limit, client).await
}

/// Whether a hub has Remedies, and the one of the drain.
enum Known {
    Unserved,
    Remedies { is_there: bool },
}

async fn known(cluster: &str, client: &Client, now: Timestamp) -> Result<Known, Error> {
    let read = FleetSnapshot::read_remedies(client, now).await;
    Ok(match if_served::<Remedy, _>(client, read).await? {
        Some(fleet) => Known::Remedies {
            is_there: own(&fleet, &name(cluster))?.is_some(),
        },
        None => Known::Unserved,
    })
}

/// Returns the fates of placements in the drain. Even if workloads stay, it takes a place from those that leave others.
async fn departures(
    args: &DrainArgs,
    client: &Client,
    now: Timestamp,
) -> Result<BTreeMap<String, Departure>, Error> {
    let effect = if args.workloads {
        Effect::DriveOut
    } else {
        Effect::KeepAway
    };
    let hub = Hub::read(client).await?;
    Ok(hub.departures(&args.cluster, effect, now))
}

fn is_short(departures: &BTreeMap<String, Departure>) -> bool {
    let mut departures = departures.values();
    departures.any(|departure| matches!(departure, Departure::Short { .. }))
}

fn print(departures: &BTreeMap<String, Departure>) {
    let mut table = Table::new(["PLACEMENT", "EFFECT"]);
    for (placement, departure) in departures {
        table.push(vec![placement.clone(), departure.to_string()]);
    }
    if !table.is_empty() {
        terminal::print_error(table.to_string().trim_end());
    }
}

/// Waits until no ingress sends requests to the cluster. Returns those that still do.
async fn traffic(args: &DrainArgs, client: &Client) -> Result<Vec<Left>, Error> {
    if !serves::<MultiClusterIngress>(client).await? {
        terminal::print_error(
            "This hub has no ingresses, so that nothing waits for their traffic.",
        );
        return Ok(Vec::new());
    }
    let mut observed = Observed::of_traffic(client).await?;
    let limit = args.wait.unwrap_or(TRAFFIC_LIMIT);
    let mut progress = Progress::new();
    let left = observed.until_none(&mut progress, limit, |state| {
        vec![state.traffic(&args.cluster)]
    });
    left.await
}

/// Evicts the placements that may leave, and waits for them, if there is a limit.
async fn empty(
    args: &DrainArgs,
    limit: Option<Duration>,
    client: &Client,
) -> Result<Answer, Error> {
    let cluster = &*args.cluster;
    let dry_run = args.dry_run.dry_run;
    let mut left = evict_all(cluster, client, dry_run).await?;
    let Some(limit) = limit.filter(|_| dry_run == DryRun::None) else {
        return Ok(Answer::Yes);
    };
    let mut progress = Progress::new();
    let watching = async {
        loop {
            progress.show(std::slice::from_ref(&left));
            if left.items.is_empty() {
                return Ok::<_, Error>(());
            }
            sleep(PERIOD).await;
            left = evict_all(cluster, client, dry_run).await?;
        }
    };
    if let Ok(ended) = timeout(limit, watching).await {
        ended?;
    }
    Ok(report(cluster, &[left]))
}
