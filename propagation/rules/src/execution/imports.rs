//! The `EndpointSlice`s of other clusters that Works bring to a member, and those that are withheld from it.

use std::collections::{BTreeMap, BTreeSet};

use k8s_openapi::api::discovery::v1::EndpointSlice;
use karmada_api::names::{PROVISION_CLUSTER, SERVICE_NAME, SOURCE_CLUSTER};
use objects::{GroupVersionKind, Key, Metadata};
use serde::Deserialize;
use serde_json::Value;

use traffic::ingress::{Admission, Candidate, ClusterFacts, admission_of, has_taker, readmitted};

/// The endpoints of a Service from one cluster, as a manifest has them.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct ServiceSlice {
    /// The Service.
    pub service: Key,
    /// The cluster whose endpoints they are; absent if they are the member's own, as Karmada collects them there.
    pub source: Option<String>,
    /// True if one of them takes requests.
    pub takes_requests: bool,
}

/// The slices that Works bring to a member for one Service.
#[derive(Clone, Debug)]
pub struct ImportFacts<'a> {
    /// The member.
    pub consumer: &'a str,
    /// The slices, those of the member itself among them.
    pub slices: &'a [&'a ServiceSlice],
    /// The clusters whose slices are said to be withheld. One that cannot be read stays so.
    pub withheld: &'a [String],
    /// Set if a Work for the member cannot be read: it may bring the endpoints of another cluster.
    pub has_unread: bool,
}

/// The blocked clusters whose slices Works bring to a member for one Service.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ImportBlocks {
    /// Those whose slices are withheld.
    pub withheld: BTreeSet<String>,
    /// Those whose slices stay, since no other cluster serves the Service.
    pub readmitted: BTreeSet<String>,
}

/// The effect of the block of its cluster on a slice.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Block {
    /// It is withheld from the member.
    Withheld,
    /// It stays there, since no other cluster serves its Service.
    Readmitted,
}

impl ServiceSlice {
    /// Reads a manifest. Returns `None` for one that is no slice of a Service.
    pub fn of(manifest: &Value) -> Option<Self> {
        if !is_slice(&GroupVersionKind::of(manifest)) {
            return None;
        }
        let service = manifest.label(SERVICE_NAME)?;
        let source = manifest.annotation(PROVISION_CLUSTER);
        let source = source.or_else(|| manifest.label(SOURCE_CLUSTER));
        let slice = EndpointSlice::deserialize(manifest);
        Some(Self {
            service: Key::new(manifest.namespace(), service),
            source: source.filter(|name| !name.is_empty()).map(str::to_owned),
            takes_requests: slice.is_ok_and(|slice| has_taker(&slice)),
        })
    }
}

/// Returns `true` if objects of the kind are slices.
pub fn is_slice(kind: &GroupVersionKind) -> bool {
    kind.group == "discovery.k8s.io" && kind.kind == "EndpointSlice"
}

/// A cluster that has endpoints of a Service.
struct Provider<'a> {
    cluster: &'a str,
    admission: Admission,
    takes_requests: bool,
}

impl Candidate for Provider<'_> {
    fn cluster(&self) -> &str {
        self.cluster
    }

    fn admission(&self) -> Admission {
        self.admission
    }

    fn is_located(&self) -> bool {
        true
    }

    fn takes_requests(&self) -> bool {
        self.takes_requests
    }
}

impl ImportBlocks {
    /// Decides about the slices of a Service in a member. Blocked clusters are readmitted as for an ingress.
    pub fn of(imports: &ImportFacts<'_>, facts: &impl ClusterFacts) -> Self {
        let mut clusters: BTreeMap<&str, bool> = BTreeMap::new();
        for slice in imports.slices {
            let cluster = slice.source.as_deref().unwrap_or(imports.consumer);
            *clusters.entry(cluster).or_default() |= slice.takes_requests;
        }
        let providers = clusters
            .into_iter()
            .map(|(cluster, takes_requests)| Provider {
                cluster,
                admission: admission_of(cluster, imports.withheld, facts),
                takes_requests,
            });
        let providers: Vec<_> = providers.collect();
        let stay = readmitted(&providers, imports.has_unread, facts);
        // A slice of the member itself is not brought to it.
        let blocked = providers.iter().filter(|provider| {
            provider.admission == Admission::Blocked && provider.cluster != imports.consumer
        });
        let blocked = blocked.map(|provider| provider.cluster.to_owned());
        let (readmitted, withheld) = blocked.partition(|cluster| stay.contains(cluster));
        Self {
            withheld,
            readmitted,
        }
    }

    /// Returns the effect of the block of its cluster on one of the slices, if that is blocked.
    pub fn block(&self, slice: &ServiceSlice) -> Option<Block> {
        let source = slice.source.as_ref()?;
        if self.withheld.contains(source) {
            Some(Block::Withheld)
        } else if self.readmitted.contains(source) {
            Some(Block::Readmitted)
        } else {
            None
        }
    }
}

#[cfg(test)]
mod tests;
