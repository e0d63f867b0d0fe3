use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use karmada_api::DnsEndpoint;
use objects::Key;

use super::problem::DnsProblem;
use super::records::{Wanted, host_of, origins, without};
use crate::ingress::Held;
use crate::ingress::kubernetes::{Managed, Update, Write, compare, ingress_of};

/// The writes that lead to what is published.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct DnsPlan {
    /// Objects to create or update.
    pub writes: Vec<Write<DnsEndpoint>>,
    /// Objects of hosts that lead nowhere any more.
    pub stale: Vec<Arc<DnsEndpoint>>,
    /// The problems that a user must correct.
    pub problems: BTreeSet<DnsProblem>,
}

impl DnsPlan {
    /// Plans the writes for `ingress` from `existing`, its objects and those with the name of a wanted one, to `wanted`.
    ///
    /// # Errors
    /// Returns an error if a field of an object does not serialize.
    pub fn new(
        ingress: &Key,
        wanted: Wanted,
        existing: &[Arc<DnsEndpoint>],
    ) -> serde_json::Result<Self> {
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
        // These are the problems above.
        let mut clashes = BTreeSet::new();
        let compared = compare(ingress, endpoints, existing, &mut clashes)?;
        Ok(Self {
            writes: compared.writes,
            stale: compared.stale,
            problems,
        })
    }
}

/// Returns the plan that takes the clusters in `cut` out of `existing`, and does nothing else. Services are hosts here.
///
/// # Errors
/// Returns an error if a field of an object does not serialize.
pub fn cutting(existing: &[Arc<DnsEndpoint>], cut: &Held) -> serde_json::Result<DnsPlan> {
    let mut plan = DnsPlan::default();
    for endpoint in existing {
        let Some(clusters) = cut.get(host_of(endpoint)) else {
            continue;
        };
        let is_cut = |cluster: &str| clusters.contains(cluster);
        match without(endpoint, |origin| is_cut(&origin.cluster)) {
            Some(rest) => {
                let edits = rest.edits(endpoint)?;
                if !edits.is_empty() {
                    let existing = Arc::clone(endpoint);
                    plan.writes.push(Write::Update(Update { existing, edits }));
                }
            }
            None => plan.stale.push(Arc::clone(endpoint)),
        }
    }
    Ok(plan)
}

/// Returns the clusters to which objects lead, by host.
pub fn clusters(existing: &[Arc<DnsEndpoint>]) -> Held {
    let mut held = Held::new();
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
