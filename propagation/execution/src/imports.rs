//! The slices that Works bring to members from other clusters, and which of these clusters are blocked.

use std::collections::{BTreeMap, BTreeSet};

use jiff::Timestamp;
use karmada_api::{Cluster, ClusterStatus, ClusterView, Remedy, execution_namespace};
use karmada_runtime::cache::{Transition, Undecoded};
use karmada_runtime::store::Store;
use karmada_runtime::watch::Decoded;
use kube::runtime::watcher::Event;
use objects::Key;
use objects::reverse_index::ReverseIndex;
use propagation_rules::execution::{ImportBlocks, ImportFacts, ServiceSlice};
use traffic::ingress::{Admission, Cached, ClusterFacts, DecidedBlocks};
use traffic::remedy::Scope;

use crate::stored::StoredWork;

/// A member, and a Service of which Works bring it slices.
type Import = (String, Key);

/// The facts that decide which slices are withheld. Each change returns the Works that it concerns.
#[derive(Debug, Default)]
pub(crate) struct Imports {
    /// From a Work to the Services of which it has slices.
    by_service: ReverseIndex<Key, Import>,
    /// From a Work to the clusters of its slices.
    by_source: ReverseIndex<Key, String>,
    clusters: BTreeMap<String, Cluster>,
    remedies: Store<Remedy>,
    decided: DecidedBlocks,
}

/// The objects of the fleet on which a decision depends besides.
#[derive(Clone, Copy)]
pub(crate) struct Known<'a> {
    pub(crate) works: &'a Store<StoredWork>,
    pub(crate) clusters: &'a Store<ClusterView>,
}

impl Imports {
    /// Takes in the change of a Work of `cluster`.
    pub(crate) fn observe_work(
        &mut self,
        cluster: &str,
        change: &Transition<StoredWork>,
    ) -> BTreeSet<Key> {
        let (old, new) = (slices(change.old.as_deref()), slices(change.new.as_deref()));
        if old == new {
            return BTreeSet::new();
        }
        let work = &change.key;
        let before = self.by_service.targets(work).to_vec();
        let now = new.iter().map(|slice| import(cluster, slice)).collect();
        self.by_service.replace(work, now);
        let sources = new.iter().map(|slice| source(cluster, slice).to_owned());
        self.by_source.replace(work, sources.collect());
        let now = self.by_service.targets(work);
        let mut concerned = self.works(before.iter().chain(now));
        concerned.remove(work);
        concerned
    }

    /// Takes in the change of a cluster.
    pub(crate) fn observe_cluster(&mut self, change: &Transition<ClusterView>) -> BTreeSet<Key> {
        let name = &change.key.name;
        let before = match change.new.as_deref().map(part) {
            Some(cluster) => self.clusters.insert(name.clone(), cluster),
            None => self.clusters.remove(name),
        };
        if before.as_ref() == self.clusters.get(name) {
            return BTreeSet::new();
        }
        self.of_sources([name])
    }

    /// Takes in an event of the Remedies: which blocked clusters may be readmitted depends on them.
    pub(crate) fn observe_remedies(&mut self, event: Event<Decoded<Remedy>>) -> BTreeSet<Key> {
        let was_read = self.remedies.unread().is_empty();
        let mut scopes = Vec::new();
        for Transition { key, old, new } in self.remedies.observe(event).objects {
            let (old, new) = (old.as_deref(), new.as_deref());
            scopes.extend(self.decided.change(&key.name, old, new));
        }
        if self.remedies.unread().is_empty() != was_read {
            scopes.push(Scope::Every);
        }
        self.blocked_in(&scopes)
    }

    /// Takes in a look at the clock.
    pub(crate) fn expire(&mut self, now: Timestamp) -> BTreeSet<Key> {
        let remedies = &self.remedies;
        let scopes = self.decided.look(now, |name| {
            let remedy = remedies.get(&Key::cluster_scoped(name));
            remedy.map(|remedy| &**remedy)
        });
        self.blocked_in(&scopes)
    }

    /// Returns the moment at which the next Remedy expires.
    pub(crate) fn next_expiry(&self) -> Option<Timestamp> {
        self.decided.next_expiry()
    }

    /// Returns the blocked clusters of the slices of a Service that Works bring to a member.
    pub(crate) fn blocks(&self, cluster: &str, service: &Key, known: Known<'_>) -> ImportBlocks {
        let works = self
            .by_service
            .sources(&(cluster.to_owned(), service.clone()));
        let works: Vec<_> = works.filter_map(|work| known.works.get(work)).collect();
        let slices = works.iter().flat_map(|work| work.summary.slices.iter());
        let slices: Vec<_> = slices.filter(|slice| slice.service == *service).collect();
        let withheld = works.iter().filter(|work| work.summary.is_withheld);
        let withheld = withheld.flat_map(|work| work.summary.slices.iter());
        let withheld: Vec<_> = withheld.filter_map(|slice| slice.source.clone()).collect();
        let namespace = execution_namespace(cluster);
        let mut unread = known.works.unread().iter();
        let imports = ImportFacts {
            consumer: cluster,
            slices: &slices,
            withheld: &withheld,
            has_unread: unread.any(|work| work.namespace == namespace),
        };
        let fleet = Fleet {
            imports: self,
            clusters: known.clusters,
        };
        ImportBlocks::of(&imports, &fleet)
    }

