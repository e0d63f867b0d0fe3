//! The Works, the clusters they are for, and the Namespaces; and the bindings and Namespaces that a change
//! of one of them wakes.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Duration;

use k8s_openapi::api::core::v1::Namespace;
use karmada_api::work::APPLIED;
use karmada_api::{ClusterView, Suspension, Work, execution_namespace};
use karmada_runtime::as_text::AsText;
use karmada_runtime::cache::{Cache, Transition, Undecoded};
use karmada_runtime::program::Program;
use karmada_runtime::watch::Decoded;
use kube::runtime::watcher::{Config, Event};
use kube::{Api, Client, Resource};
use objects::Key;
use objects::reverse_index::ReverseIndex;
use objects::write::{ObjectRef, Write};
use parking_lot::Mutex;
use propagation_rules::binding_ref::BindingRef;
use propagation_rules::works::{self, work_name};
use tokio::time::Instant;

use crate::watch::{Queues, SharedIndex};

/// The time that the first report of a binding's Works waits for the others, and the least time between two
/// writes of what they report: one shows them all.
const TOGETHER: Duration = Duration::from_secs(1);

/// The time at which a binding is woken by a change of a Work.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Urgency {
    /// It may need a write of a Work.
    Now,
    /// Every Work has reported.
    Paced,
    /// Others have still to report.
    WithOthers,
}

/// The index of Works behind a lock.
#[derive(Debug)]
pub(crate) struct SharedWorks {
    inner: Mutex<Inner>,
    index: Arc<SharedIndex>,
    queues: Queues,
}

#[derive(Debug, Default)]
struct Inner {
    works: Cache<StoredWork>,
    by_owner: ReverseIndex<Key, Owner>,
    clusters: Cache<ClusterView>,
    namespaces: Cache<Namespace>,
}

/// The object whose Work it is.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Owner {
    /// The key of a binding; one without a namespace is a `ClusterResourceBinding`.
    Binding(Key),
    /// The name of a Namespace.
    Namespace(String),
}

/// A Work as text.
type StoredWork = AsText<Work, Progress>;

/// The progress of a Work in its member.
#[derive(Clone, Debug, Default)]
struct Progress {
    /// True once its condition shows what became of it as it is now, or nothing is to become of it.
    is_reported: bool,
}

impl From<&Work> for Progress {
    fn from(work: &Work) -> Self {
        let applied = work.condition(APPLIED);
        let is_current = applied.is_some_and(|applied| {
            let observed = applied.observed_generation;
            observed.is_none() || observed == work.metadata.generation
        });
        Self {
            is_reported: is_current || work.is_suspended(),
        }
    }
}

/// Returns the object whose Work it is.
fn owner_of(work: &StoredWork) -> Option<Owner> {
    let metadata = work.meta();
    if let Some(binding) = works::bound(metadata) {
        return Some(Owner::Binding(binding));
    }
    let mut owners = metadata.owner_references.iter().flatten();
    let namespace = owners.find(|owner| owner.kind == "Namespace")?;
    Some(Owner::Namespace(namespace.name.clone()))
}

/// Returns `true` if nothing but the status differs.
fn is_status(change: &Transition<StoredWork>) -> bool {
    let (Some(old), Some(new)) = (&change.old, &change.new) else {
        return false;
    };
    let (old, new) = (old.meta(), new.meta());
    old.uid == new.uid
        && old.generation == new.generation
        && old.deletion_timestamp == new.deletion_timestamp
        && old.labels == new.labels
        && old.annotations == new.annotations
}

impl Inner {
    /// Follows a Work, and returns whose it was, and whose it is.
    fn owners(&mut self, change: &Transition<StoredWork>) -> [Option<Owner>; 2] {
        let owners = [&change.old, &change.new];
        let owners = owners.map(|work| owner_of(work.as_ref()?));
        let now = owners[1].iter().cloned().collect();
        self.by_owner.replace(&change.key, now);
        owners
    }

