//! The facts that decide about the Works of a binding.

use fleet_api::names::OVERRIDES_DIGEST;
use fleet_api::{Binding, MemberCluster, ResourceSnapshot, Work};
use objects::{Key, Metadata};

use crate::envelope::Opening;
use crate::overrides::{SnapshotView, digest, listed};

/// The Works of a binding, and the facts that decide about them.
#[derive(Clone, Copy, Debug)]
pub struct WorksFacts<'a> {
    /// The placement.
    pub placement: &'a Key,
    /// The binding.
    pub binding: &'a Binding,
    /// The group of snapshots that it names, the master first; empty while one of them cannot be found.
    pub snapshots: &'a [&'a ResourceSnapshot],
    /// Which objects are opened.
    pub opening: Opening,
    /// The snapshots of overrides that it lists, in its order, as far as they are there.
    pub overrides: &'a [SnapshotView<'a>],
    /// Its cluster, as long as that is in the fleet.
    pub cluster: Option<&'a MemberCluster>,
    /// The Works that are labelled as its own.
    pub works: &'a [&'a Work],
}

impl WorksFacts<'_> {
    /// Returns the failure to find something without which the Works cannot be made.
    pub(super) fn missing(&self) -> Option<Failure> {
        let spec = &self.binding.spec;
        if self.snapshots.is_empty() {
            let name = &spec.resource_snapshot_name;
            let reason = format!("The snapshot {name} is not found or not complete");
            return Some(Failure::Synchronizing(reason));
        }
        let overrides = self.overrides.iter();
        let gone = listed(spec).filter(|name| overrides.clone().all(|one| one.name() != *name));
        let gone = gone.map(|(namespace, name)| Key::new(namespace, name).to_string());
        let gone: Vec<_> = gone.collect();
        if !gone.is_empty() {
            let gone = gone.join(", ");
            let reason = format!("no snapshot of an override is found that is called {gone}");
            return Some(Failure::Overriding(reason));
        }
        (!self.overrides.is_empty() && self.cluster.is_none()).then(|| {
            let name = &spec.target_cluster;
            Failure::Overriding(format!("the cluster {name} is not found"))
        })
    }

    /// Returns `true` if the overrides come to something else in the cluster than when the rollout gave them.
    pub(super) fn is_outdated(&self) -> bool {
        let given = self.binding.metadata.annotation(OVERRIDES_DIGEST);
        let digest = self.cluster.map(|cluster| digest(self.overrides, cluster));
        given.is_some() && digest.is_some_and(|digest| digest.as_deref() != given)
    }
}

/// Why the Works of a binding stay as they are.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Failure {
    /// An override cannot be applied, for this reason.
    Overriding(String),
    /// They cannot be made, for this reason.
    Synchronizing(String),
}