    /// Returns the numbers of slices that are withheld, and of those that stay though their clusters are blocked, by member.
    pub(crate) fn counts(&self, known: Known<'_>) -> BTreeMap<String, BlockedSlices> {
        let mut counts: BTreeMap<String, BlockedSlices> = BTreeMap::new();
        for (name, cluster) in &self.clusters {
            if Admission::of(cluster) == Admission::Blocked {
                for work in self.by_source.sources(name) {
                    self.count(name, work, known, &mut counts);
                }
            }
        }
        counts
    }

    /// Counts the slices of a blocked cluster in a Work.
    fn count(
        &self,
        blocked: &str,
        work: &Key,
        known: Known<'_>,
        counts: &mut BTreeMap<String, BlockedSlices>,
    ) {
        for (member, service) in self.by_service.targets(work) {
            let blocks = self.blocks(member, service, known);
            let of_member = counts.entry(member.clone()).or_default();
            let slices = slices(known.works.get(work).map(|work| &**work));
            let number = slices
                .iter()
                .filter(|slice| slice.service == *service)
                .filter(|slice| slice.source.as_deref() == Some(blocked))
                .count();
            if blocks.withheld.contains(blocked) {
                of_member.withheld += number;
            } else if blocks.readmitted.contains(blocked) {
                of_member.readmitted += number;
            }
        }
    }

    /// Returns the number of Remedies that cannot be read.
    pub(crate) fn undecoded(&self) -> Undecoded {
        self.remedies.undecoded()
    }

    /// Returns the Works with slices for blocked clusters that one of the scopes covers.
    fn blocked_in(&self, scopes: &[Scope]) -> BTreeSet<Key> {
        let blocked = self.clusters.iter().filter(|(name, cluster)| {
            Admission::of(cluster) == Admission::Blocked
                && scopes.iter().any(|scope| scope.covers(name))
        });
        self.of_sources(blocked.map(|(name, _)| name))
    }

    /// Returns the Works with slices of the Services of which there are slices of one of these clusters.
    fn of_sources<'a>(&self, clusters: impl IntoIterator<Item = &'a String>) -> BTreeSet<Key> {
        let clusters = clusters.into_iter();
        let works = clusters.flat_map(|cluster| self.by_source.sources(cluster));
        self.works(works.flat_map(|work| self.by_service.targets(work)))
    }

    /// Returns the Works with slices of these Services.
    fn works<'a>(&self, imports: impl Iterator<Item = &'a Import>) -> BTreeSet<Key> {
        let works = imports.flat_map(|import| self.by_service.sources(import));
        works.cloned().collect()
    }
}

/// The slices of blocked clusters that Works bring to a member.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct BlockedSlices {
    pub(crate) withheld: usize,
    pub(crate) readmitted: usize,
}

/// The clusters and people's decisions, as a decision asks for them.
struct Fleet<'a> {
    imports: &'a Imports,
    clusters: &'a Store<ClusterView>,
}

impl ClusterFacts for Fleet<'_> {
    fn cluster(&self, name: &str) -> Cached<&Cluster> {
        match self.imports.clusters.get(name) {
            Some(cluster) => Cached::Present(cluster),
            None if self.clusters.unread().contains(&Key::cluster_scoped(name)) => Cached::Unread,
            None => Cached::Absent,
        }
    }

    fn is_blocked_manually(&self, cluster: &str) -> bool {
        // One that could never be read may be a person's decision.
        !self.imports.remedies.unread().is_empty() || self.imports.decided.cover(cluster)
    }
}

/// Returns the part of a cluster that tells whether it is blocked.
fn part(view: &ClusterView) -> Cluster {
    let mut cluster = Cluster::default();
    let deleted = &view.metadata.deletion_timestamp;
    cluster.metadata.deletion_timestamp.clone_from(deleted);
    cluster.status = Some(ClusterStatus {
        remedy_actions: view.status.remedy_actions.clone(),
        ..ClusterStatus::default()
    });
    cluster
}

fn slices(work: Option<&StoredWork>) -> &[ServiceSlice] {
    work.map_or(&[], |work| &*work.summary.slices)
}

fn import(cluster: &str, slice: &ServiceSlice) -> Import {
    (cluster.to_owned(), slice.service.clone())
}

/// Returns the cluster of the endpoints in a slice for `cluster`.
fn source<'a>(cluster: &'a str, slice: &'a ServiceSlice) -> &'a str {
    slice.source.as_deref().unwrap_or(cluster)
}

#[cfg(test)]
mod tests;
