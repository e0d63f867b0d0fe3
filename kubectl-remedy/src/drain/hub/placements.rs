//! The departures of placements from the clusters of a hub that are emptied.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Debug;

use fleet_api::names::PARENT_PLACEMENT;
use fleet_api::{Binding, MemberCluster, Placement, PolicySnapshot};
use jiff::Timestamp;
use k8s_openapi::api::core::v1::Taint;
use karmada_api::remedy::DRAIN;
use kube::api::ListParams;
use kube::{Api, Client, Resource};
use objects::taint::NO_SCHEDULE;
use objects::{Metadata, Scope};
use placement_rules::drain::{Departure, DrainFacts, departure};
use placement_rules::snapshot::latest_policy;
use serde::de::DeserializeOwned;

use crate::drain::target::Effect;
use crate::error::Error;
use crate::lists::list_each;

/// The objects of a hub.
pub(super) struct Hub {
    clusters: Vec<MemberCluster>,
    placements: Vec<Placement>,
    policies: Vec<PolicySnapshot>,
    bindings: Vec<Binding>,
}

impl Hub {
    /// Reads it.
    pub(super) async fn read(client: &Client) -> Result<Self, Error> {
        let scope = &Scope::Cluster;
        let (clusters, placements, policies, bindings) = futures::try_join!(
            all::<MemberCluster>(client, &()),
            all::<Placement>(client, scope),
            all::<PolicySnapshot>(client, scope),
            all::<Binding>(client, scope),
        )?;
        Ok(Self {
            clusters,
            placements,
            policies,
            bindings,
        })
    }

    /// Returns the placements that are leaving the cluster, each in words.
    pub(super) fn leaving(&self, cluster: &str) -> Vec<String> {
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

    /// Returns `true` if a placement is in the cluster.
    pub(super) fn has(&self, placement: &str, cluster: &str) -> bool {
        let bindings = of_placement(&self.bindings, |binding| &binding.metadata, placement);
        let mut bindings = bindings.iter();
        bindings.any(|binding| binding.spec.target_cluster == cluster)
    }

    /// Returns the fate of each placement that the taint drives out of the cluster, and of those that leave another which
    /// is drained, and would have come to this one.
    pub(super) fn departures(
        &self,
        cluster: &str,
        effect: Effect,
        now: Timestamp,
    ) -> BTreeMap<String, Departure> {
        let clusters = self.clusters.iter().filter(|cluster| {
            let mut taints = cluster.spec.taints.iter();
            taints.any(|taint| taint.key == DRAIN)
        });
        let drained = clusters.map(|cluster| cluster.metadata.name().to_owned());
        let others: BTreeSet<String> = drained.filter(|name| name != cluster).collect();
        let mut all = others.clone();
        all.insert(cluster.to_owned());
        let is_emptied = effect == Effect::DriveOut;
        let emptied = if is_emptied { &all } else { &others };
        let without = self.departures_from(&others, &others, now);
        let mut departures = self.departures_from(&all, emptied, now);
        departures.retain(|placement, departure| {
            let leaves = is_emptied && self.has(placement, cluster);
            leaves || without.get(placement) != Some(&*departure)
        });
        departures
    }

    /// Returns the fate of each placement that is in the clusters `emptied`, while those of `tainted` get nothing new.
    fn departures_from(
        &self,
        tainted: &BTreeSet<String>,
        emptied: &BTreeSet<String>,
        now: Timestamp,
    ) -> BTreeMap<String, Departure> {
        let clusters = self.clusters.iter();
        let clusters = clusters.map(|cluster| with_drains(cluster, tainted));
        let clusters: Vec<MemberCluster> = clusters.collect();
        let mut departures = BTreeMap::new();
        for placement in &self.placements {
            let name = placement.metadata.name();
            let bindings = of_placement(&self.bindings, |binding| &binding.metadata, name);
            let policies = of_placement(&self.policies, |policy| &policy.metadata, name);
            let Some(policy) = latest_policy(&policies) else {
                continue;
            };
            let departure = departure(&DrainFacts {
                placement,
                policy,
                bindings: &bindings,
                clusters: &clusters,
                drained: emptied,
                now,
            });
            if let Some(departure) = departure {
                departures.insert(name.to_owned(), departure);
            }
        }
        departures
    }
}

/// Returns a cluster as it is once these have the taint of a drain, and no other.
fn with_drains(cluster: &MemberCluster, tainted: &BTreeSet<String>) -> MemberCluster {
    let mut cluster = cluster.clone();
    cluster.spec.taints.retain(|taint| taint.key != DRAIN);
    if tainted.contains(cluster.metadata.name()) {
        cluster.spec.taints.push(Taint {
            key: DRAIN.to_owned(),
            effect: NO_SCHEDULE.to_owned(),
            ..Taint::default()
        });
    }
    cluster
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

/// Reads all objects of a kind.
async fn all<K>(client: &Client, kind: &K::DynamicType) -> Result<Vec<K>, Error>
where
    K: Resource + Clone + DeserializeOwned + Debug,
{
    let objects: Api<K> = Api::all_with(client.clone(), kind);
    let mut found = Vec::new();
    let read = list_each(&objects, ListParams::default(), |object| found.push(object)).await;
    read.map_err(|source| Error::request(format!("list {}s", K::kind(kind)), source))?;
    Ok(found)
}

/// Returns the number of placements of namespaces in the cluster; 0 on a hub whose definitions are older than these.
pub(super) async fn namespaced(cluster: &str, client: &Client) -> Result<usize, Error> {
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
