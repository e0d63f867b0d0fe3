//! The watched objects, looked up by their owners.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use fleet_api::ClusterProfile;
use fleet_api::binding::BindingState;
use fleet_api::names::cluster_of_member_namespace;
use fleet_api::overrides::OverrideSpec;
use fleet_api::{
    Binding, ClusterResourcePlacementEviction, ClusterResourcePlacementStatus,
    InternalMemberCluster, Placement, PolicySnapshot, ResourceSnapshot, Work,
};
use jiff::{SignedDuration, Timestamp};
use k8s_openapi::api::core::v1::Namespace;
use k8s_openapi::api::rbac::v1::{Role, RoleBinding};
use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use karmada_runtime::as_text::AsText;
use karmada_runtime::expectations::Expectations;
use karmada_runtime::metrics::count_value;
use karmada_runtime::store::Store;
use kube::Resource;
use kube::core::PartialObjectMeta;
use objects::{Key, Metadata, group_kind};
use placement_rules::eviction::is_terminal;
use placement_rules::overrides::named_placement;
use placement_rules::parents::{binding_of_work, placement_of};
use placement_rules::refuse::{self, Refusal};
use placement_rules::select::Selection;
use placement_rules::snapshot::{latest_policy, latest_resources, whole_group};

use crate::fleet::Fleet;
use crate::overrides::OverrideIndex;
use crate::runs::RunIndex;
use crate::scoped::Scoped;

/// The summary of an object of which nothing is asked often.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct NoSummary;

impl<K> From<&K> for NoSummary {
    fn from(_: &K) -> Self {
        Self
    }
}

/// A snapshot as text.
pub(crate) type StoredSnapshot = AsText<ResourceSnapshot, NoSummary>;
/// A Work as text.
pub(crate) type StoredWork = AsText<Work, NoSummary>;

/// A definition of a kind, of which nothing but the metadata is read.
pub(crate) type Definition = PartialObjectMeta<CustomResourceDefinition>;

/// The objects that a placement selects, or why nothing is done about it.
pub(crate) type Selected = Result<Selection, Refusal>;

/// The placement and the cluster of a binding.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum BindingSide {
    Placement(Key),
    Cluster(String),
}

/// The objects of the hub as the watches last showed them, besides those that are placed.
#[derive(Debug)]
pub(crate) struct Index {
    pub(crate) placements: Scoped<Placement>,
    /// By their placements.
    pub(crate) policies: Scoped<PolicySnapshot, Key>,
    /// By their placements.
    pub(crate) snapshots: Scoped<StoredSnapshot, Key>,
    pub(crate) bindings: Scoped<Binding, BindingSide>,
    /// By their bindings.
    pub(crate) works: Store<StoredWork, Key>,
    pub(crate) evictions: Store<ClusterResourcePlacementEviction>,
    /// The statuses of placements in the namespaces that they place.
    pub(crate) status_copies: Store<ClusterResourcePlacementStatus>,
    pub(crate) overrides: OverrideIndex,
    pub(crate) runs: RunIndex,
    pub(crate) fleet: Fleet,
    /// Those of clusters, as are the roles and their bindings.
    pub(crate) namespaces: Store<Namespace>,
    pub(crate) roles: Store<Role>,
    pub(crate) role_bindings: Store<RoleBinding>,
    pub(crate) channels: Store<InternalMemberCluster>,
    /// That of the profiles of clusters, if the hub has it.
    pub(crate) definitions: Store<Definition>,
    pub(crate) profiles: Store<ClusterProfile>,
    /// The holders of objects that the Works of a binding give up.
    pub(crate) held: BTreeMap<Key, String>,
    /// The objects that each placement selected last.
    pub(crate) selected: BTreeMap<Key, Selected>,
    /// Our writes that the watches have not shown yet.
    pub(crate) expectations: Expectations,
}

/// Returns the group of snapshots whose master has this name, the master first, or none while one of them is missing.
pub(crate) fn group(existing: &[Arc<StoredSnapshot>], master: &str) -> Vec<Arc<StoredSnapshot>> {
    let metadata = existing.iter().map(|snapshot| snapshot.meta());
    let group = whole_group(metadata, master).into_iter().flatten();
    let snapshots = group.filter_map(|one| {
        let mut existing = existing.iter();
        existing.find(|snapshot| snapshot.meta().name() == one.name())
    });
    snapshots.map(Arc::clone).collect()
}

