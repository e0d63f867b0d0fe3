//! The changes that wake placements, bindings and clusters.

mod belongings;
mod overrides;
mod placed;
mod updates;

use std::fmt::Debug;
use std::sync::{Arc, OnceLock, Weak};
use std::time::Duration;

use jiff::Timestamp;
use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition;
use karmada_api::fleet::{ClusterResourceOverride, ResourceOverride};
use karmada_rules::placement::content::Hub;
use karmada_runtime::cache::Transition;
use karmada_runtime::dynamic::{DynamicEvent, DynamicWatches};
use karmada_runtime::error::{Chain, LastError};
use karmada_runtime::program::Program;
use karmada_runtime::queue::Queue;
use karmada_runtime::watch::Decoded;
use kube::core::PartialObjectMeta;
use kube::runtime::watcher::{Config, Event};
use kube::{Api, Client, Resource};
use objects::{GroupVersionKind, Key, Metadata};
use parking_lot::Mutex;
use serde::de::DeserializeOwned;
use tokio::sync::Notify;

use crate::args::Args;
use crate::awaited::Awaited;
use crate::bursts::Bursts;
use crate::index::{Index, Writes};
use crate::inventory::{HubObjects, LOOK_AGAIN, depends_on, is_sweeping, namespaced_kinds};
use crate::requests::Written;

/// The least time between two writes of what a placement says of itself.
const PACE: Duration = Duration::from_secs(1);
/// The time after a failure to look up the kinds of the hub, or a change of one, before the next look.
const LOOK_SOON: Duration = Duration::from_secs(1);

/// The queues of the loops. Those of `works` are the keys of bindings, of `fleet` and `membership` of clusters, of
/// `overrides` of overrides, of `updates` of runs, and the others of placements.
#[derive(Clone, Debug, Default)]
pub(crate) struct Queues {
    pub(crate) membership: Queue<Key>,
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

impl Queues {
    /// Wakes what says where a placement stands, which happens at most once a second.
    pub(crate) fn tell(&self, placement: Key) {
        self.status.add_paced(placement, PACE);
    }
}

/// The watch's answer to a write.
pub(crate) struct Echo<'a> {
    /// Which writes it is among.
    pub(crate) of: fn(&mut Writes) -> &mut Awaited,
    /// What is written.
    pub(crate) object: Key,
    /// For what nothing is decided before.
    pub(crate) owner: &'a Key,
    /// The version that is replaced, as far as that is known.
    pub(crate) replaced: Option<&'a str>,
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
        observer.get_or_init(|| Arc::downgrade(&shared));
        program.run_until_stopped("objects", watching);
        shared.watch_kinds(program, client, args.hub());
        let mut to = Watching {
            program,
            client,
            shared: &shared,
        };
        to.start("placements", Self::observe_placement);
        to.start("policysnapshots", Self::observe_policy);
        to.start("resourcesnapshots", Self::observe_snapshot);
        to.start("bindings", Self::observe_binding);
        to.start("works", Self::observe_work);
        to.start("memberclusters", Self::observe_member);
        to.start_if_served("evictions", Self::observe_eviction);
        to.start_if_served("updateruns", Self::observe_run);
        to.start_if_served("updatestrategies", Self::observe_strategy);
        to.start_if_served("approvalrequests", Self::observe_approval);
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
        let index = Arc::clone(&shared);
        program.report_undecoded(move || index.read(Index::undecoded));
        shared
    }

    /// Reads from the index.
    pub(crate) fn read<T>(&self, read: impl FnOnce(&Index) -> T) -> T {
        read(&self.index.lock())
    }

    /// Changes the index.
    pub(crate) fn change<T>(&self, change: impl FnOnce(&mut Index) -> T) -> T {
        change(&mut self.index.lock())
    }

    /// Writes an object, and lets nothing more be decided for its owner until the watch shows it.
    pub(crate) async fn awaiting(
        &self,
        echo: Echo<'_>,
        write: impl Future<Output = Written>,
    ) -> Written {
        let Echo {
            of,
            object,
            owner,
            replaced,
        } = echo;
        // Before the write, for its echo may come before its answer.
        self.change(|index| of(&mut index.awaited).note(object.clone(), owner.clone()));
        let written = write.await;
        // What failed, was only counted, or is stored as it was has no echo.
        let has_echo = matches!(&written, Ok(Some(version)) if Some(&**version) != replaced);
        if !has_echo {
            self.change(|index| of(&mut index.awaited).shown(&object));
        }
        written
    }

    /// Keeps the kinds of the hub known, as definitions come and go.
    fn watch_kinds(self: &Arc<Self>, program: &mut Program, client: &Client, hub: Hub) {
        let changed = Arc::new(Notify::new());
        let notify = Arc::clone(&changed);
        let definitions: Api<Decoded<PartialObjectMeta<CustomResourceDefinition>>> =
            Api::all(client.clone());
        program.watch("definitions", definitions, Config::default(), move |_| {
            notify.notify_one();
        });
        let (shared, client) = (Arc::clone(self), client.clone());
        program.run_until_stopped("kinds", async move {
            let mut last_error = LastError::default();
            loop {
                match namespaced_kinds(&client, &hub).await {
                    Ok(kinds) => {
                        last_error.clear();
                        if shared.hub.replace_namespaced(kinds) {
                            shared.wake_sweeping();
                        }
                        tokio::select! {
                            () = changed.notified() => {}
                            () = tokio::time::sleep(LOOK_AGAIN) => {}
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

    /// Wakes the placements that select a namespace with all that is in it.
    fn wake_sweeping(&self) {
        let keys = self.read(|index| {
            let placements = index.placements.iter();
            let sweeping =
                placements.filter(|(_, one)| one.spec.resource_selectors.iter().any(is_sweeping));
            sweeping.map(|(key, _)| key.clone()).collect::<Vec<_>>()
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
            let mut selectors = placement.spec.resource_selectors.iter();
            match event {
                DynamicEvent::Changed(changes) => {
                    let is_concerned = selectors.any(|selector| {
                        let mut keys = changes.iter().map(|Transition { key, .. }| key);
                        keys.any(|object| self.hub.may_select(selector, kind, object))
                    });
                    if is_concerned && let Some(end) = self.bursts.note(&key) {
                        self.queues.snapshots.add_at(key, end);
                    }
                }
                DynamicEvent::Unkept(..) => {}
                // Only now everything that it selects may be known.
                DynamicEvent::Listed | DynamicEvent::NotServed | DynamicEvent::Forbidden => {
                    if selectors.any(|selector| depends_on(selector, kind)) {
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
        let selectors = placements
            .iter()
            .flat_map(|one| &one.spec.resource_selectors);
        self.hub.want(selectors);
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
}
