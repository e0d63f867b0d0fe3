//! The overrides of the hub and their snapshots, of both scopes.
//!
//! The questions of a placement are answered by an index: which may be about it, the latest snapshot of each, and which have
//! none yet. Those of an override are answered by another: which name one of its objects, and who of them has it (`claims`).

mod claims;

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use fleet_api::names::PARENT_OVERRIDE;
use fleet_api::overrides::{NamedResource, Override, OverrideSnapshot, OverrideSpec};
use fleet_api::{
    Binding, ClusterResourceOverride, ClusterResourceOverrideSnapshot, ResourceOverride,
    ResourceOverrideSnapshot,
};
use karmada_runtime::cache::Transition;
use karmada_runtime::expectations::Expectations;
use karmada_runtime::store::Store;
use kube::Api;
use objects::reverse_index::ReverseIndex;
use objects::{Key, Metadata};
use placement_rules::overrides::{
    Claim, SnapshotView, TOGETHER, is_for, listed, named_placement, objects,
};
use placement_rules::snapshot::{is_snapshotted, latest_override};
use tokio::time::Instant;

use crate::requests::HubApi;

/// The overrides of the hub.
#[derive(Debug)]
pub(crate) struct OverrideIndex {
    cluster_scoped: Scope<ClusterResourceOverride>,
    namespaced: Scope<ResourceOverride>,
}

/// The overrides of one scope, and their snapshots.
#[derive(Debug)]
pub(crate) struct Scope<K: Override> {
    pub(crate) overrides: Store<K>,
    /// By their overrides.
    pub(crate) snapshots: Store<K::Snapshot, Key>,
    /// The placement that each override names; an empty key if it names none.
    by_placement: ReverseIndex<Key, Key>,
    /// The objects that each override names, and those that it named when it was last taken up; with its namespace.
    by_object: ReverseIndex<Key, (String, NamedResource)>,
    /// The latest snapshot of each override that has one.
    latest: BTreeMap<Key, Arc<K::Snapshot>>,
    /// The overrides of whose content there is no snapshot yet, and until when that is waited for, however often they change
    /// meanwhile.
    pending: BTreeMap<Key, Instant>,
}

/// A kind of override, and where it is found.
pub(crate) trait InScope: Override<Snapshot: 'static> + 'static {
    /// Returns those of the hub.
    fn scope(index: &OverrideIndex) -> &Scope<Self>;

    /// Returns those of the hub.
    fn scope_mut(index: &mut OverrideIndex) -> &mut Scope<Self>;

    /// Returns those in a namespace, which is empty if they are cluster-scoped.
    fn overrides(hub: &HubApi, namespace: &str) -> Api<Self>;
}

impl InScope for ClusterResourceOverride {
    fn scope(index: &OverrideIndex) -> &Scope<Self> {
        &index.cluster_scoped
    }

    fn scope_mut(index: &mut OverrideIndex) -> &mut Scope<Self> {
        &mut index.cluster_scoped
    }

    fn overrides(hub: &HubApi, _: &str) -> Api<Self> {
        hub.all()
    }
}

impl InScope for ResourceOverride {
    fn scope(index: &OverrideIndex) -> &Scope<Self> {
        &index.namespaced
    }

    fn scope_mut(index: &mut OverrideIndex) -> &mut Scope<Self> {
        &mut index.namespaced
    }

    fn overrides(hub: &HubApi, namespace: &str) -> Api<Self> {
        hub.within(namespace)
    }
}

/// A snapshot of an override of either scope.
#[derive(Clone, Debug)]
pub(crate) enum Snapshot {
    OfCluster(Arc<ClusterResourceOverrideSnapshot>),
    OfNamespace(Arc<ResourceOverrideSnapshot>),
}

impl Snapshot {
    pub(crate) fn view(&self) -> SnapshotView<'_> {
        match self {
            Self::OfCluster(snapshot) => SnapshotView::of(&**snapshot),
            Self::OfNamespace(snapshot) => SnapshotView::of(&**snapshot),
        }
    }
}