/// A placement and the objects made for it.
#[derive(Debug)]
pub(crate) struct Placed {
    pub(crate) placement: Arc<Placement>,
    pub(crate) policies: Vec<Arc<PolicySnapshot>>,
    pub(crate) snapshots: Vec<Arc<StoredSnapshot>>,
    pub(crate) bindings: Vec<Arc<Binding>>,
    /// The names of the snapshots that runs give, or have given last.
    pub(crate) pinned: BTreeSet<String>,
}

impl Placed {
    pub(crate) fn policies(&self) -> Vec<&PolicySnapshot> {
        self.policies.iter().map(|policy| &**policy).collect()
    }

    /// Returns the metadata of the snapshots of its selection.
    pub(crate) fn snapshots(&self) -> Vec<&ObjectMeta> {
        self.snapshots
            .iter()
            .map(|snapshot| snapshot.meta())
            .collect()
    }

    /// Returns the groups and kinds of its selection, by its last status and by its latest snapshot.
    pub(crate) fn selected_kinds(&self) -> BTreeSet<(String, String)> {
        let status = self.placement.status.iter();
        let told = status.flat_map(|status| &status.selected_resources);
        let told = told.map(|one| (one.group.clone(), one.kind.clone()));
        let latest = latest_resources(self.snapshots());
        let latest = latest.map_or_else(Vec::new, |latest| group(&self.snapshots, latest.name()));
        let objects = latest
            .iter()
            .flat_map(|one| one.object().spec.selected_resources);
        let placed = objects.map(|object| {
            let (group, kind) = group_kind(&object);
            (group.to_owned(), kind.to_owned())
        });
        told.chain(placed).collect()
    }

    pub(crate) fn bindings(&self) -> Vec<&Binding> {
        self.bindings.iter().map(|binding| &**binding).collect()
    }

    /// Returns the names of the snapshots, of both kinds, that bindings name, or are about to.
    pub(crate) fn named(&self) -> BTreeSet<&str> {
        let specs = self.bindings.iter().map(|binding| &binding.spec);
        let names = specs.flat_map(|spec| {
            [
                &*spec.resource_snapshot_name,
                &*spec.scheduling_policy_snapshot_name,
            ]
        });
        let pinned = self.pinned.iter().map(|name| &**name);
        names
            .filter(|name| !name.is_empty())
            .chain(pinned)
            .collect()
    }

    /// Returns why nothing is done about the placement until it is another, apart from its selection.
    pub(crate) fn refusal(&self) -> Option<Refusal> {
        let mut problems = refuse::problems(&self.placement);
        if let Some(latest) = latest_policy(&self.policies()) {
            let mut before = Placement::default();
            before.spec.policy.clone_from(&latest.spec.policy);
            problems.extend(refuse::changes(&before, &self.placement));
        }
        Refusal::of(&problems)
    }

    /// Returns `true` if the placement is as it may be, and stays.
    pub(crate) fn is_served(&self) -> bool {
        !self.placement.metadata.is_deleting() && self.refusal().is_none()
    }
}

impl Index {
    pub(crate) fn new(heartbeat_timeout: SignedDuration) -> Self {
        let expectations = Expectations::default();
        let shown = &expectations;
        Self {
            placements: Scoped::expecting(shown),
            policies: Scoped::by(parent_of, shown),
            snapshots: Scoped::by(parent_of, shown),
            bindings: Scoped::by(sides_of, shown),
            works: Store::by(binding_of).expecting(shown, &()),
            evictions: Store::default(),
            status_copies: Store::default().expecting(shown, &()),
            overrides: OverrideIndex::new(shown),
            runs: RunIndex::new(shown),
            fleet: Fleet::new(heartbeat_timeout, shown),
            namespaces: Store::default().only(is_of_cluster).expecting(shown, &()),
            roles: Store::default().only(is_of_cluster).expecting(shown, &()),
            role_bindings: Store::default().only(is_of_cluster).expecting(shown, &()),
            channels: Store::default().only(is_of_cluster).expecting(shown, &()),
            definitions: Store::default().only(is_of_profiles),
            profiles: Store::default().expecting(shown, &()),
            held: BTreeMap::new(),
            selected: BTreeMap::new(),
            expectations,
        }
    }

