//! The steps of a drain on a Karmada, or in a fleet of its own.

use jiff::Timestamp;
use kube::{Client, ResourceExt};
use propagation_rules::schedule::drain::note;
use tokio::time::Instant;

use super::bindings::write_all;
use super::observed::{Observed, State, TRAFFIC_LIMIT};
use super::progress::{Progress, report};
use super::remedy::remedy;
use super::survey::{Survey, refuse};
use super::target::{Effect, Target};
use crate::answer::Answer;
use crate::args::{DrainArgs, DryRun};
use crate::block::{expiry, tell, write};
use crate::error::Error;
use crate::terminal;

/// Drains a cluster.
pub(super) async fn drain(
    args: &DrainArgs,
    target: &Target,
    client: &Client,
    now: Timestamp,
) -> Result<Answer, Error> {
    let end = expiry(now, args.length)?;
    let survey = Survey::read(args, end, client, now).await?;
    survey.print();
    if survey.lacks() && !args.force {
        return Ok(refuse(&args.cluster));
    }
    let dry_run = args.dry_run.dry_run;
    let is_new = target.taint(Effect::KeepAway, dry_run).await?;
    if is_new && !args.force && dry_run == DryRun::None {
        let again = Survey::read(args, end, client, now).await?;
        if again.lacks() {
            again.print();
            target.untaint(dry_run).await?;
            return Ok(refuse(&args.cluster));
        }
    }
    let remedy = remedy(&args.cluster, end, args.reason.as_deref());
    write(client, &remedy, dry_run).await?;
    tell(&remedy.name_any(), survey.known.is_some(), dry_run);
    if dry_run == DryRun::None {
        terminal::print_error(&format!(
            "The block ends at {end}; `kubectl remedy uncordon {}` takes all of it back.",
            args.cluster
        ));
    }
    if !args.workloads && args.wait.is_none() {
        return Ok(Answer::Yes);
    }
    let mut observed = Observed::new(client).await?;
    if dry_run == DryRun::None {
        empty(args, target, &mut observed, client).await
    } else {
        observed.changed().await?;
        drive_out(args, target, &observed.state, client).await?;
        Ok(Answer::Yes)
    }
}

/// Waits until the traffic has left, has the workloads leave, and waits for them if that is asked for.
async fn empty(
    args: &DrainArgs,
    target: &Target,
    observed: &mut Observed,
    client: &Client,
) -> Result<Answer, Error> {
    let (start, cluster) = (Instant::now(), &*args.cluster);
    let limit = args.wait.unwrap_or(TRAFFIC_LIMIT);
    let mut progress = Progress::new();
    let left = observed.until_none(&mut progress, limit, |state| vec![state.traffic(cluster)]);
    let left = left.await?;
    if !args.workloads || !left.is_empty() {
        return Ok(report(cluster, &left));
    }
    drive_out(args, target, &observed.state, client).await?;
    progress.restart();
    if args.wait.is_none() {
        return Ok(Answer::Yes);
    }
    let limit = limit.saturating_sub(start.elapsed());
    let left = observed.until_none(&mut progress, limit, |state| {
        vec![state.traffic(cluster), state.workloads(cluster)]
    });
    let left = left.await?;
    let staying = observed.state.staying(cluster);
    if staying > 0 {
        terminal::print_error(&format!(
            "{staying} workloads stay in {cluster}: they tolerate its taint, or no policy schedules them"
        ));
    }
    Ok(report(cluster, &left))
}

/// Has the workloads leave, after a note on each binding that is to come back.
async fn drive_out(
    args: &DrainArgs,
    target: &Target,
    state: &State,
    client: &Client,
) -> Result<(), Error> {
    if !args.workloads {
        return Ok(());
    }
    let dry_run = args.dry_run.dry_run;
    let notes = state
        .all_bindings()
        .filter_map(|binding| note(binding, &args.cluster));
    let notes: Vec<_> = notes.collect();
    write_all(client, notes, "noted", dry_run).await?;
    target.taint(Effect::DriveOut, dry_run).await?;
    Ok(())
}
