//! The changes that wake placements, bindings, runs, overrides and clusters: a table of each kind. The objects that may
//! be placed are of any kind: `selected`.

mod selected;

use std::collections::BTreeSet;
use std::fmt::Debug;
use std::sync::{Arc, Weak};

use fleet_api::names::{IS_LATEST, RESOURCE_INDEX, cluster_of_member_namespace};
use fleet_api::overrides::OverrideSnapshot;
use fleet_api::{
    ApprovalRequest, Binding, ClusterProfile, ClusterResourceOverride,
    ClusterResourcePlacementEviction, ClusterResourcePlacementStatus, MemberCluster, Placement,
    PolicySnapshot, ResourceOverride, StagedUpdateRun, StagedUpdateStrategy,
};
use jiff::Timestamp;
use karmada_runtime::cache::Transition;
use karmada_runtime::program::Program;
use karmada_runtime::wakes::Watch;
use karmada_runtime::watch::Decoded;
use kube::runtime::watcher::Config;
use kube::{Api, Client, Resource};
use objects::{Key, Metadata, Scope};
use placement_rules::overrides::listed;
use placement_rules::parents::placement_of;
use placement_rules::status::{has_arrived, is_complete};
use serde::de::DeserializeOwned;
use tokio::sync::Notify;

use crate::args::Args;
use crate::identity::NAMESPACE;
use crate::index::{BindingSide, Definition, Index, StoredSnapshot, StoredWork, cluster_of};
use crate::kinds;
use crate::overrides::InScope;
use crate::scoped::Scoped;
use crate::shared::{Queues, SharedIndex};

/// The rows of a kind.
type Rows<K, T = ()> = Watch<Index, K, T>;

/// Adds to the rows of a kind the keys that it wakes.
type Table<K, T> = fn(Rows<K, T>, &Arc<SharedIndex>) -> Rows<K, T>;

/// Watches everything that decides about placements, and returns the index of the watched objects.
pub(crate) fn watch(program: &mut Program, client: &Client, args: &Args) -> Arc<SharedIndex> {
    let shared = Arc::new_cyclic(|shared| {
        let (watches, watching) = selected::watches(client, Weak::clone(shared));
        program.run_until_stopped("objects", watching);
        SharedIndex::new(args, watches)
    });
    let changed = Arc::new(Notify::new());
    watch_definitions(program, client, &shared, Arc::clone(&changed));
    kinds::keep_known(program, client, args.hub(), &shared, changed);
    watch_hub(&mut Starter {
        program,
        client,
        shared: &shared,
    });
    shared
}

/// Watches the objects made for placements, those that they name, and the clusters.
fn watch_hub(to: &mut Starter<'_>) {
    to.start_scoped(
        Since::FirstRelease,
        ["placements", "namespacedplacements"],
        |index| &mut index.placements,
        placements,
    );
    to.start_scoped(
        Since::FirstRelease,
        ["policysnapshots", "namespacedpolicysnapshots"],
        |index| &mut index.policies,
        policies,
    );
    to.start_scoped(
        Since::FirstRelease,
        ["resourcesnapshots", "namespacedresourcesnapshots"],
        |index| &mut index.snapshots,
        snapshots,
    );
    to.start_scoped(
        Since::FirstRelease,
        ["bindings", "namespacedbindings"],
        |index| &mut index.bindings,
        bindings,
    );
    to.start_scoped(
        Since::LaterRelease,
        ["updateruns", "namespacedupdateruns"],
        |index| &mut index.runs.runs,
        runs,
    );
    to.start_scoped(
        Since::LaterRelease,
        ["updatestrategies", "namespacedupdatestrategies"],
        |index| &mut index.runs.strategies,
        strategies,
    );
    to.start_scoped(
        Since::LaterRelease,
        ["approvalrequests", "namespacedapprovalrequests"],
        |index| &mut index.runs.approvals,
        approvals,
    );
    let shared = to.shared;
    works(shared).start(to.program, to.client, "works");
    members(shared, to.program.clock).start(to.program, to.client, "memberclusters");
    to.start_if_served("evictions", evictions(shared));
    to.start_if_served("statuscopies", status_copies(shared));
    to.start_if_served(
        "clusteroverrides",
        overrides::<ClusterResourceOverride>(shared),
    );
    to.start_if_served(
        "clusteroverridesnapshots",
        override_snapshots::<ClusterResourceOverride>(shared),
    );
    to.start_if_served("overrides", overrides::<ResourceOverride>(shared));
    to.start_if_served(
        "overridesnapshots",
        override_snapshots::<ResourceOverride>(shared),
    );
    let index = &shared.index;
    let namespaces = Watch::new(index, |index| &mut index.namespaces);
    hub_resources(namespaces, shared).start(to.program, to.client, "namespaces");
    let roles = Watch::new(index, |index| &mut index.roles);
    hub_resources(roles, shared).start(to.program, to.client, "roles");
    let role_bindings = Watch::new(index, |index| &mut index.role_bindings);
    hub_resources(role_bindings, shared).start(to.program, to.client, "rolebindings");
    let channels = Watch::new(index, |index| &mut index.channels);
    hub_resources(channels, shared).start(to.program, to.client, "internalmemberclusters");
    // Others may be in other namespaces.
    let ours = Api::namespaced(to.client.clone(), NAMESPACE);
    profiles(shared).start_if_served(to.program, "clusterprofiles", (ours, &()));
}

