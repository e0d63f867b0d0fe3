//! The evictions of a drain, by which the placements of a hub leave the cluster within their budgets.

use fleet_api::ClusterResourcePlacementEviction as Eviction;
use jiff::{SignedDuration, Timestamp};
use karmada_api::remedy::DRAIN;
use kube::api::ListParams;
use kube::{Api, Client, ResourceExt};
use objects::Metadata;
use objects::condition::find;
use objects::write::{Guard, ObjectRef, Write};
use placement_rules::eviction::{EXECUTED, is_terminal};
use serde_json::Value;

use super::placements::Hub;
use crate::args::DryRun;
use crate::drain::progress::Left;
use crate::drain::target::Effect;
use crate::error::Error;
use crate::send::send;
use crate::{evict, terminal};

/// The time after which an eviction that a budget did not allow is tried again.
const RETRY: SignedDuration = SignedDuration::from_secs(15);

/// Evicts the placements that are in the cluster, each unless an eviction of ours is still to be decided, and returns
/// those that are left.
pub(super) async fn evict_all(
    cluster: &str,
    client: &Client,
    dry_run: DryRun,
) -> Result<Left, Error> {
    let now = Timestamp::now();
    let hub = Hub::read(client).await?;
    let departures = hub.departures(cluster, Effect::DriveOut, now);
    let evictions = evictions(cluster, client).await?;
    let mut items = hub.leaving(cluster);
    for (placement, departure) in departures {
        if !departure.is_evictable() || !hub.has(&placement, cluster) {
            continue;
        }
        let mut own = evictions.iter();
        let former = own.find(|one| one.spec.placement_name == placement);
        items.push(format!(
            "ClusterResourcePlacement {placement} is there: {}",
            former.map_or("it was not evicted yet", outcome)
        ));
        if let Some(former) = former {
            if !is_worth_another(former, now) {
                continue;
            }
            delete(former, client, dry_run).await?;
        }
        let mut eviction = evict::eviction(&placement, cluster);
        let labels = eviction.labels_mut();
        labels.insert(DRAIN.to_owned(), cluster.to_owned());
        evict::create(&eviction, client, dry_run).await?;
    }
    let step = "workloads";
    Ok(Left { step, items })
}

/// Returns the words of an eviction about itself.
fn outcome(eviction: &Eviction) -> &str {
    let conditions = eviction.status.as_ref().map(|status| &status.conditions);
    let executed = conditions.and_then(|conditions| find(conditions, EXECUTED));
    executed.map_or("its eviction is not decided yet", |one| {
        one.message.as_str()
    })
}

/// Returns `true` if an eviction is decided, each of which is once, and was so a while ago.
fn is_worth_another(eviction: &Eviction, now: Timestamp) -> bool {
    let created = eviction.metadata.creation_timestamp.as_ref();
    is_terminal(eviction) && created.is_none_or(|at| now.duration_since(at.0) >= RETRY)
}

/// Returns the evictions of the drain of a cluster.
async fn evictions(cluster: &str, client: &Client) -> Result<Vec<Eviction>, Error> {
    let evictions: Api<Eviction> = Api::all(client.clone());
    let own = ListParams::default().labels(&format!("{DRAIN}={cluster}"));
    let found = evictions.list(&own).await;
    let attempt = "list ClusterResourcePlacementEvictions";
    Ok(found
        .map_err(|source| Error::request(attempt, source))?
        .items)
}

async fn delete(eviction: &Eviction, client: &Client, dry_run: DryRun) -> Result<(), Error> {
    let name = eviction.metadata.name();
    if dry_run != DryRun::Client {
        let object = ObjectRef::of(eviction, &());
        let write = Write::delete("eviction", object).guarded(Guard::Uid);
        match send::<Value>(client, &write, dry_run).await {
            Err(kube::Error::Api(status)) if status.code == 404 => return Ok(()),
            deleted => {
                let attempt = format!("delete ClusterResourcePlacementEviction {name}");
                deleted.map_err(|source| Error::request(attempt, source))?;
            }
        }
    }
    let suffix = dry_run.suffix();
    terminal::print(&format!(
        "clusterresourceplacementeviction.placement.kubernetes-fleet.io/{name} deleted{suffix}\n"
    ));
    Ok(())
}

/// Takes the evictions of a drain back. Returns `true` if there were any.
pub(in crate::drain) async fn take_back(
    cluster: &str,
    client: &Client,
    dry_run: DryRun,
) -> Result<bool, Error> {
    let evictions = evictions(cluster, client).await?;
    for eviction in &evictions {
        delete(eviction, client, dry_run).await?;
    }
    Ok(!evictions.is_empty())
}
