//! `kubectl remedy unblock`: deletes the Remedy of `block`, and nothing else.

use jiff::Timestamp;
use karmada_api::{Remedy, TRAFFIC_CONTROL};
use kube::{Client, ResourceExt};
use objects::Key;
use objects::write::{Guard, ObjectRef, Write};
use serde_json::Value;

use crate::answer::Answer;
use crate::args::{DryRun, UnblockArgs};
use crate::block::{is_ours, name};
use crate::error::Error;
use crate::fleet::{self, FleetSnapshot};
use crate::send::send;
use crate::terminal;
use crate::why::requires;

/// Ends the block of a cluster, and names the others that block it.
pub(crate) async fn run(
    args: &UnblockArgs,
    client: &Client,
    now: Timestamp,
) -> Result<Answer, Error> {
    let fleet = FleetSnapshot::read_remedies(client, now).await?;
    let cluster = &args.cluster;
    let name = name(cluster);
    let found = fleet.remedies.get(&Key::cluster_scoped(&name));
    let block = found.filter(|found| is_ours(found));
    if let Some(block) = block {
        let dry_run = args.dry_run.dry_run;
        delete(client, block, dry_run).await?;
        let suffix = dry_run.suffix();
        terminal::print(&format!(
            "remedy.remedy.karmada.io/{name} deleted{suffix}\n"
        ));
    } else {
        terminal::print_error(&format!(
            "no block of {cluster} by `kubectl remedy block` exists"
        ));
    }
    let ended = block.and_then(|block| block.uid());
    tell_others(&fleet, cluster, ended.as_deref(), client).await?;
    Ok(block.is_some().into())
}

/// Names the others that block a cluster, but for the Remedy with the uid `ended`.
pub(crate) async fn tell_others(
    fleet: &FleetSnapshot,
    cluster: &str,
    ended: Option<&str>,
    client: &Client,
) -> Result<(), Error> {
    let Some(found) = fleet::cluster(cluster, client).await? else {
        terminal::print_error(&format!("there is no cluster {cluster}"));
        return Ok(());
    };
    for (other, cause) in fleet.acting_on(&found) {
        let is_ended = ended.is_some() && other.metadata.uid.as_deref() == ended;
        if requires(other, TRAFFIC_CONTROL) && !is_ended {
            let other = other.name_any();
            terminal::print_error(&format!(
                "{cluster} stays blocked by Remedy {other}: {cause}"
            ));
        }
    }
    Ok(())
}

/// Deletes a Remedy, and no other of its name. Somebody else may have done so meanwhile.
pub(crate) async fn delete(client: &Client, block: &Remedy, dry_run: DryRun) -> Result<(), Error> {
    if dry_run == DryRun::Client {
        return Ok(());
    }
    // Not another one of that name, which somebody has just made.
    let write = Write::delete("remedy", ObjectRef::of(block, &())).guarded(Guard::Uid);
    let deleted = send::<Value>(client, &write, dry_run).await;
    match deleted {
        Ok(_) => Ok(()),
        Err(kube::Error::Api(status)) if status.code == 404 => Ok(()),
        Err(source) => {
            let attempt = format!("delete Remedy {}", block.name_any());
            Err(Error::request(attempt, source))
        }
    }
}
