//! The changes that wake placements, bindings and clusters.

mod belongings;
mod overrides;
mod placed;
mod updates;

use std::fmt::Debug;
use std::sync::{Arc, OnceLock, Weak};
use std::time::Duration;

use fleet_api::{ClusterResourceOverride, ResourceOverride};
use jiff::Timestamp;
use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition;
use karmada_runtime::cache::Transition;
use karmada_runtime::dynamic::{DynamicEvent, DynamicWatches};
use karmada_runtime::error::{Chain, LastError};
use karmada_runtime::expectations::Expectations;
use karmada_runtime::program::Program;
use karmada_runtime::queue::Queue;
use karmada_runtime::watch::Decoded;
use kube::core::PartialObjectMeta;
use kube::runtime::watcher::{Config, Event};
use kube::{Api, Client, Resource};
use objects::Scope;
use objects::{GroupVersionKind, Key, Metadata};
use parking_lot::Mutex;
use placement_rules::content::Hub;
use serde::de::DeserializeOwned;
use tokio::sync::Notify;

use crate::args::Args;
use crate::bursts::Bursts;
use crate::identity::NAMESPACE;
use crate::index::Index;
use crate::inventory::{HubObjects, LOOK_AGAIN, LOOK_FOR_ANSWER, depends_on, namespaced_kinds};
use crate::topics::{
    BINDINGS, MEMBERS, OVERRIDES, PROFILES, RUNS, SNAPSHOTS, STATUS_COPIES, WORKS,
};

/// The least time between two writes of what a placement says of itself.
const PACE: Duration = Duration::from_secs(1);
/// What each cluster adds to that: such a write is as long as all of them together, and takes the API server as long.
const PACE_OF_CLUSTER: Duration = Duration::from_millis(30);
/// The time after a failure to look up the kinds of the hub, or a change of one, before the next look.
const LOOK_SOON: Duration = Duration::from_secs(1);

/// The queues of the loops. Those of `works` are the keys of bindings, of `fleet`, `membership` and `profiles` of clusters, of
/// `overrides` of overrides, of `updates` of runs, and the others of placements.
#[derive(Clone, Debug, Default)]
pub(crate) struct Queues {
    pub(crate) membership: Queue<Key>,
    pub(crate) profiles: Queue<Key>,
    pub(crate) fleet: Queue<Key>,
    pub(crate) snapshots: Queue<Key>,
    pub(crate) overrides: Queue<Key>,
    pub(crate) schedule: Queue<Key>,
    pub(crate) rollout: Queue<Key>,
    pub(crate) updates: Queue<Key>,
    pub(crate) works: Queue<Key>,
    pub(crate) evictions: Queue<Key>,
    pub(crate) status: Queue<Key>,
}

/// The index behind a lock, the objects that may be placed, and the queues of what their changes wake.
pub(crate) struct SharedIndex {
    pub(crate) hub: HubObjects,
    pub(crate) bursts: Bursts,
    pub(crate) queues: Queues,
    index: Mutex<Index>,
    clock: fn() -> Timestamp,
}

impl SharedIndex {
    /// Wakes what says where a placement stands, which happens at most once a second, and less often for many clusters.
    pub(crate) fn tell(&self, placement: Key) {
        let clusters = self.read(|index| index.bindings.count(&placement));
        let clusters = u32::try_from(clusters).unwrap_or(u32::MAX);
        let pace = PACE + PACE_OF_CLUSTER.saturating_mul(clusters);
        self.queues.status.add_paced(placement, pace);
    }

    /// Creates the index and watches everything that decides about placements.
    pub(crate) fn watch(
        program: &mut Program,
        client: &Client,
        args: &Args,
        queues: Queues,
    ) -> Arc<Self> {
        // What the watches show is observed by what holds them.
        let observer = Arc::new(OnceLock::<Weak<Self>>::new());
        let observing = Arc::clone(&observer);
        let (watches, watching) = DynamicWatches::new(
            client.clone(),
            |_| Config::default(),
            move |kind, event| {
                if let Some(shared) = observing.get().and_then(Weak::upgrade) {
                    shared.observe_objects(kind, &event);
                }
            },
        );
        let selection = &args.selection;
        let shared = Arc::new(Self {
            hub: HubObjects::new(watches),
            bursts: Bursts::new(selection.snapshot_quiet, selection.snapshot_interval),
            queues,
            index: Mutex::new(Index::new(args.waits.heartbeat_timeout)),
            clock: program.clock,
        });
        shared.resume_held();
        observer.get_or_init(|| Arc::downgrade(&shared));
        program.run_until_stopped("objects", watching);
        shared.watch_kinds(program, client, args.hub());
        Self::watch_hub(Watching {
            program,
            client,
            shared: &shared,
        });
        let index = Arc::clone(&shared);
        program.report_undecoded(move || index.read(Index::undecoded));
        shared
    }