/// Every loop that decides about it, and the watches of its selection. Its status is ours, and wakes only the loop that writes
/// it; of one that is going, which is told from time to time, not even that.
fn placements(rows: Rows<Placement>, shared: &Arc<SharedIndex>) -> Rows<Placement> {
    let (wanting, queues) = (Arc::clone(shared), shared.queues.clone());
    rows.follows(move |index, change| {
        if !is_status(change) {
            let placement = change.new.as_deref();
            let staying = placement.filter(|one| !one.metadata.is_deleting());
            wanting.hub.want(&change.key, staying);
        }
        if !is_status(change) || !index.is_deleting(&change.key) {
            queues.wake_status(index, [change.key.clone()]);
        }
    })
    .wakes(&shared.queues.snapshots, |_, change| edited(change))
    .wakes(&shared.queues.schedule, |_, change| edited(change))
    .wakes(&shared.queues.rollout, |_, change| edited(change))
    .wakes(&shared.queues.updates, |index, change| {
        index.runs.open_keys(edited(change))
    })
}

/// The loops that decide about its placement. A status, too, wakes those that wait for the one that was written.
fn policies(
    rows: Rows<PolicySnapshot, Key>,
    shared: &Arc<SharedIndex>,
) -> Rows<PolicySnapshot, Key> {
    let queues = shared.queues.clone();
    rolled_out(rows, &shared.queues)
        .follows(move |index, change| queues.wake_status(index, placements_of(change)))
        .wakes(&shared.queues.schedule, |_, change| placements_of(change))
        .wakes(&shared.queues.snapshots, |_, change| {
            let placements = edited(change).map(|_| placements_of(change));
            placements.unwrap_or_default()
        })
}

/// The loops that decide about its placement, apart from that which picks the clusters, and the bindings that may wait for it.
fn snapshots(
    rows: Rows<StoredSnapshot, Key>,
    shared: &Arc<SharedIndex>,
) -> Rows<StoredSnapshot, Key> {
    let queues = shared.queues.clone();
    rolled_out(rows, &shared.queues)
        .follows(move |index, change| queues.wake_status(index, placements_of(change)))
        .wakes(&shared.queues.snapshots, |_, change| placements_of(change))
        .wakes(&shared.queues.works, |index, change| naming(index, change))
}

