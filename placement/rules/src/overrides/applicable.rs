//! The snapshots of overrides that the binding of a cluster lists.

use std::collections::BTreeMap;

use fleet_api::binding::BindingSpec;
use fleet_api::names::OVERRIDES_DIGEST;
use fleet_api::placement::{NamespacedName, ResourceIdentifier};
use fleet_api::{Binding, MemberCluster, Placement};
use objects::Metadata;

use super::digest::digest;
use super::snapshot::SnapshotView;

/// Everything that decides about the overrides of a placement.
#[derive(Clone, Copy, Debug)]
pub struct OverridesFacts<'a> {
    /// The placement.
    pub placement: &'a Placement,
    /// The latest snapshot of each override that stays.
    pub latest: &'a [SnapshotView<'a>],
    /// The snapshots that bindings of the placement list, as far as they are there.
    pub listed: &'a [SnapshotView<'a>],
    /// The objects that it places.
    pub objects: &'a [ResourceIdentifier],
    /// The clusters of the fleet.
    pub clusters: &'a [&'a MemberCluster],
}

/// The namespace, which is empty if it is cluster-scoped, and the name of an override or a snapshot.
type Name<'a> = (&'a str, &'a str);

/// The overrides of a placement, cluster by cluster.
#[derive(Clone, Debug, Default)]
pub struct Overrides<'a> {
    by_cluster: BTreeMap<&'a str, (&'a MemberCluster, Applicable)>,
    /// The snapshots that are listed, or are to be.
    snapshots: BTreeMap<Name<'a>, SnapshotView<'a>>,
    /// Whether each override that stays is a change of the placement by itself.
    roll_out: BTreeMap<Name<'a>, bool>,
}

/// The snapshots of overrides for one cluster, in the order in which they are applied.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Applicable {
    /// Those of cluster-scoped overrides.
    pub cluster_scoped: Vec<String>,
    /// Those of namespaced overrides, which are applied after them.
    pub namespaced: Vec<NamespacedName>,
}

impl<'a> Overrides<'a> {
    /// Finds the overrides of a placement: those with a rule for a cluster, and for an object that it gets.
    pub fn of(facts: &OverridesFacts<'a>) -> Self {
        let placement = facts.placement.metadata.key();
        let latest = facts.latest.iter().filter(|one| one.is_for(&placement));
        let mut concerned: Vec<_> = latest
            .clone()
            .filter(|one| facts.objects.iter().any(|object| one.selects(object)))
            .collect();
        concerned.sort_by_key(|one| one.name());
        let by_cluster = facts.clusters.iter().map(|cluster| {
            let with_rules = concerned
                .iter()
                .filter(|one| one.rules(cluster).next().is_some());
            let applicable = Applicable::among(with_rules.map(|one| one.name()));
            (cluster.metadata.name(), (*cluster, applicable))
        });
        let known = concerned.iter().copied().chain(facts.listed);
        Self {
            by_cluster: by_cluster.collect(),
            snapshots: known.map(|one| (one.name(), *one)).collect(),
            roll_out: latest
                .map(|one| (one.parent(), one.rolls_out(facts.placement)))
                .collect(),
        }
    }

    /// Returns those that a binding is to list once it gets anything, if its cluster is known.
    pub(crate) fn applicable(&self, binding: &Binding) -> Option<&Applicable> {
        let (_, applicable) = self.by_cluster.get(&*binding.spec.target_cluster)?;
        Some(applicable)
    }

    /// Returns the digest of these, if there are any.
    pub(crate) fn digest(&self, binding: &Binding) -> Option<String> {
        let (cluster, applicable) = self.by_cluster.get(&*binding.spec.target_cluster)?;
        self.digest_of(applicable.names(), cluster)
    }

    /// Returns the digest of those that the binding of a cluster is to list, if there are any.
    pub(crate) fn digest_for(&self, cluster: &str, listed: &Applicable) -> Option<String> {
        let (cluster, _) = self.by_cluster.get(cluster)?;
        self.digest_of(listed.names(), cluster)
    }

    fn digest_of<'n>(
        &self,
        names: impl Iterator<Item = Name<'n>>,
        cluster: &MemberCluster,
    ) -> Option<String> {
        digest(names.filter_map(|name| self.snapshots.get(&name)), cluster)
    }

    /// Returns `true` if a binding is to list others, or those that it lists come to something else by now. A change of an
    /// override that names no placement waits for the next change of something else; the end of one does not.
    pub(crate) fn are_stale(&self, binding: &Binding) -> bool {
        let target = &*binding.spec.target_cluster;
        let Some((cluster, applicable)) = self.by_cluster.get(target) else {
            return false;
        };
        let listed: Vec<_> = listed(&binding.spec).collect();
        if listed.iter().any(|name| self.rolls_out(*name).is_none()) {
            return true;
        }
        let due = applicable.names();
        let due = due.filter(|name| self.rolls_out(*name) == Some(true));
        let given = listed.iter().copied();
        if given
            .filter(|name| self.rolls_out(*name) == Some(true))
            .ne(due)
        {
            return true;
        }
        // Where nobody noted their effect, another controller gave them.
        let given = binding.metadata.annotation(OVERRIDES_DIGEST);
        given.is_some() && self.digest_of(listed.into_iter(), cluster).as_deref() != given
    }

    /// Returns whether the override of a snapshot is a change by itself, if both are there.
    fn rolls_out(&self, snapshot: Name<'_>) -> Option<bool> {
        let snapshot = self.snapshots.get(&snapshot)?;
        self.roll_out.get(&snapshot.parent()).copied()
    }
}

/// Returns the namespace, which is empty for a cluster-scoped one, and the name of each snapshot that a binding lists, in the
/// order in which they are applied.
pub fn listed(spec: &BindingSpec) -> impl Iterator<Item = (&str, &str)> {
    names(
        &spec.cluster_resource_override_snapshots,
        &spec.resource_override_snapshots,
    )
}

fn names<'l>(
    cluster_scoped: &'l [String],
    namespaced: &'l [NamespacedName],
) -> impl Iterator<Item = Name<'l>> {
    let cluster_scoped = cluster_scoped.iter().map(|name| ("", &**name));
    let namespaced = namespaced.iter();
    cluster_scoped.chain(namespaced.map(|one| (&*one.namespace, &*one.name)))
}

impl Applicable {
    fn among<'n>(snapshots: impl Iterator<Item = Name<'n>>) -> Self {
        let mut among = Self::default();
        for (namespace, name) in snapshots {
            let name = name.to_owned();
            if namespace.is_empty() {
                among.cluster_scoped.push(name);
            } else {
                let namespace = namespace.to_owned();
                among.namespaced.push(NamespacedName { name, namespace });
            }
        }
        among
    }

    /// Returns the namespace and the name of each, like [`listed`].
    pub(super) fn names(&self) -> impl Iterator<Item = (&str, &str)> {
        names(&self.cluster_scoped, &self.namespaced)
    }
}