    /// Returns `true` if a Work of the owner has still to report.
    fn is_awaited(&self, owner: &Owner) -> bool {
        let mut works = self.by_owner.sources(owner);
        works.any(|key| {
            let work = self.works.get(key);
            work.is_some_and(|work| !work.summary.is_reported)
        })
    }
}

impl SharedWorks {
    /// Creates the index, which wakes bindings of `index`, and watches the Works, the clusters and the Namespaces.
    pub(crate) fn watch(
        program: &mut Program,
        client: &Client,
        index: Arc<SharedIndex>,
        queues: Queues,
    ) -> Arc<Self> {
        let created = Arc::new(Self {
            inner: Mutex::default(),
            index,
            queues,
        });
        let shared = Arc::clone(&created);
        let works = Api::all(client.clone());
        program.watch("works", works, Config::default(), move |event| {
            shared.observe_work(event);
        });
        let shared = Arc::clone(&created);
        let clusters = Api::all(client.clone());
        program.watch("clusters", clusters, Config::default(), move |event| {
            shared.observe_cluster(event);
        });
        let shared = Arc::clone(&created);
        let namespaces = Api::all(client.clone());
        program.watch("namespaces", namespaces, Config::default(), move |event| {
            shared.observe_namespace(event);
        });
        let shared = Arc::clone(&created);
        program.report_undecoded(move || shared.undecoded());
        created
    }

    /// Returns the Works of a binding: those that refer to it, and those with the names of its Works.
    pub(crate) fn of_binding(&self, binding: BindingRef<'_>) -> Vec<Work> {
        let name = work_name(binding);
        let targets = binding.spec.all_targets();
        let named = targets.map(|target| Key::new(execution_namespace(&target.name), &name));
        let inner = self.inner.lock();
        let owner = Owner::Binding(binding.key());
        let keys: BTreeSet<Key> = inner
            .by_owner
            .sources(&owner)
            .cloned()
            .chain(named)
            .collect();
        let stored: Vec<_> = keys
            .iter()
            .filter_map(|key| inner.works.get(key).map(Arc::clone))
            .collect();
        // Parsed without the lock, which every watch needs.
        drop(inner);
        stored.iter().map(|work| work.object()).collect()
    }

    /// Returns a Work.
    pub(crate) fn work(&self, key: &Key) -> Option<Work> {
        let stored = self.inner.lock().works.get(key).map(Arc::clone);
        Some(stored?.object())
    }

    /// Takes in what was written to a Work: whatever is decided on an older version could only conflict. Its owner has
    /// decided it, and only another one that it had is woken before the watch shows it.
    pub(crate) fn written(&self, write: &Write, stored: &ObjectRef) {
        let owners = {
            let mut inner = self.inner.lock();
            let Some(change) = inner.works.written(write, stored) else {
                return;
            };
            inner.owners(&change)
        };
        let [before, now] = &owners;
        if before == now {
            return;
        }
        let owners = owners.into_iter().flatten();
        self.wake(owners.map(|owner| (owner, Urgency::Now)));
    }

    /// Returns the clusters.
    pub(crate) fn clusters(&self) -> Vec<Arc<ClusterView>> {
        let inner = self.inner.lock();
        inner.clusters.iter().map(|(_, c)| Arc::clone(c)).collect()
    }

    /// Returns the cluster of the name.
    pub(crate) fn cluster(&self, name: &str) -> Option<Arc<ClusterView>> {
        let inner = self.inner.lock();
        inner
            .clusters
            .get(&Key::cluster_scoped(name))
            .map(Arc::clone)
    }

    /// Returns the Namespace of the name.
    pub(crate) fn namespace(&self, key: &Key) -> Option<Arc<Namespace>> {
        self.inner.lock().namespaces.get(key).map(Arc::clone)
    }

