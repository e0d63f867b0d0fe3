//! The watched objects, and the queues of the keys that their changes wake.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::Duration;

use apply::{KindCounts, Wake};
use fleet_api::names::WORK_FINALIZER;
use fleet_api::{AppliedWork, InternalMemberCluster, Work};
use k8s_openapi::api::discovery::v1::EndpointSlice;
use karmada_runtime::as_text::AsText;
use karmada_runtime::cache::Transition;
use karmada_runtime::expectations::Expectations;
use karmada_runtime::queue::Queue;
use karmada_runtime::store::Store;
use kube::Resource;
use objects::{GroupVersionKind, Key, Metadata};
use parking_lot::Mutex;
use serde_json::Value;
use tokio::sync::Notify;
use traffic::ClusterKind;
use traffic::endpoints::slice_service;

/// The least time between two looks at a Work of whose objects only the status changes.
const PACE: Duration = Duration::from_millis(200);

/// A Work as text: with its manifests parsed, it takes ten times the memory.
pub(crate) type StoredWork = AsText<Work, Manifests>;

/// The facts about a Work's manifests that are asked for often.
#[derive(Clone, Debug, Default)]
pub(crate) struct Manifests {
    kinds: BTreeSet<GroupVersionKind>,
    /// The Services among them.
    services: BTreeSet<Key>,
}

impl From<&Work> for Manifests {
    fn from(work: &Work) -> Self {
        let manifests = &work.spec.workload.manifests;
        let kinds = manifests.iter().map(GroupVersionKind::of);
        let is_service =
            |manifest: &&Value| manifest["apiVersion"] == "v1" && manifest["kind"] == "Service";
        let services = manifests.iter().filter(is_service);
        Self {
            kinds: kinds
                .filter(|kind| !kind.kind.is_empty() && !kind.version.is_empty())
                .collect(),
            services: services
                .map(Metadata::key)
                .filter(|key| !key.namespace.is_empty() && !key.name.is_empty())
                .collect(),
        }
    }
}

/// Returns `true` if a Work brings other Services.
pub(crate) fn brings_others(old: &StoredWork, new: &StoredWork) -> bool {
    old.summary.services != new.summary.services
}

/// The topic of the writes to a Work: until the watch shows one, the same would be decided and written again.
pub(crate) const WORKS: &str = "works";

/// The queues of the loops.
#[derive(Clone, Debug, Default)]
pub(crate) struct Queues {
    /// The keys of Works.
    pub(crate) works: Queue<Key>,
    /// The key of the channel.
    pub(crate) membership: Queue<Key>,
    /// The keys of placed Services, if their endpoints are collected.
    pub(crate) services: Queue<Key>,
}

/// The index behind a lock, and the queues of the keys that are woken.
pub(crate) struct Agent {
    /// The namespace of the cluster on the hub.
    pub(crate) namespace: String,
    pub(crate) queues: Queues,
    /// Set if the endpoints of placed Services are collected.
    pub(crate) collects_endpoints: bool,
    /// Notified when other Services are placed.
    pub(crate) placed: Arc<Notify>,
    /// Our writes that the watches have not shown yet.
    pub(crate) expectations: Expectations,
    pub(crate) index: Arc<Mutex<Index>>,
}

/// The watched objects.
#[derive(Default)]
pub(crate) struct Index {
    /// By the Services that they bring.
    pub(crate) works: Store<StoredWork, Key>,
    /// The slices with endpoints on the hub, by their Services. They are watched only if endpoints are collected.
    pub(crate) collected: Store<EndpointSlice, Key>,
    pub(crate) applied: Store<AppliedWork>,
    pub(crate) channels: Store<InternalMemberCluster>,
    /// The kinds of the Works' manifests.
    pub(crate) kinds: KindCounts,
    /// The Works that were seen with a higher generation than they have.
    rewound: BTreeMap<Key, Rewound>,
}

struct Rewound {
    highest: Option<i64>,
    is_told: bool,
}

/// Whether it was told already that a Work is older than it was.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Rewind {
    News,
    Told,
}

impl Agent {
    pub(crate) fn new(namespace: String, collects_endpoints: bool) -> Self {
        let (queues, expectations) = (Queues::default(), Expectations::default());
        expectations.add_queue(WORKS, &queues.works);
        let works = Store::by(|work: &StoredWork| work.summary.services.clone());
        let index = Index {
            works: works.expecting(&expectations, &()),
            collected: Store::by(|slice| {
                slice_service(ClusterKind::MemberCluster, slice)
                    .into_iter()
                    .collect()
            }),
            ..Index::default()
        };
        Self {
            namespace,
            queues,
            collects_endpoints,
            placed: Arc::default(),
            expectations,
            index: Arc::new(Mutex::new(index)),
        }
    }