/// The overrides of one placement.
#[derive(Debug)]
pub(crate) struct OfPlacement {
    /// The latest snapshots of those that may be about it.
    pub(crate) latest: Vec<Snapshot>,
    /// The snapshots that its bindings list, as far as they are there.
    pub(crate) listed: Vec<Snapshot>,
    /// Those that may be about it, and whose snapshots are still to come.
    pub(crate) pending: Vec<Pending>,
}

/// An override of whose content there is no snapshot yet.
#[derive(Debug)]
pub(crate) struct Pending {
    pub(crate) namespace: String,
    pub(crate) spec: OverrideSpec,
    /// The time until which the snapshot is waited for.
    pub(crate) until: Instant,
}

impl OverrideIndex {
    pub(crate) fn new(expectations: &Expectations) -> Self {
        Self {
            cluster_scoped: Scope::new(expectations),
            namespaced: Scope::new(expectations),
        }
    }

    /// Returns the keys of all overrides, and of those of which only snapshots are left.
    pub(crate) fn keys(&self) -> Vec<Key> {
        let keys: BTreeSet<_> = self
            .cluster_scoped
            .keys()
            .chain(self.namespaced.keys())
            .collect();
        keys.into_iter().cloned().collect()
    }

    /// Returns those of a placement that has these bindings.
    pub(crate) fn of_placement(&self, placement: &Key, bindings: &[Arc<Binding>]) -> OfPlacement {
        let of_cluster = self.cluster_scoped.latest(placement);
        let of_namespaces = self.namespaced.latest(placement);
        let names: BTreeSet<_> = bindings.iter().flat_map(|one| listed(&one.spec)).collect();
        let pending = self.cluster_scoped.pending(placement);
        OfPlacement {
            latest: of_cluster
                .map(|one| Snapshot::OfCluster(Arc::clone(one)))
                .chain(of_namespaces.map(|one| Snapshot::OfNamespace(Arc::clone(one))))
                .collect(),
            listed: self.snapshots(names),
            pending: pending.chain(self.namespaced.pending(placement)).collect(),
        }
    }

    /// Returns the snapshots of these namespaces and names, as far as they are there.
    pub(crate) fn snapshots<'n>(
        &self,
        names: impl IntoIterator<Item = (&'n str, &'n str)>,
    ) -> Vec<Snapshot> {
        let snapshots = names.into_iter().filter_map(|(namespace, name)| {
            let key = Key::new(namespace, name);
            if namespace.is_empty() {
                let found = self.cluster_scoped.snapshots.get(&key);
                found.map(|one| Snapshot::OfCluster(Arc::clone(one)))
            } else {
                let found = self.namespaced.snapshots.get(&key);
                found.map(|one| Snapshot::OfNamespace(Arc::clone(one)))
            }
        });
        snapshots.collect()
    }

    /// Returns the overrides of the snapshots that the new version of a binding lists no longer.
    pub(crate) fn unlisted(&self, change: &Transition<Binding>) -> Vec<Key> {
        let [before, now] =
            [&change.old, &change.new].map(|one| one.iter().flat_map(|one| listed(&one.spec)));
        let now: BTreeSet<_> = now.collect();
        let unlisted = before.filter(|name| !now.contains(name));
        let parents = unlisted.flat_map(|(namespace, name)| {
            let key = Key::new(namespace, name);
            match namespace {
                "" => self.cluster_scoped.snapshots.targets(&key),
                _ => self.namespaced.snapshots.targets(&key),
            }
        });
        parents.cloned().collect()
    }
}

impl<K: Override> Scope<K> {
    fn new(expectations: &Expectations) -> Self {
        Self {
            overrides: Store::default().expecting(expectations, &()),
            snapshots: Store::by(override_of::<K::Snapshot>).expecting(expectations, &()),
            by_placement: ReverseIndex::default(),
            by_object: ReverseIndex::default(),
            latest: BTreeMap::new(),
            pending: BTreeMap::new(),
        }
    }

