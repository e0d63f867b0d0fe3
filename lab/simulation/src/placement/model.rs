//! Which clusters the documentation of placements allows, and which it demands.

use std::collections::BTreeMap;

use serde_json::Value;

use super::snapshot::{Maps, Snapshot};
use crate::harness::value::{is_deleting, items, text};

/// Where a cluster is, as far as policies decide by that.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Place {
    pub(crate) region: String,
    is_tainted: bool,
}

impl Place {
    pub(crate) fn of(cluster: &Value) -> Self {
        Self {
            region: text(cluster, "/metadata/labels/region").to_owned(),
            is_tainted: items(cluster, "/spec/taints").next().is_some(),
        }
    }

    /// Returns `true` if a policy picks clusters here.
    pub(crate) fn fits(&self, policy: &Value) -> bool {
        let region = "/affinity/clusterAffinity/requiredDuringSchedulingIgnoredDuringExecution\
                      /clusterSelectorTerms/0/labelSelector/matchLabels/region";
        let region = policy.pointer(region).and_then(Value::as_str);
        let is_tolerated = items(policy, "/tolerations").next().is_some();
        region.is_none_or(|region| region == self.region) && (is_tolerated || !self.is_tainted)
    }
}

/// Returns the number of clusters that a policy asks for, if it asks for one.
pub(crate) fn number(policy: &Value) -> Option<usize> {
    let number = policy["numberOfClusters"].as_u64()?;
    usize::try_from(number).ok()
}

/// Returns `true` if a placement of this spec writes nothing in members.
pub(crate) fn only_reports(spec: &Value) -> bool {
    text(spec, "/strategy/applyStrategy/type") == "ReportDiff"
}

/// Returns a policy without its number: another number alone moves nothing.
pub(crate) fn without_number(policy: &Value) -> Value {
    let mut policy = policy.clone();
    policy["numberOfClusters"] = Value::Null;
    policy
}

/// Returns the clusters that stay in the fleet, with their places.
pub(crate) fn fleet(snapshot: &Snapshot) -> BTreeMap<String, Place> {
    let staying = snapshot
        .clusters
        .iter()
        .filter(|(_, one)| !is_deleting(one));
    staying
        .map(|(name, cluster)| (name.clone(), Place::of(cluster)))
        .collect()
}

/// Returns `true` if a policy that spreads forbids another cluster in `region`, besides those in `taken`.
pub(crate) fn is_crowded(
    policy: &Value,
    fleet: &BTreeMap<String, Place>,
    taken: &[&Place],
    region: &str,
) -> bool {
    if items(policy, "/topologySpreadConstraints").next().is_none() {
        return false;
    }
    let count = |region: &str| taken.iter().filter(|place| place.region == region).count();
    let fewest = fleet.values().map(|place| count(&place.region)).min();
    count(region) + 1 > fewest.unwrap_or_default() + 1
}

/// Returns the maps of an application in members: `Err` if its selectors contradict the hub, and `None` if there is
/// nothing.
pub(crate) fn selected(
    snapshot: &Snapshot,
    placement: &Value,
    app: &str,
) -> Result<Option<Maps>, ()> {
    let scope = text(placement, "/spec/resourceSelectors/0/selectionScope");
    let Some(maps) = snapshot.apps.get(app) else {
        return if scope == "NamespaceWithResourceSelectors" {
            Err(())
        } else {
            Ok(None)
        };
    };
    let mut maps = maps.clone();
    maps.retain(|_, map| match scope {
        "NamespaceOnly" => false,
        "NamespaceWithResourceSelectors" => map.tier == "x",
        _ => true,
    });
    Ok(Some(maps))
}
