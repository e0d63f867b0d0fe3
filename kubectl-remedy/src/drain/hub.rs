//! The steps of a drain on a hub of placements: a taint of the MemberCluster, a Remedy where the hub has such, and
//! evictions, which budgets bound.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Debug;
use std::time::Duration;

use fleet_api::names::PARENT_PLACEMENT;
use fleet_api::{
    Binding, ClusterResourcePlacementEviction as Eviction, MemberCluster, Placement, PolicySnapshot,
};
use jiff::{SignedDuration, Timestamp};
use k8s_openapi::api::core::v1::Taint;
use karmada_api::Remedy;
use karmada_api::remedy::DRAIN;
use kube::api::{DeleteParams, ListParams, Preconditions};
use kube::{Api, Client, ResourceExt};
use objects::condition::find;
use objects::taint::NO_SCHEDULE;
use objects::{Metadata, Scope};
use placement_rules::drain::{Departure, DrainFacts, departure};
use placement_rules::eviction::{EXECUTED, is_decided};
use placement_rules::snapshot::latest_policy;
use serde::de::DeserializeOwned;
use tokio::time::{sleep, timeout};

use super::progress::{Left, Progress, report};
use super::remedy::{name, remedy};
use super::survey::refuse;
use super::target::{Effect, Target};
use crate::answer::Answer;
use crate::args::{DrainArgs, DryRun};
use crate::block::{expiry, is_ours, tell, write};
use crate::error::Error;
use crate::evict;
use crate::fleet::pages;
use crate::table::Table;
use crate::terminal;

/// The time between two looks at what is left.
const PERIOD: Duration = Duration::from_secs(2);
/// The time after which an eviction that a budget did not allow is tried again.
const RETRY: SignedDuration = SignedDuration::from_secs(15);

/// What a hub has.
struct Hub {
    clusters: Vec<MemberCluster>,
    placements: Vec<Placement>,
    policies: Vec<PolicySnapshot>,
    bindings: Vec<Binding>,
}

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
    let known = known(&args.cluster, client).await?;
    let is_new = target.taint(Effect::KeepAway, dry_run).await?;
    if is_new && !args.force && dry_run == DryRun::None {
        let again = self::departures(args, client, now).await?;
        if is_short(&again) {
            print(&again);
            target.untaint(dry_run).await?;
            return Ok(refuse(&args.cluster));
        }
    }
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
    empty(args, client).await
}

/// Whether a hub has Remedies, and the one of the drain.
enum Known {
    Unserved,
    Remedies { is_there: bool },
}

async fn known(cluster: &str, client: &Client) -> Result<Known, Error> {
    let remedies: Api<Remedy> = Api::all(client.clone());
    match remedies.list(&ListParams::default()).await {
        Ok(all) => {
            let name = name(cluster);
            let found = all.iter().find(|remedy| remedy.name_any() == name);
            if found.is_some_and(|found| !is_ours(found)) {
                let problem = format!(
                    "Remedy {name} exists and is not of `kubectl remedy`: rename it, or delete it"
                );
                return Err(Error::Unusable(problem));
            }
            Ok(Known::Remedies {
                is_there: found.is_some(),
            })
        }
        // Who has no right to a kind that is not served learns no more.
        Err(kube::Error::Api(status)) if [403, 404].contains(&status.code) => Ok(Known::Unserved),
        Err(source) => Err(Error::request("list remedies", source)),
    }
}