/// Itself, its placement, and the overrides that it lists no longer: the snapshots of one stay for those that list them.
fn bindings(
    rows: Rows<Binding, BindingSide>,
    shared: &Arc<SharedIndex>,
) -> Rows<Binding, BindingSide> {
    let queues = shared.queues.clone();
    rolled_out(rows, &shared.queues)
        .wakes(&shared.queues.works, |_, change| [change.key.clone()])
        .wakes(&shared.queues.overrides, |index, change| {
            index.overrides.unlisted(change)
        })
        .follows(move |index, change| {
            // The rest of one that is going is told from time to time.
            let mut placements = placements_of(change);
            placements.retain(|placement| !index.is_deleting(placement));
            queues.wake_status(index, placements);
        })
        // Nothing follows that could be told together with it.
        .wakes(&shared.queues.status, |index, change| {
            completed(index, change)
        })
        .wakes(&shared.queues.schedule, |index, change| {
            to_schedule(index, change)
        })
        .wakes(&shared.queues.snapshots, |index, change| {
            to_schedule(index, change)
        })
}

/// Its binding, and its cluster if that is leaving: it waits for its Works.
fn works(shared: &Arc<SharedIndex>) -> Rows<StoredWork, Key> {
    Watch::new(&shared.index, |index| &mut index.works)
        .wakes(&shared.queues.works, |index, change| {
            index.works.concerned(change)
        })
        .wakes(&shared.queues.membership, |index, change| {
            let cluster = cluster_of_member_namespace(&change.key.namespace)?;
            let known = index.fleet.get(cluster)?;
            let is_leaving = known.metadata.is_deleting();
            is_leaving.then(|| Key::cluster_scoped(cluster))
        })
}

/// Itself. The placements on it are woken once it is judged.
fn members(shared: &Arc<SharedIndex>, clock: fn() -> Timestamp) -> Rows<MemberCluster> {
    let queues = &shared.queues;
    Watch::new(&shared.index, |index| &mut index.fleet.members)
        .follows(move |index, change| index.fleet.hear(change, clock()))
        .wakes(&queues.membership, |_, change| [change.key.clone()])
        .wakes(&queues.profiles, |_, change| [change.key.clone()])
        .wakes(&queues.fleet, |_, change| [change.key.clone()])
}

/// Its cluster.
fn profiles(shared: &Arc<SharedIndex>) -> Rows<ClusterProfile> {
    Watch::new(&shared.index, |index| &mut index.profiles)
        .wakes(&shared.queues.profiles, |_, change| {
            [Key::cluster_scoped(&*change.key.name)]
        })
}

/// The cluster to which it belongs.
fn hub_resources<K>(rows: Rows<K>, shared: &SharedIndex) -> Rows<K> {
    rows.wakes(&shared.queues.membership, |_, change| {
        cluster_of(&change.key).map(Key::cluster_scoped)
    })
}

/// The evictions of its placement.
fn evictions(shared: &Arc<SharedIndex>) -> Rows<ClusterResourcePlacementEviction> {
    Watch::new(&shared.index, |index| &mut index.evictions).wakes(
        &shared.queues.evictions,
        |_, change| {
            let eviction = change.new.as_ref();
            eviction.map(|eviction| Key::cluster_scoped(&*eviction.spec.placement_name))
        },
    )
}

/// The loop that writes it: it may be gone, or changed.
fn status_copies(shared: &Arc<SharedIndex>) -> Rows<ClusterResourcePlacementStatus> {
    let queues = shared.queues.clone();
    Watch::new(&shared.index, |index| &mut index.status_copies).follows(move |index, change| {
        queues.wake_status(index, [Key::cluster_scoped(&*change.key.name)]);
    })
}

/// Itself: its status leads to its next step.
fn runs(rows: Rows<StagedUpdateRun, Key>, shared: &Arc<SharedIndex>) -> Rows<StagedUpdateRun, Key> {
    rows.wakes(&shared.queues.updates, |_, change| [change.key.clone()])
}

/// The runs that may wait for it. One that has begun has looked at it.
fn strategies(
    rows: Rows<StagedUpdateStrategy>,
    shared: &Arc<SharedIndex>,
) -> Rows<StagedUpdateStrategy> {
    rows.wakes(&shared.queues.updates, |index, change| {
        let is_new = change.old.is_none();
        let waiting = is_new.then(|| index.runs.naming(&change.key));
        waiting.unwrap_or_default()
    })
}

/// Its run.
fn approvals(
    rows: Rows<ApprovalRequest, Key>,
    shared: &Arc<SharedIndex>,
) -> Rows<ApprovalRequest, Key> {
    rows.wakes(&shared.queues.updates, |index, change| {
        index.runs.approvals.concerned(change)
    })
}

