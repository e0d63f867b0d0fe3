//! The Works, by their owners, and the clusters that they are for.

use std::collections::BTreeSet;
use std::sync::Arc;

use karmada_api::{ClusterView, execution_namespace};
use karmada_runtime::cache::Transition;
use kube::Resource;
use objects::Key;
use propagation_rules::binding_ref::BindingRef;
use propagation_rules::works::work_name;

use super::Index;
use super::owner::{Owner, StoredWork};

/// The time at which a binding is woken by a change of a Work.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Urgency {
    /// It may need a write of a Work.
    Now,
    /// Every Work has reported.
    Paced,
    /// Others have still to report.
    WithOthers,
}

impl Index {
    /// Returns the Works of a binding: those that refer to it, and those with the names of its Works.
    pub(crate) fn works_of(&self, binding: BindingRef<'_>) -> Vec<Arc<StoredWork>> {
        let name = work_name(binding);
        let targets = binding.spec.all_targets();
        let named = targets.map(|target| Key::new(execution_namespace(&target.name), &name));
        let owner = Owner::Binding(binding.key());
        let keys: BTreeSet<Key> = self.works.keys_of(&owner).cloned().chain(named).collect();
        let works = keys.iter().filter_map(|key| self.works.get(key));
        works.cloned().collect()
    }

    /// Returns the time at which a change of a Work wakes its owner: reports of a binding's Works are taken together.
    pub(crate) fn urgency(&self, change: &Transition<StoredWork>, owner: &Owner) -> Urgency {
        if change.differs(differ_beyond_status) {
            Urgency::Now
        } else if self.works.of(owner).all(|work| work.summary.is_reported) {
            Urgency::Paced
        } else {
            Urgency::WithOthers
        }
    }

    /// Returns the cluster of the name.
    pub(crate) fn cluster(&self, name: &str) -> Option<&Arc<ClusterView>> {
        self.clusters.get(&Key::cluster_scoped(name))
    }

    /// Returns the clusters.
    pub(crate) fn clusters(&self) -> Vec<Arc<ClusterView>> {
        let clusters = self.clusters.iter();
        clusters.map(|(_, cluster)| Arc::clone(cluster)).collect()
    }

    /// Returns the keys of all Namespaces.
    pub(crate) fn namespace_keys(&self) -> Vec<Key> {
        self.namespaces.keys().cloned().collect()
    }
}

/// Returns `true` if something besides the status differs.
fn differ_beyond_status(old: &StoredWork, new: &StoredWork) -> bool {
    let (old, new) = (old.meta(), new.meta());
    old.uid != new.uid
        || old.generation != new.generation
        || old.deletion_timestamp != new.deletion_timestamp
        || old.labels != new.labels
        || old.annotations != new.annotations
}