    /// Returns the keys of all Namespaces.
    pub(crate) fn namespace_keys(&self) -> Vec<Key> {
        let inner = self.inner.lock();
        inner
            .namespaces
            .iter()
            .map(|(key, _)| key.clone())
            .collect()
    }

    /// Applies an event of a Work, and wakes its binding or Namespace. Reports of a binding's Works are
    /// taken together.
    fn observe_work(&self, event: Event<Decoded<StoredWork>>) {
        let mut woken = BTreeSet::new();
        {
            let mut inner = self.inner.lock();
            for change in inner.works.observe(event) {
                for owner in inner.owners(&change).into_iter().flatten() {
                    let urgency = match is_status(&change) {
                        true if inner.is_awaited(&owner) => Urgency::WithOthers,
                        true => Urgency::Paced,
                        false => Urgency::Now,
                    };
                    woken.insert((owner, urgency));
                }
            }
        }
        self.wake(woken);
    }

    fn wake(&self, woken: impl IntoIterator<Item = (Owner, Urgency)>) {
        let Queues {
            bindings,
            namespaces,
            ..
        } = &self.queues;
        for owner in woken {
            match owner {
                (Owner::Binding(key), Urgency::Now) => bindings.add(key),
                (Owner::Binding(key), Urgency::Paced) => bindings.add_paced(key, TOGETHER),
                (Owner::Binding(key), Urgency::WithOthers) => {
                    bindings.add_at(key, Instant::now() + TOGETHER);
                }
                (Owner::Namespace(name), _) => namespaces.add(Key::cluster_scoped(name)),
            }
        }
    }

    /// Applies an event of a cluster. One that appears, leaves, or is selected otherwise wakes the bindings
    /// with Works there, the policies that pause it, and every Namespace.
    pub(crate) fn observe_cluster(&self, event: Event<Decoded<ClusterView>>) {
        let transitions = self.inner.lock().clusters.observe(event);
        let changed: BTreeSet<String> = transitions
            .into_iter()
            .filter(|change| !is_selected_alike(change))
            .map(|change| change.key.name)
            .collect();
        if changed.is_empty() {
            return;
        }
        let concerned = self.index.read(|index| {
            index.bindings_where(|spec| {
                spec.all_targets()
                    .any(|target| changed.contains(&target.name))
            })
        });
        self.queues.bindings.add_all(concerned);
        let naming = self.index.read(|index| {
            index.policies_where(|policy| {
                let suspension = policy.spec.suspension.iter();
                let mut names = suspension.flat_map(Suspension::clusters);
                names.any(|name| changed.contains(name))
            })
        });
        self.queues.policies.add_all(naming);
        self.queues.namespaces.add_all(self.namespace_keys());
    }

    /// Applies an event of a Namespace, and wakes it.
    pub(crate) fn observe_namespace(&self, event: Event<Decoded<Namespace>>) {
        let transitions = self.inner.lock().namespaces.observe(event);
        let changed = transitions.into_iter().map(|change| change.key);
        self.queues.namespaces.add_all(changed);
    }

    fn undecoded(&self) -> Vec<(&'static str, Undecoded)> {
        let inner = self.inner.lock();
        vec![
            ("Work", inner.works.undecoded()),
            ("Cluster", inner.clusters.undecoded()),
            ("Namespace", inner.namespaces.undecoded()),
        ]
    }
}

/// Returns `true` if override policies select both versions of a cluster alike, and Works go there alike.
fn is_selected_alike(change: &Transition<ClusterView>) -> bool {
    let (Some(old), Some(new)) = (&change.old, &change.new) else {
        return false;
    };
    let (was, is) = (&old.metadata, &new.metadata);
    was.uid == is.uid
        && was.labels == is.labels
        && was.deletion_timestamp == is.deletion_timestamp
        && old.spec.provider == new.spec.provider
        && old.spec.region == new.spec.region
        && old.spec.zones == new.spec.zones
}