/// Itself and those that name its objects, and the placements that it may be about.
fn overrides<K: InScope>(shared: &Arc<SharedIndex>) -> Rows<K> {
    let queues = &shared.queues;
    Watch::new(&shared.index, |index| {
        &mut K::scope_mut(&mut index.overrides).overrides
    })
    .wakes(&queues.overrides, |index, change| {
        K::scope_mut(&mut index.overrides).update(&change.key)
    })
    .wakes(&queues.rollout, |index, change| {
        let specs = change.versions().map(K::spec);
        let placements = specs.flat_map(|spec| index.overridden(spec, &change.key.namespace));
        placements.collect::<Vec<_>>()
    })
}

/// Its override and those that name its objects; and if it is new or gone, as nothing else of it ever changes, the placements
/// that it may be about, and the bindings that list it.
fn override_snapshots<K: InScope>(shared: &Arc<SharedIndex>) -> Rows<K::Snapshot, Key> {
    let queues = &shared.queues;
    Watch::new(&shared.index, |index| {
        &mut K::scope_mut(&mut index.overrides).snapshots
    })
    .wakes(&queues.overrides, |index, change| {
        let scope = K::scope_mut(&mut index.overrides);
        let parents = scope.snapshots.concerned(change);
        let concerned = parents.iter().flat_map(|parent| scope.update(parent));
        concerned.collect::<Vec<_>>()
    })
    .wakes(&queues.rollout, |index, change| {
        let spec = created_or_deleted(change).map(|one| &one.spec().override_spec);
        let placements = spec.map(|spec| index.overridden(spec, &change.key.namespace));
        placements.unwrap_or_default()
    })
    .wakes(&queues.works, |index, change| {
        let Key { namespace, name } = &change.key;
        let spec = created_or_deleted(change).map(|one| &one.spec().override_spec);
        let bindings = spec.map(|spec| index.overridden_by(spec, namespace));
        let listing = bindings.into_iter().flatten().filter(|binding| {
            listed(&binding.spec).any(|listed| listed == (&**namespace, &**name))
        });
        listing.map(|one| one.metadata.key()).collect::<Vec<_>>()
    })
}

/// The objects made for a placement wake those that give them to clusters: the rollout, and the runs that are not over.
fn rolled_out<K: Resource, T>(rows: Rows<K, T>, queues: &Queues) -> Rows<K, T> {
    rows.wakes(&queues.rollout, |_, change| placements_of(change))
        .wakes(&queues.updates, |index, change| {
            index.runs.open_keys(placements_of(change))
        })
}

/// The kinds of the hub, as definitions come and go, and every cluster as that of profiles does.
fn watch_definitions(
    program: &mut Program,
    client: &Client,
    shared: &Arc<SharedIndex>,
    changed: Arc<Notify>,
) {
    let rows = Watch::new(&shared.index, |index| &mut index.definitions)
        .wakes(&shared.queues.profiles, |index, _| index.fleet.keys());
    let mut observe = rows.into_observer(program, &Definition::kind(&()));
    let definitions: Api<Decoded<Definition>> = Api::all(client.clone());
    program.watch(
        "definitions",
        definitions,
        Config::default(),
        move |event| {
            observe(event);
            changed.notify_one();
        },
    );
}

/// When a kind was first released.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Since {
    /// With the first ones. That with namespaces is newer always.
    FirstRelease,
    /// Later: the hub may have older definitions.
    LaterRelease,
}

/// Starts the watches of kinds of the hub.
struct Starter<'a> {
    program: &'a mut Program,
    client: &'a Client,
    shared: &'a Arc<SharedIndex>,
}