    /// Watches what is made of placements, what they name, and the clusters.
    fn watch_hub(mut to: Watching<'_>) {
        to.start_scoped(
            ["placements", "namespacedplacements"],
            Self::observe_placement,
        );
        to.start_scoped(
            ["policysnapshots", "namespacedpolicysnapshots"],
            Self::observe_policy,
        );
        to.start_scoped(
            ["resourcesnapshots", "namespacedresourcesnapshots"],
            Self::observe_snapshot,
        );
        to.start_scoped(["bindings", "namespacedbindings"], Self::observe_binding);
        to.start("works", Self::observe_work);
        to.start("memberclusters", Self::observe_member);
        to.start_if_served("evictions", Self::observe_eviction);
        to.start_if_served("statuscopies", Self::observe_status_copy);
        to.start_scoped_if_served(["updateruns", "namespacedupdateruns"], Self::observe_run);
        to.start_scoped_if_served(
            ["updatestrategies", "namespacedupdatestrategies"],
            Self::observe_strategy,
        );
        to.start_scoped_if_served(
            ["approvalrequests", "namespacedapprovalrequests"],
            Self::observe_approval,
        );
        to.start_if_served(
            "clusteroverrides",
            Self::observe_override::<ClusterResourceOverride>,
        );
        to.start_if_served(
            "clusteroverridesnapshots",
            Self::observe_override_snapshot::<ClusterResourceOverride>,
        );
        to.start_if_served("overrides", Self::observe_override::<ResourceOverride>);
        to.start_if_served(
            "overridesnapshots",
            Self::observe_override_snapshot::<ResourceOverride>,
        );
        to.start("namespaces", Self::observe_namespace);
        to.start("roles", Self::observe_role);
        to.start("rolebindings", Self::observe_role_binding);
        to.start("internalmemberclusters", Self::observe_channel);
        to.start_profiles();
    }

    /// Reads from the index.
    pub(crate) fn read<T>(&self, read: impl FnOnce(&Index) -> T) -> T {
        read(&self.index.lock())
    }

    /// Changes the index.
    pub(crate) fn change<T>(&self, change: impl FnOnce(&mut Index) -> T) -> T {
        change(&mut self.index.lock())
    }

    /// Has the queues take what they hold back once the watches have shown our writes.
    fn resume_held(&self) {
        let (queues, expectations) = (&self.queues, self.expectations());
        for (topic, queue) in [
            (MEMBERS, &queues.membership),
            (PROFILES, &queues.profiles),
            (SNAPSHOTS, &queues.snapshots),
            (OVERRIDES, &queues.overrides),
            (BINDINGS, &queues.schedule),
            (BINDINGS, &queues.rollout),
            (BINDINGS, &queues.snapshots),
            (WORKS, &queues.works),
            (STATUS_COPIES, &queues.status),
            (RUNS, &queues.updates),
        ] {
            expectations.add_queue(topic, queue);
        }
    }

    /// Returns our writes that the watches have not shown yet.
    pub(crate) fn expectations(&self) -> Expectations {
        self.read(|index| index.expectations.clone())
    }

    /// Keeps the kinds of the hub known, as definitions come and go.
    fn watch_kinds(self: &Arc<Self>, program: &mut Program, client: &Client, hub: Hub) {
        let changed = Arc::new(Notify::new());
        let notify = Arc::clone(&changed);
        let definitions: Api<Decoded<PartialObjectMeta<CustomResourceDefinition>>> =
            Api::all(client.clone());
        let index = Arc::clone(self);
        program.watch(
            "definitions",
            definitions,
            Config::default(),
            move |event| {
                index.observe_definition(&event);
                notify.notify_one();
            },
        );
        let (shared, client) = (Arc::clone(self), client.clone());
        program.run_until_stopped("kinds", async move {
            let mut last_error = LastError::default();
            loop {
                match namespaced_kinds(&client, &hub).await {
                    Ok(kinds) => {
                        let unanswered = kinds.unanswered.iter().map(|one| &**one);
                        let unanswered = unanswered.collect::<Vec<_>>().join(", ");
                        let pause = if unanswered.is_empty() {
                            last_error.clear();
                            LOOK_AGAIN
                        } else {
                            if last_error.replace(&unanswered) {
                                tracing::warn!(
                                    groups = unanswered,
                                    "Groups of the hub's API do not answer, will retry"
                                );
                            }
                            LOOK_FOR_ANSWER
                        };
                        if shared.hub.replace_namespaced(kinds) {
                            shared.wake_all();
                        }
                        tokio::select! {
                            () = changed.notified() => {}
                            () = tokio::time::sleep(pause) => {}
                        }
                    }
                    Err(error) => {
                        let error = Chain(&error).to_string();
                        if last_error.replace(&error) {
                            tracing::warn!(
                                error,
                                "Cannot look up the kinds of the hub, will retry"
                            );
                        }
                    }
                }
                tokio::time::sleep(LOOK_SOON).await;
            }
        });
    }

    /// Wakes all placements: other kinds may be selected by now.
    fn wake_all(&self) {
        let keys = self.read(|index| {
            let placements = index.placements.iter();
            placements.map(|(key, _)| key.clone()).collect::<Vec<_>>()
        });
        self.queues.snapshots.add_all(keys);
    }