/// Returns what becomes of each placement in the cluster; nothing if workloads stay.
async fn departures(
    args: &DrainArgs,
    client: &Client,
    now: Timestamp,
) -> Result<BTreeMap<String, Departure>, Error> {
    if !args.workloads {
        return Ok(BTreeMap::new());
    }
    Ok(Hub::read(client).await?.departures(&args.cluster, now))
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

impl Hub {
    async fn read(client: &Client) -> Result<Self, Error> {
        let scope = &Scope::Cluster;
        let client = || client.clone();
        let (clusters, placements, policies, bindings) = futures::try_join!(
            all::<MemberCluster>(Api::all(client()), "MemberClusters"),
            all::<Placement>(Api::all_with(client(), scope), "ClusterResourcePlacements"),
            all::<PolicySnapshot>(
                Api::all_with(client(), scope),
                "ClusterSchedulingPolicySnapshots"
            ),
            all::<Binding>(Api::all_with(client(), scope), "ClusterResourceBindings"),
        )?;
        Ok(Self {
            clusters,
            placements,
            policies,
            bindings,
        })
    }

    /// Returns the placements that are leaving the cluster, each in words.
    fn leaving(&self, cluster: &str) -> Vec<String> {
        let leaving = self.bindings.iter().filter(|binding| {
            binding.metadata.is_deleting() && binding.spec.target_cluster == cluster
        });
        let leaving = leaving.map(|binding| {
            let placement = binding.metadata.label(PARENT_PLACEMENT);
            let placement = placement.unwrap_or_default();
            format!("ClusterResourcePlacement {placement} is leaving")
        });
        leaving.collect()
    }

    /// Returns what becomes of each placement that is in the cluster.
    fn departures(&self, cluster: &str, now: Timestamp) -> BTreeMap<String, Departure> {
        let mut drained: BTreeSet<String> = self
            .clusters
            .iter()
            .filter(|cluster| cluster.spec.taints.iter().any(|taint| taint.key == DRAIN))
            .map(|cluster| cluster.metadata.name().to_owned())
            .collect();
        drained.insert(cluster.to_owned());
        let clusters = self.clusters.iter().cloned().map(|mut one| {
            if one.metadata.name() == cluster {
                one.spec.taints.push(Taint {
                    key: DRAIN.to_owned(),
                    effect: NO_SCHEDULE.to_owned(),
                    ..Taint::default()
                });
            }
            one
        });
        let clusters: Vec<MemberCluster> = clusters.collect();
        let mut departures = BTreeMap::new();
        for placement in &self.placements {
            let name = placement.metadata.name();
            let bindings = of_placement(&self.bindings, |binding| &binding.metadata, name);
            let policies = of_placement(&self.policies, |policy| &policy.metadata, name);
            let is_here = |binding: &&Binding| binding.spec.target_cluster == cluster;
            if !bindings.iter().any(is_here) {
                continue;
            }
            let Some(policy) = latest_policy(&policies) else {
                continue;
            };
            let departure = departure(&DrainFacts {
                placement,
                policy,
                bindings: &bindings,
                clusters: &clusters,
                drained: &drained,
                now,
            });
            if let Some(departure) = departure {
                departures.insert(name.to_owned(), departure);
            }
        }
        departures
    }
}

/// Returns the objects that were made for a placement.
fn of_placement<'a, K>(
    objects: &'a [K],
    metadata: impl Fn(&K) -> &kube::core::ObjectMeta,
    placement: &str,
) -> Vec<&'a K> {
    let own = objects.iter();
    own.filter(|object| metadata(object).label(PARENT_PLACEMENT) == Some(placement))
        .collect()
}

/// Reads objects page by page.
async fn all<K>(objects: Api<K>, kinds: &str) -> Result<Vec<K>, Error>
where
    K: Clone + DeserializeOwned + Debug,
{
    let (objects, mut found) = (&objects, Vec::new());
    let request = |page| async move { objects.list(&page).await };
    let read = pages(ListParams::default(), request, |object| found.push(object)).await;
    read.map_err(|source| Error::request(format!("list {kinds}"), source))?;
    Ok(found)
}

/// Returns the number of placements of namespaces in the cluster; 0 on a hub whose definitions are older than these.
async fn namespaced(cluster: &str, client: &Client) -> Result<usize, Error> {
    let bindings: Api<Binding> = Api::all_with(client.clone(), &Scope::Namespaced);
    match bindings.list(&ListParams::default()).await {
        Ok(all) => {
            let here = all.iter();
            let here = here.filter(|binding| binding.spec.target_cluster == cluster);
            Ok(here.count())
        }
        Err(kube::Error::Api(status)) if status.code == 404 => Ok(0),
        Err(source) => Err(Error::request("list ResourceBindings", source)),
    }
}

/// Evicts what may leave, and waits for it if that is asked for.
async fn empty(args: &DrainArgs, client: &Client) -> Result<Answer, Error> {
    let cluster = &*args.cluster;
    let dry_run = args.dry_run.dry_run;
    let mut left = evict_all(cluster, client, dry_run).await?;
    let Some(limit) = args.wait.filter(|_| dry_run == DryRun::None) else {
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

/// Evicts the placements that are in the cluster, each unless an eviction of ours is still to be decided, and returns
/// those that are left.
async fn evict_all(cluster: &str, client: &Client, dry_run: DryRun) -> Result<Left, Error> {
    let now = Timestamp::now();
    let hub = Hub::read(client).await?;
    let departures = hub.departures(cluster, now);
    let evictions = evictions(cluster, client).await?;
    let mut items = hub.leaving(cluster);
    for (placement, departure) in departures {
        if !departure.is_evictable() {
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

/// Returns what an eviction says of itself.
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
    is_decided(eviction) && created.is_none_or(|at| now.duration_since(at.0) >= RETRY)
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
        let parameters = DeleteParams {
            dry_run: dry_run == DryRun::Server,
            preconditions: Some(Preconditions {
                uid: eviction.metadata.uid.clone(),
                resource_version: None,
            }),
            ..DeleteParams::default()
        };
        let evictions: Api<Eviction> = Api::all(client.clone());
        match evictions.delete(name, &parameters).await {
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
pub(super) async fn uncordon(
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