impl Starter<'_> {
    /// Starts the watch of a kind that is newer than the first release.
    fn start_if_served<K, T>(&mut self, name: &'static str, rows: Rows<K, T>)
    where
        K: Resource<DynamicType = ()> + Clone + Default + DeserializeOwned + Debug + Send + 'static,
        T: Clone + Ord + 'static,
    {
        let all = Api::all(self.client.clone());
        rows.start_if_served(self.program, name, (all, &()));
    }

    /// Starts the watches of two kinds that differ in scope.
    fn start_scoped<K, T>(
        &mut self,
        since: Since,
        [cluster_scoped, namespaced]: [&'static str; 2],
        stores: fn(&mut Index) -> &mut Scoped<K, T>,
        table: Table<K, T>,
    ) where
        K: Resource<DynamicType = Scope>
            + Clone
            + Default
            + DeserializeOwned
            + Debug
            + Send
            + 'static,
        T: Clone + Ord + 'static,
    {
        for (scope, name) in [
            (Scope::Cluster, cluster_scoped),
            (Scope::Namespaced, namespaced),
        ] {
            let rows = Watch::new(&self.shared.index, move |index| {
                stores(index).store_mut(scope)
            });
            let rows = table(rows, self.shared);
            if (since, scope) == (Since::FirstRelease, Scope::Cluster) {
                rows.start(self.program, self.client, name);
            } else {
                let all = Api::all_with(self.client.clone(), &scope);
                rows.start_if_served(self.program, name, (all, &scope));
            }
        }
    }
}

/// Returns the placements for which either version of an object was made.
fn placements_of<K: Resource>(change: &Transition<K>) -> BTreeSet<Key> {
    let versions = change.versions();
    let placements = versions.filter_map(|version| placement_of(version.meta()));
    placements.collect()
}

/// Returns the placements that may need another binding after a change of one, or name a snapshot no longer, or waited for
/// the last one to go.
fn to_schedule(index: &Index, change: &Transition<Binding>) -> BTreeSet<Key> {
    let mut placements = placements_of(change);
    placements.retain(|placement| !is_status(change) || index.is_deleting(placement));
    placements
}

/// Returns the placements whose rollout is complete with a change of one binding.
fn completed(index: &Index, change: &Transition<Binding>) -> BTreeSet<Key> {
    let [before, now] =
        [&change.old, &change.new].map(|version| version.as_deref().is_some_and(has_arrived));
    if before || !now {
        return BTreeSet::new();
    }
    let mut placements = placements_of(change);
    placements.retain(|placement| {
        let bindings = index.bindings_of(placement);
        is_complete(&bindings.iter().map(|one| &**one).collect::<Vec<_>>())
    });
    placements
}

/// Returns the bindings that name the group of snapshots to which one belongs, or whose master is lost.
fn naming(index: &Index, change: &Transition<StoredSnapshot>) -> Vec<Key> {
    let Some(snapshot) = change.new.as_deref().map(Resource::meta) else {
        return Vec::new();
    };
    let index_label = snapshot.label(RESOURCE_INDEX);
    let placement = placement_of(snapshot).unwrap_or_default();
    let bindings = index.bindings_of(&placement).into_iter();
    let naming = bindings.filter(|binding| {
        let master = Key::new(&*placement.namespace, &*binding.spec.resource_snapshot_name);
        let master = index.snapshots.get(&master);
        // The label of the latest says nothing to a binding.
        let is_news = change.old.is_none() || snapshot.label(IS_LATEST).is_none();
        is_news && master.is_some_and(|master| master.meta().label(RESOURCE_INDEX) == index_label)
    });
    naming.map(|binding| binding.metadata.key()).collect()
}

/// Returns the object if it is new or gone.
fn created_or_deleted<K>(change: &Transition<K>) -> Option<&K> {
    let mut versions = change.versions();
    let one = versions.next();
    one.filter(|_| versions.next().is_none())
}

/// Returns the key of an object if more than its status differs.
fn edited<K: Resource>(change: &Transition<K>) -> Option<Key> {
    (!is_status(change)).then(|| change.key.clone())
}

/// Returns `true` if nothing but the status differs.
fn is_status<K: Resource>(change: &Transition<K>) -> bool {
    !change.differs(|old, new| {
        let (old, new) = (old.meta(), new.meta());
        old.uid != new.uid
            || old.generation != new.generation
            || old.labels != new.labels
            || old.annotations != new.annotations
            || old.finalizers != new.finalizers
            || old.deletion_timestamp != new.deletion_timestamp
    })
}