    /// Applies an event of objects that may be placed, and wakes the placements that may select them.
    fn observe_objects(&self, kind: &GroupVersionKind, event: &DynamicEvent) {
        let placements = self.read(|index| {
            let all = index.placements.iter();
            all.map(|(key, one)| (key.clone(), Arc::clone(one)))
                .collect::<Vec<_>>()
        });
        for (key, placement) in placements {
            match event {
                DynamicEvent::Changed(changes) => {
                    let mut keys = changes.iter().map(|Transition { key, .. }| key);
                    let is_concerned =
                        keys.any(|object| self.hub.may_select(&placement, kind, object));
                    if is_concerned && let Some(end) = self.bursts.note(&key) {
                        self.queues.snapshots.add_at(key, end);
                    }
                }
                DynamicEvent::Unkept(..) => {}
                // Only now everything that it selects may be known.
                DynamicEvent::Listed
                | DynamicEvent::NotServed
                | DynamicEvent::Forbidden
                | DynamicEvent::Failing => {
                    if depends_on(&placement, kind) {
                        self.queues.snapshots.add(key);
                    }
                }
            }
        }
    }

    /// Watches what the placements select.
    fn want(&self) {
        let placements = self.read(|index| {
            let placements = index.placements.iter().map(|(_, one)| one);
            let staying = placements.filter(|one| !one.metadata.is_deleting());
            staying.map(Arc::clone).collect::<Vec<_>>()
        });
        self.hub.want(placements.iter().map(|one| &**one));
    }
}

struct Watching<'a> {
    program: &'a mut Program,
    client: &'a Client,
    shared: &'a Arc<SharedIndex>,
}

impl Watching<'_> {
    fn start<K>(&mut self, name: &'static str, observe: fn(&SharedIndex, Event<Decoded<K>>))
    where
        K: Resource<DynamicType: Default> + Clone + DeserializeOwned + Debug + Send + 'static,
    {
        let shared = Arc::clone(self.shared);
        let api = Api::all(self.client.clone());
        let all = Config::default();
        self.program
            .watch(name, api, all, move |event| observe(&shared, event));
    }

    /// Starts the watch of a kind that is newer than the first release: the hub may have older definitions.
    fn start_if_served<K>(
        &mut self,
        name: &'static str,
        observe: fn(&SharedIndex, Event<Decoded<K>>),
    ) where
        K: Resource<DynamicType: Default> + Clone + DeserializeOwned + Debug + Send + 'static,
    {
        let shared = Arc::clone(self.shared);
        let api = Api::all(self.client.clone());
        let all = Config::default();
        self.program
            .watch_if_served(name, api, all, move |event| observe(&shared, event));
    }

    /// Starts the watch of the profiles of clusters. Others may be in other namespaces.
    fn start_profiles(&mut self) {
        let shared = Arc::clone(self.shared);
        let api = Api::namespaced(self.client.clone(), NAMESPACE);
        let all = Config::default();
        self.program
            .watch_if_served("clusterprofiles", api, all, move |event| {
                shared.observe_profile(event);
            });
    }

    /// Starts the watches of two kinds that differ in scope. The namespaced one is newer, too.
    fn start_scoped<K>(
        &mut self,
        [cluster_scoped, namespaced]: [&'static str; 2],
        observe: fn(&SharedIndex, Scope, Event<Decoded<K>>),
    ) where
        K: Resource<DynamicType = Scope> + Clone + DeserializeOwned + Debug + Send + 'static,
    {
        let shared = Arc::clone(self.shared);
        let api = Api::all_with(self.client.clone(), &Scope::Cluster);
        self.program
            .watch(cluster_scoped, api, Config::default(), move |event| {
                observe(&shared, Scope::Cluster, event);
            });
        self.start_of_scope_if_served((namespaced, Scope::Namespaced), observe);
    }

    /// Starts the watches of two kinds that differ in scope, and are newer than the first release.
    fn start_scoped_if_served<K>(
        &mut self,
        [cluster_scoped, namespaced]: [&'static str; 2],
        observe: fn(&SharedIndex, Scope, Event<Decoded<K>>),
    ) where
        K: Resource<DynamicType = Scope> + Clone + DeserializeOwned + Debug + Send + 'static,
    {
        self.start_of_scope_if_served((cluster_scoped, Scope::Cluster), observe);
        self.start_of_scope_if_served((namespaced, Scope::Namespaced), observe);
    }

    fn start_of_scope_if_served<K>(
        &mut self,
        (name, scope): (&'static str, Scope),
        observe: fn(&SharedIndex, Scope, Event<Decoded<K>>),
    ) where
        K: Resource<DynamicType = Scope> + Clone + DeserializeOwned + Debug + Send + 'static,
    {
        let shared = Arc::clone(self.shared);
        let api = Api::all_with(self.client.clone(), &scope);
        let all = Config::default();
        self.program
            .watch_kind_if_served(name, (api, &scope), all, move |event| {
                observe(&shared, scope, event);
            });
    }
}