    /// Brings the indexes of one override up to date. Returns its key, and those of others that name its objects.
    pub(crate) fn update(&mut self, key: &Key) -> BTreeSet<Key> {
        let snapshots = self.snapshots_of(key);
        let latest = latest_of(&snapshots);
        let one = self.overrides.get(key).map(Arc::clone);
        let taken = latest.iter().map(|latest| &latest.spec().override_spec);
        let specs: Vec<_> = one.iter().map(|one| one.spec()).chain(taken).collect();
        let placements = specs
            .iter()
            .map(|spec| named_placement(spec, &key.namespace).unwrap_or_default());
        self.by_placement.replace(key, placements.collect());
        let named = specs.iter().flat_map(|spec| objects(spec));
        let named = named
            .map(|object| (key.namespace.clone(), object))
            .collect();
        let mut concerned: BTreeSet<_> = self.sharing(key).into_iter().cloned().collect();
        self.by_object.replace(key, named);
        concerned.extend(self.sharing(key).into_iter().cloned());
        concerned.insert(key.clone());

        let all: Vec<_> = snapshots.iter().map(|snapshot| &**snapshot).collect();
        let is_pending = one.is_some_and(|one| !is_snapshotted(&*one, &all));
        if is_pending {
            let until = self.pending.entry(key.clone());
            until.or_insert_with(|| Instant::now() + TOGETHER.unsigned_abs());
        } else {
            self.pending.remove(key);
        }
        match latest {
            Some(latest) => self.latest.insert(key.clone(), latest),
            None => self.latest.remove(key),
        };
        concerned
    }

    /// Returns the snapshots of an override.
    pub(crate) fn snapshots_of(&self, key: &Key) -> Vec<Arc<K::Snapshot>> {
        self.snapshots.of(key).map(Arc::clone).collect()
    }

    fn keys(&self) -> impl Iterator<Item = &Key> {
        self.overrides.keys().chain(self.latest.keys())
    }

    /// Returns the keys of the overrides that may be about a placement.
    fn about(&self, placement: &Key) -> impl Iterator<Item = &Key> {
        let named = self.by_placement.sources(placement);
        named.chain(self.by_placement.sources(&Key::default()))
    }

    /// Returns the latest snapshots of the overrides that stay, and may be about a placement.
    fn latest(&self, placement: &Key) -> impl Iterator<Item = &Arc<K::Snapshot>> {
        let staying = self.about(placement).filter(|key| {
            match self.overrides.get(key) {
                Some(one) => !one.meta().is_deleting(),
                // One that cannot be read goes on as it was.
                None => self.overrides.unread().contains(key),
            }
        });
        staying.filter_map(|key| self.latest.get(key))
    }

    /// Returns those that may be about a placement, and of whose content there is no snapshot, though there may be one.
    fn pending(&self, placement: &Key) -> impl Iterator<Item = Pending> {
        self.about(placement).filter_map(move |key| {
            let until = *self.pending.get(key)?;
            let Claim { one, .. } = self.claim(key)?;
            let is_due =
                is_for(one.spec(), &key.namespace, placement) && self.refusal(key).is_none();
            is_due.then(|| Pending {
                namespace: key.namespace.clone(),
                spec: one.spec().clone(),
                until,
            })
        })
    }
}

/// Returns the override of a snapshot.
fn override_of<S: OverrideSnapshot>(snapshot: &S) -> BTreeSet<Key> {
    let metadata = snapshot.meta();
    let name = metadata.label(PARENT_OVERRIDE);
    let parent = name.map(|name| Key::new(metadata.namespace(), name));
    parent.into_iter().collect()
}

/// Returns the latest of the snapshots of an override.
fn latest_of<S: OverrideSnapshot>(snapshots: &[Arc<S>]) -> Option<Arc<S>> {
    let all: Vec<_> = snapshots.iter().map(|snapshot| &**snapshot).collect();
    let name = latest_override(&all)?.meta().name();
    let mut snapshots = snapshots.iter();
    snapshots.find(|one| one.meta().name() == name).cloned()
}
