//! An override as it was at one moment, and its subject.

use fleet_api::names::PARENT_OVERRIDE;
use fleet_api::overrides::{OverriddenPlacement, OverrideRule, OverrideSnapshot, OverrideSpec};
use fleet_api::placement::{ResourceIdentifier, ResourceSelector};
use fleet_api::{ClusterResourceOverride, MemberCluster, Placement, ResourceOverride};
use jiff::SignedDuration;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use objects::selector::selects as matches;
use objects::{Key, Metadata};

/// The time within which an override and a placement are taken for written together: the placement waits so long for a
/// snapshot of the override, which goes out with it though it names none.
pub const TOGETHER: SignedDuration = SignedDuration::from_mins(1);

/// A snapshot of an override of either scope.
#[derive(Clone, Copy, Debug)]
pub struct SnapshotView<'a> {
    metadata: &'a ObjectMeta,
    spec: &'a OverrideSpec,
    hash: &'a str,
}

impl<'a> SnapshotView<'a> {
    /// Returns a snapshot as one of either scope.
    pub fn of(snapshot: &'a impl OverrideSnapshot) -> Self {
        Self {
            metadata: snapshot.meta(),
            spec: &snapshot.spec().override_spec,
            hash: &snapshot.spec().override_hash,
        }
    }

    /// Returns the namespace, which is empty if it is cluster-scoped, and the name. These order snapshots: KubeFleet applies
    /// them by their own names, not by those of their overrides.
    pub(crate) fn name(&self) -> (&'a str, &'a str) {
        (self.metadata.namespace(), self.metadata.name())
    }

    /// Returns the namespace of the override, which is empty if it is cluster-scoped.
    pub(super) fn namespace(&self) -> &'a str {
        self.metadata.namespace()
    }

    /// Returns the namespace and the name of the override.
    pub(super) fn parent(&self) -> (&'a str, &'a str) {
        let parent = self.metadata.label(PARENT_OVERRIDE);
        (self.metadata.namespace(), parent.unwrap_or_default())
    }

    /// Returns the hash of the override.
    pub(super) fn hash(&self) -> &'a str {
        self.hash
    }

    /// Returns the override, as messages name it.
    pub(super) fn shown(&self) -> String {
        match self.parent() {
            ("", name) => format!("{} {name}", ClusterResourceOverride::KIND),
            (namespace, name) => format!("{} {namespace}/{name}", ResourceOverride::KIND),
        }
    }

    /// Returns `true` if it is a change of a placement by itself: the override names that, or was written with it.
    pub(super) fn rolls_out(&self, placement: &Placement) -> bool {
        let own = self.metadata.creation_timestamp.as_ref();
        let created = own.zip(placement.metadata.creation_timestamp.as_ref());
        let is_together = created
            .is_some_and(|(own, of_placement)| own.0.duration_since(of_placement.0) <= TOGETHER);
        self.spec.placement.is_some() || is_together
    }

    /// Returns `true` if the override may be about a placement.
    pub(super) fn is_for(&self, placement: &Key) -> bool {
        is_for(self.spec, self.metadata.namespace(), placement)
    }

    /// Returns `true` if the override is about an object: that is named, or its namespace is.
    pub(super) fn selects(&self, object: &ResourceIdentifier) -> bool {
        selects(self.spec, self.metadata.namespace(), object)
    }

    /// Returns the rules for a cluster, each with its place from 1.
    pub(super) fn rules(
        &self,
        cluster: &MemberCluster,
    ) -> impl Iterator<Item = (usize, &'a OverrideRule)> {
        let rules = (1..).zip(&self.spec.policy.override_rules);
        rules.filter(move |(_, rule)| {
            let terms = rule.cluster_selector.as_ref();
            let terms = terms.map(|selector| &selector.cluster_selector_terms);
            // No terms select every cluster, and one without labels none.
            terms.is_some_and(|terms| {
                let mut labels = terms.iter().filter_map(|term| term.label_selector.as_ref());
                terms.is_empty() || labels.any(|labels| matches(labels, &cluster.metadata))
            })
        })
    }
}

/// Returns the placement that an override in a namespace, which is empty for a cluster-scoped one, names, if it names one.
pub fn named_placement(spec: &OverrideSpec, own: &str) -> Option<Key> {
    let named = spec.placement.as_ref()?;
    let namespace = if is_namespaced(named) { own } else { "" };
    Some(Key::new(namespace, &*named.name))
}

/// Returns `true` if an override in a namespace may be about a placement: it names that, or none. A cluster-scoped one that
/// names a namespaced placement does not say which.
pub fn is_for(spec: &OverrideSpec, own: &str, placement: &Key) -> bool {
    let is_vague = own.is_empty() && spec.placement.as_ref().is_some_and(is_namespaced);
    !is_vague && named_placement(spec, own).is_none_or(|named| named == *placement)
}

fn is_namespaced(named: &OverriddenPlacement) -> bool {
    named.scope == "Namespaced"
}

/// Returns `true` if an override in a namespace, which is empty for a cluster-scoped one, is about an object: that is named,
/// or its namespace is. Versions of a kind show the same object.
pub fn selects(spec: &OverrideSpec, own: &str, object: &ResourceIdentifier) -> bool {
    let ResourceIdentifier {
        group,
        kind,
        name,
        namespace,
        ..
    } = object;
    if own.is_empty() {
        let mut selectors = spec.cluster_resource_selectors.iter();
        return selectors.any(|selector| match &**namespace {
            "" => names(selector, [group, kind, name]),
            namespace => names(selector, ["", "Namespace", namespace]),
        });
    }
    let mut selectors = spec.resource_selectors.iter();
    own == namespace
        && selectors.any(|one| [&one.group, &one.kind, &one.name] == [group, kind, name])
}

fn names(selector: &ResourceSelector, object: [&str; 3]) -> bool {
    let ResourceSelector {
        group, kind, name, ..
    } = selector;
    [&**group, &**kind, &**name] == object
}
