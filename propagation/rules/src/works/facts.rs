//! The facts that decide about the Works of a binding.

use std::collections::{BTreeMap, BTreeSet};

use karmada_api::cluster_view::ClusterViewSpec;
use karmada_api::work::APPLIED;
use karmada_api::{
    ClusterView, GracefulEvictionTask, Suspension, TargetCluster, Work,
    cluster_of_execution_namespace, condition, names,
};
use kube::core::ObjectMeta;
use objects::{Key, Metadata};
use serde_json::Value;

use crate::binding_ref::BindingRef;
use crate::interpret::Timed;
use crate::overrides::Overrides;

/// The facts that decide about the Works of a binding.
#[derive(Clone, Debug)]
pub struct WorkFacts<'a> {
    /// The binding.
    pub binding: BindingRef<'a>,
    /// Its template.
    pub template: &'a Value,
    /// The template with each number of replicas that a cluster has, as scripts have made it, or the error of one; empty
    /// if none revises its kind.
    pub revised: BTreeMap<i32, Result<Timed, String>>,
    /// The clusters by name.
    pub clusters: BTreeMap<&'a str, &'a ClusterView>,
    /// The override policies that may select the template.
    pub overrides: Overrides<'a>,
    /// The suspension of its policy, which the binding may not have yet: an edit must not overtake a pause.
    pub policy_suspension: Option<&'a Suspension>,
    /// The Works with the binding's ID, or with the names of its Works.
    pub works: Vec<&'a Work>,
    /// True if the template is a Namespace that every member has, whether or not a policy selects it.
    pub is_everywhere: bool,
    /// The suspensions of each binding that requires this one: its own and that of its policy.
    pub referrers: BTreeMap<Key, Vec<&'a Suspension>>,
}

impl WorkFacts<'_> {
    /// Returns `true` if the binding's own policy suspends dispatching to the cluster.
    pub(super) fn is_paused(&self, cluster: &str) -> bool {
        let in_binding = self.binding.spec.suspension.as_ref();
        let in_binding = in_binding.map(|suspension| &suspension.dispatching);
        let mut suspensions = in_binding.into_iter().chain(self.policy_suspension);
        suspensions.any(|suspension| suspension.suspends(cluster))
    }

    /// Returns `true` if dispatching to the cluster is suspended: by the binding's own policy, or by that of
    /// every binding on whose account alone the cluster needs the template.
    pub(super) fn is_suspended(&self, cluster: &str) -> bool {
        if self.is_paused(cluster) {
            return true;
        }
        if self.binding.has_target(cluster) {
            return false;
        }
        let snapshots = self.binding.spec.required_by.iter().flatten();
        let mut requiring = snapshots
            .filter(|snapshot| {
                let mut targets = snapshot.clusters.iter().flatten();
                targets.any(|target| target.name == cluster)
            })
            .peekable();
        requiring.peek().is_some()
            && requiring.all(|snapshot| {
                let key = Key::new(
                    snapshot.namespace.clone().unwrap_or_default(),
                    snapshot.name.clone().unwrap_or_default(),
                );
                let mut suspensions = self.referrers.get(&key).into_iter().flatten();
                suspensions.any(|suspension| suspension.suspends(cluster))
            })
    }

    /// Returns the Work that each cluster has by the name of the binding's Works, even if it is another's.
    pub(super) fn named(&self) -> BTreeMap<&str, &Work> {
        let name = work_name(self.binding);
        let named = self.works.iter();
        named
            .filter(|work| work.metadata.name() == name)
            .filter_map(|work| Some((cluster_of(work)?, *work)))
            .collect()
    }
}

/// Returns the clusters that need the template, with the replicas of those that it was scheduled to.
pub fn wanted_clusters(binding: BindingRef<'_>) -> BTreeMap<&str, Option<&TargetCluster>> {
    let needed = binding.spec.all_targets();
    let needed = needed.map(|target| (target.name.as_str(), None));
    let scheduled = binding.targets();
    needed
        .chain(scheduled.map(|target| (target.name.as_str(), Some(target))))
        .collect()
}

/// Returns the clusters that the template is leaving with grace.
pub fn kept_clusters(binding: BindingRef<'_>) -> BTreeSet<&str> {
    evictions(binding)
        .filter(|task| !task.purges_directly())
        .map(|task| task.from_cluster.as_str())
        .collect()
}

/// Returns the clusters that the template leaves before it comes to others.
pub(super) fn purged_clusters(binding: BindingRef<'_>) -> BTreeSet<&str> {
    evictions(binding)
        .filter(|task| task.purges_directly())
        .map(|task| task.from_cluster.as_str())
        .collect()
}