    /// Wakes a Work after a change of its objects.
    pub(crate) fn wake_work(&self, wake: Wake) {
        match wake {
            Wake::Now(key) => self.queues.works.add(key),
            Wake::Paced(key) => self.queues.works.add_paced(key, PACE),
        }
    }
}

impl Index {
    /// Returns the `AppliedWork` of a Work.
    pub(crate) fn applied(&self, work: &Key) -> Option<Arc<AppliedWork>> {
        self.applied.get(&Key::cluster_scoped(&work.name)).cloned()
    }

    /// Returns `true` if a Work waits for this agent before it can go.
    pub(crate) fn holds_works(&self) -> bool {
        let mut works = self.works.iter();
        works.any(|(_, work)| work.meta().has_finalizer(WORK_FINALIZER))
    }

    /// Returns the Services that Works bring.
    pub(crate) fn services(&self) -> BTreeSet<Key> {
        let works = self.works.iter();
        works
            .flat_map(|(_, work)| work.summary.services.iter().cloned())
            .collect()
    }

    /// Returns the Services that Works bring, or of which there are endpoints on the hub.
    pub(crate) fn services_to_collect(&self) -> BTreeSet<Key> {
        let collected = self.collected.keys();
        let collected = collected.flat_map(|key| self.collected.targets(key));
        let mut services = self.services();
        services.extend(collected.cloned());
        services
    }

    /// Returns the channel to the hub, once the cluster is registered there.
    pub(crate) fn channel(&self) -> Option<Arc<InternalMemberCluster>> {
        let channel = self.channels.iter().next();
        channel.map(|(_, channel)| Arc::clone(channel))
    }

    /// Tells if a Work is older than it was, as after a hub was restored from a backup.
    pub(crate) fn rewound(&mut self, key: &Key) -> Option<Rewind> {
        let rewound = self.rewound.get_mut(key)?;
        let is_told = std::mem::replace(&mut rewound.is_told, true);
        Some(if is_told { Rewind::Told } else { Rewind::News })
    }

    /// Follows a Work from one version to the next. Returns `true` if the manifests are of other kinds now.
    pub(crate) fn follow(&mut self, change: &Transition<StoredWork>) -> bool {
        self.note_generation(change);
        let [old, new] = [&change.old, &change.new].map(|work| {
            let work = work.as_ref();
            work.map(|work| work.summary.kinds.clone())
                .unwrap_or_default()
        });
        self.kinds.change(&old, &new)
    }

    /// Notes the highest generation of a Work that has gone back in time, until it is reached again.
    fn note_generation(&mut self, change: &Transition<StoredWork>) {
        let highest = self.rewound.get(&change.key).and_then(|one| one.highest);
        let (Some(old), Some(new)) = (&change.old, &change.new) else {
            self.rewound.remove(&change.key);
            return;
        };
        let (old, new) = (old.meta(), new.meta());
        let highest = highest.max(old.generation);
        if old.uid != new.uid || new.generation >= highest {
            self.rewound.remove(&change.key);
        } else {
            let rewound = Rewound {
                highest,
                is_told: false,
            };
            self.rewound.entry(change.key.clone()).or_insert(rewound);
        }
    }
}

#[cfg(test)]
mod tests {
    use kube::runtime::watcher::Event;
    use serde_json::{from_str, json};

    use super::*;

    /// A hub that was restored from a backup knows an older version of a Work, until it is newer than it ever was.
    #[test]
    fn rewound_work_is_told() {
        let mut index = Index::default();
        let key = Key::new("fleet-member-a", "w");
        let mut version = 0;
        for (uid, generation, expected) in [
            ("u", 2, None),
            ("u", 5, None),
            ("u", 3, Some(Rewind::News)),
            ("u", 4, Some(Rewind::Told)),
            ("u", 5, None),
            ("u", 1, Some(Rewind::News)),
            ("other", 1, None),
        ] {
            version += 1;
            let work = json!({ "metadata": { "name": "w", "namespace": "fleet-member-a", "uid": uid,
                "generation": generation, "resourceVersion": version.to_string() } });
            let event = Event::Apply(from_str(&work.to_string()).unwrap());
            for change in index.works.observe(event).objects {
                index.follow(&change);
            }
            assert_eq!(index.rewound(&key), expected, "{generation}");
        }
    }
}
