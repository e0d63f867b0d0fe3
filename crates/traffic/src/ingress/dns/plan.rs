use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use karmada_api::DnsEndpoint;
use objects::Key;
use objects::write::{Action, Plan, Write};

use super::problem::DnsProblem;
use super::records::{Wanted, host_of, origins, without};
use crate::ingress::ServedClusters;
use crate::ingress::kubernetes::{compare, cut, ingress_of, stale, update};

/// Plans the writes for `ingress` from `existing`, its objects and those with the name of a wanted one, to `wanted`. The news is
/// the problems that a user must correct. No write depends on another, and an object that exists comes first, as a cluster may
/// have to leave it.
///
/// # Errors
/// Returns an error if a field of an object does not serialize.
pub fn plan(
    ingress: &Key,
    wanted: Wanted,
    existing: &[Arc<DnsEndpoint>],
) -> serde_json::Result<Plan<DnsProblem>> {
    let Wanted {
        endpoints,
        mut problems,
    } = wanted;
    let named = existing.iter().map(|found| (Key::of(&**found), found));
    let named: BTreeMap<Key, &Arc<DnsEndpoint>> = named.collect();
    for endpoint in &endpoints {
        let Some(found) = named.get(&Key::of(endpoint)) else {
            continue;
        };
        // Led to the same addresses, it is served for both.
        if let Some(by) = ingress_of(&found.metadata).filter(|owner| owner != ingress)
            && found.spec != endpoint.spec
        {
            let host = host_of(endpoint).to_owned();
            problems.insert(DnsProblem::Taken { host, by });
        }
    }
    let mut writes: Vec<Write> = stale(ingress, &endpoints, existing).map(cut).collect();
    // The clashes are the problems above.
    writes.extend(compare(ingress, endpoints, existing, &mut BTreeSet::new())?);
    writes.sort_by_key(|write| matches!(write.action, Action::Create(_)));
    Ok(Plan {
        writes,
        events: problems.into_iter().collect(),
        wake_at: None,
    })
}

/// Returns the deletions of the objects of an ingress.
pub fn removal(existing: &[Arc<DnsEndpoint>]) -> Vec<Write> {
    existing.iter().map(cut).collect()
}

/// Returns the writes that take the clusters in `held` out of `existing`, and do nothing else. Services are hosts here.
///
/// # Errors
/// Returns an error if a field of an object does not serialize.
pub fn cutting(
    existing: &[Arc<DnsEndpoint>],
    held: &ServedClusters,
) -> serde_json::Result<Vec<Write>> {
    let mut writes = Vec::new();
    for endpoint in existing {
        let Some(clusters) = held.get(host_of(endpoint)) else {
            continue;
        };
        match without(endpoint, |origin| clusters.contains(&origin.cluster)) {
            Some(rest) => writes.extend(update(&rest, &**endpoint)?),
            None => writes.push(cut(endpoint)),
        }
    }
    Ok(writes)
}

/// Returns the clusters to which objects lead, by host.
pub fn clusters(existing: &[Arc<DnsEndpoint>]) -> ServedClusters {
    let mut held = ServedClusters::new();
    for endpoint in existing {
        let clusters = origins(endpoint).into_iter().map(|origin| origin.cluster);
        let clusters: BTreeSet<String> = clusters.collect();
        if !clusters.is_empty() {
            held.entry(host_of(endpoint).to_owned())
                .or_default()
                .extend(clusters);
        }
    }
    held
}