fn evictions(binding: BindingRef<'_>) -> impl Iterator<Item = &GracefulEvictionTask> {
    binding.spec.graceful_eviction_tasks.iter().flatten()
}

/// Returns the ID of a binding, or that of the Works which refer to it: a writer that replaces the labels of
/// the binding takes its own, as Karmada's controller of `MultiClusterService`s does every other time.
pub fn id<'a>(binding: BindingRef<'a>, works: &'a [Work]) -> Option<&'a str> {
    let reference = binding.reference();
    let referring = works.iter().filter(|work| {
        let mut reference = reference.iter();
        reference.all(|(key, value)| work.metadata.annotation(key) == Some(*value))
    });
    let mut ids = referring.filter_map(|work| work.metadata.label(binding.id_label()));
    binding.id().or_else(|| ids.next())
}

/// Returns the key of the binding that has the Work, unless that is `binding`: Works of all namespaces share one
/// in each cluster, and their names are short.
pub(crate) fn other_owner(work: &Work, binding: BindingRef<'_>) -> Option<Key> {
    let owner = bound(&work.metadata)?;
    (owner != binding.key()).then_some(owner)
}

/// Keeps the parts of a cluster that decide about its Works: whether it is there, and those that override
/// policies select by. The rest is gone before a rule could read it, and wakes nobody when it changes.
pub fn keep_facts(cluster: &mut ClusterView) {
    let metadata = std::mem::take(&mut cluster.metadata);
    let spec = std::mem::take(&mut cluster.spec);
    *cluster = ClusterView {
        metadata: ObjectMeta {
            name: metadata.name,
            uid: metadata.uid,
            resource_version: metadata.resource_version,
            labels: metadata.labels,
            deletion_timestamp: metadata.deletion_timestamp,
            ..ObjectMeta::default()
        },
        spec: ClusterViewSpec {
            provider: spec.provider,
            region: spec.region,
            zones: spec.zones,
            ..ClusterViewSpec::default()
        },
        ..ClusterView::default()
    };
}

/// Returns the key of the binding that the metadata of a Work name; one without a namespace is a `ClusterResourceBinding`.
pub fn bound(work: &ObjectMeta) -> Option<Key> {
    if let Some(name) = work.annotation(names::BINDING_NAME) {
        let namespace = work.annotation(names::BINDING_NAMESPACE)?;
        return Some(Key::new(namespace, name));
    }
    let name = work.annotation(names::CLUSTER_BINDING_NAME)?;
    Some(Key::cluster_scoped(name))
}

/// Returns the name that the binding's Works have in every cluster.
pub fn work_name(binding: BindingRef<'_>) -> String {
    let resource = &binding.spec.resource;
    let group = objects::group(&resource.api_version);
    let namespace = resource.namespace.as_deref().unwrap_or_default();
    let own = binding.metadata.name.as_deref().unwrap_or_default();
    names::works(own, group, &resource.kind, namespace, &resource.name)
}

/// Returns the cluster whose Work it is.
pub(crate) fn cluster_of(work: &Work) -> Option<&str> {
    cluster_of_execution_namespace(work.metadata.namespace.as_deref()?)
}

/// Returns the node ports of a Service, by its template or its Work, that the control plane has allocated: nobody has asked
/// for them, and a member that has given one to another may choose anew.
pub(crate) fn allocated_node_ports(object: &impl Metadata) -> BTreeSet<u16> {
    let ports = object.annotation(names::ALLOCATED_NODE_PORTS);
    let ports = ports.into_iter().flat_map(|ports| ports.split(','));
    ports.filter_map(|port| port.parse().ok()).collect()
}

/// Returns `true` if the member has the manifest of the Work: it was applied at its last change or later.
pub fn is_delivered(work: &Work) -> bool {
    let changed = work
        .metadata
        .annotation(names::MANIFEST_GENERATION)
        .and_then(|generation| generation.parse::<i64>().ok())
        .or(work.metadata.generation);
    work.condition(APPLIED).is_some_and(|applied| {
        let observed = applied.observed_generation;
        // One that Karmada wrote has no generation: it may be about an earlier manifest.
        applied.status == condition::TRUE && observed.is_some() && observed >= changed
    })
}

/// Returns `true` if the template of a binding that is being deleted stays: the deletion is not on its account.
pub fn is_outlived(binding: BindingRef<'_>, template: &Value) -> bool {
    let uid = binding.spec.resource.uid.as_deref();
    // One that was made anew gets another binding.
    uid.is_none_or(|uid| uid == template.uid()) && !template.is_deleting()
}