    /// Returns `true` if the hub has the kind of profiles.
    pub(crate) fn serves_profiles(&self) -> bool {
        self.definitions.existing() > 0
    }

    /// Returns the holders of objects that a placement gives up, by their clusters.
    pub(crate) fn held<'p>(&self, placed: &'p Placed) -> Vec<(&'p str, String)> {
        let held = placed.bindings.iter().filter_map(|binding| {
            let held = self.held.get(&binding.metadata.key())?;
            Some((&*binding.spec.target_cluster, held.clone()))
        });
        held.collect()
    }

    /// Returns the keys of all placements, and of those of which only bindings are left.
    pub(crate) fn placement_keys(&self) -> Vec<Key> {
        let bindings = self.bindings.iter();
        let bound = bindings.filter_map(|(_, binding)| placement_of(&binding.metadata));
        let keys: BTreeSet<_> = self.placements.keys().cloned().chain(bound).collect();
        keys.into_iter().collect()
    }

    /// Returns the keys of all bindings, and of those of which only Works are left.
    pub(crate) fn binding_keys(&self) -> Vec<Key> {
        let works = self.works.keys();
        let made = works.flat_map(|work| self.works.targets(work));
        let keys: BTreeSet<_> = self.bindings.keys().chain(made).collect();
        keys.into_iter().cloned().collect()
    }

    /// Returns the keys of the placements that evictions wait for.
    pub(crate) fn evicted_placements(&self) -> Vec<Key> {
        let waiting = self.waiting_evictions();
        let keys: BTreeSet<_> = waiting
            .map(|eviction| Key::cluster_scoped(&*eviction.spec.placement_name))
            .collect();
        keys.into_iter().collect()
    }

    /// Returns the names of the evictions that wait for a placement, the oldest first.
    pub(crate) fn evictions_of(&self, placement: &str) -> Vec<String> {
        let waiting = self.waiting_evictions();
        let mut of_it: Vec<_> = waiting
            .filter(|eviction| eviction.spec.placement_name == placement)
            .map(|eviction| {
                let metadata = &eviction.metadata;
                (metadata.creation_timestamp.as_ref(), metadata.name())
            })
            .collect();
        of_it.sort();
        of_it.into_iter().map(|(_, name)| name.to_owned()).collect()
    }

    fn waiting_evictions(&self) -> impl Iterator<Item = &ClusterResourcePlacementEviction> {
        let evictions = self.evictions.iter().map(|(_, eviction)| &**eviction);
        evictions.filter(|eviction| !is_terminal(eviction) && !eviction.metadata.is_deleting())
    }

    /// Returns a placement and the objects made for it.
    pub(crate) fn placed(&self, key: &Key) -> Option<Placed> {
        Some(Placed {
            placement: Arc::clone(self.placements.get(key)?),
            policies: self.policies.of(key),
            snapshots: self.snapshots.of(key),
            bindings: self.bindings_of(key),
            pinned: self.runs.pinned(key),
        })
    }

    /// Returns `true` if a placement is being deleted.
    pub(crate) fn is_deleting(&self, placement: &Key) -> bool {
        let placement = self.placements.get(placement);
        placement.is_some_and(|placement| placement.metadata.is_deleting())
    }

    /// Returns the placements that an override in a namespace, which is empty for a cluster-scoped one, may be about.
    pub(crate) fn overridden(&self, spec: &OverrideSpec, namespace: &str) -> Vec<Key> {
        match named_placement(spec, namespace) {
            Some(placement) => vec![placement],
            None => self.placements.keys().cloned().collect(),
        }
    }

    /// Returns the bindings that may list a snapshot of such an override.
    pub(crate) fn overridden_by(&self, spec: &OverrideSpec, namespace: &str) -> Vec<Arc<Binding>> {
        if let Some(placement) = named_placement(spec, namespace) {
            return self.bindings_of(&placement);
        }
        let all = self.bindings.iter();
        all.map(|(_, binding)| Arc::clone(binding)).collect()
    }

    /// Returns the bindings of a placement.
    pub(crate) fn bindings_of(&self, placement: &Key) -> Vec<Arc<Binding>> {
        self.bindings.of(&BindingSide::Placement(placement.clone()))
    }

    /// Returns the number of bindings of a placement.
    pub(crate) fn count_bindings(&self, placement: &Key) -> usize {
        let side = BindingSide::Placement(placement.clone());
        self.bindings.keys_of(&side).count()
    }

    /// Returns the keys of the bindings on a cluster.
    pub(crate) fn bindings_on(&self, cluster: &str) -> Vec<Key> {
        let side = BindingSide::Cluster(cluster.to_owned());
        self.bindings.keys_of(&side).cloned().collect()
    }

    /// Returns the keys of the placements that have a binding on a cluster.
    pub(crate) fn placements_on(&self, cluster: &str) -> BTreeSet<Key> {
        let bindings = self.bindings.of(&BindingSide::Cluster(cluster.to_owned()));
        let placements = bindings.iter().map(|one| placement_of(&one.metadata));
        placements.flatten().collect()
    }

    /// Returns the Works of a binding.
    pub(crate) fn works_of(&self, binding: &Key) -> Vec<Arc<StoredWork>> {
        self.works.of(binding).map(Arc::clone).collect()
    }

    /// Counts the placements by the reason of their condition whether clusters were found; empty for those without.
    pub(crate) fn placements_by_reason(&self) -> BTreeMap<&'static str, usize> {
        let mut counts = BTreeMap::from(SCHEDULED_REASONS.map(|reason| (reason, 0)));
        for (_, placement) in self.placements.iter() {
            let status = placement.status.as_ref();
            let first = status.and_then(|status| status.conditions.first());
            count_value(&mut counts, first.map_or("", |it| &it.reason));
        }
        counts
    }

    /// Counts the bindings by state.
    pub(crate) fn bindings_by_state(&self) -> BTreeMap<&'static str, usize> {
        let mut counts = BTreeMap::from(["Bound", "Scheduled", "Unscheduled"].map(|it| (it, 0)));
        for (_, binding) in self.bindings.iter() {
            let state = match binding.spec.state {
                BindingState::Bound => "Bound",
                BindingState::Scheduled => "Scheduled",
                BindingState::Unscheduled => "Unscheduled",
            };
            *counts.entry(state).or_default() += 1;
        }
        counts
    }

    /// Counts the clusters that may be given something, and those that may not.
    pub(crate) fn clusters_by_eligibility(&self, now: Timestamp) -> [(&'static str, usize); 2] {
        let all = self.fleet.all(now);
        let eligible = all.iter().filter(|one| one.obstacle.is_none()).count();
        [("true", eligible), ("false", all.len() - eligible)]
    }
}

/// Returns the placement for which an object was made.
fn parent_of<K: Resource>(object: &K) -> BTreeSet<Key> {
    placement_of(object.meta()).into_iter().collect()
}

/// Returns the placement and the cluster of a binding.
fn sides_of(binding: &Binding) -> BTreeSet<BindingSide> {
    let placement = placement_of(&binding.metadata).map(BindingSide::Placement);
    let cluster = BindingSide::Cluster(binding.spec.target_cluster.clone());
    placement.into_iter().chain([cluster]).collect()
}

/// Returns the binding of a Work.
fn binding_of(work: &StoredWork) -> BTreeSet<Key> {
    binding_of_work(work.meta()).into_iter().collect()
}

/// Returns the cluster to which a namespace, or an object in one, belongs.
pub(crate) fn cluster_of(key: &Key) -> Option<&str> {
    let namespace = if key.namespace.is_empty() {
        &key.name
    } else {
        &key.namespace
    };
    cluster_of_member_namespace(namespace)
}

fn is_of_cluster(key: &Key) -> bool {
    cluster_of(key).is_some()
}

fn is_of_profiles(definition: &Key) -> bool {
    let (plural, group) = (ClusterProfile::plural(&()), ClusterProfile::group(&()));
    definition.name == format!("{plural}.{group}")
}

/// The reasons of a placement's first condition. A label has no other value.
const SCHEDULED_REASONS: [&str; 6] = [
    "",
    "InvalidResourceSelectors",
    "PlacementRefused",
    "SchedulePending",
    "SchedulingPolicyFulfilled",
    "SchedulingPolicyUnfulfilled",
];
