//! The changes of bindings, and those that each wakes.

use std::fmt::Debug;

use karmada_api::{ClusterResourceBinding, ResourceBinding};
use karmada_rules::binding_ref::BindingRef;
use karmada_runtime::cache::{Cache, Transition};
use karmada_runtime::watch::Decoded;
use kube::Resource;
use kube::runtime::watcher::Event;
use objects::Key;
use objects::write::{ObjectRef, Write};

use crate::binding::{Reports, Trim};
use crate::index::Index;

impl Index {
    /// Applies an event of a binding, and wakes it, the others of its groups that wait for what it has left, and those that
    /// wait for room which was promised to it.
    pub(crate) fn observe_binding(&mut self, event: Event<Decoded<ResourceBinding>>) -> Vec<Key> {
        let reports = self.reports();
        let changes = changes(&mut self.bindings, event, reports);
        let woken = changes.into_iter().map(|change| self.follow(&change));
        woken.flatten().collect()
    }

    /// Applies an event of a binding, and wakes it, and those that wait for room which was promised to it.
    pub(crate) fn observe_cluster_binding(
        &mut self,
        event: Event<Decoded<ClusterResourceBinding>>,
    ) -> Vec<Key> {
        let reports = self.reports();
        let changes = changes(&mut self.cluster_bindings, event, reports);
        let woken = changes
            .into_iter()
            .map(|change| self.follow_change(&change));
        woken.flatten().collect()
    }

    /// Takes in what was written to a binding, and wakes those whom the event wakes that shows it.
    pub(super) fn take_in(&mut self, write: &Write, stored: &ObjectRef) -> Vec<Key> {
        if stored.key.namespace.is_empty() {
            let change = self.cluster_bindings.written(write, stored);
            change.map_or_else(Vec::new, |change| self.follow_change(&change))
        } else {
            let change = self.bindings.written(write, stored);
            change.map_or_else(Vec::new, |change| self.follow(&change))
        }
    }

    fn follow(&mut self, change: &Transition<ResourceBinding>) -> Vec<Key> {
        let mut woken = self.follow_change(change);
        woken.extend(self.regroup(change));
        woken
    }

    /// Returns what is remembered of the reports of copies.
    fn reports(&self) -> Reports {
        match self.assumed {
            Some(_) => Reports::Health,
            None => Reports::OfMoves,
        }
    }
}

/// Applies an event of a binding and returns the changes after which the decision about it may be another. The echo of
/// our own write is such a change too, so that a decision on an older version is made again.
fn changes<K>(
    cache: &mut Cache<K>,
    mut event: Event<Decoded<K>>,
    reports: Reports,
) -> Vec<Transition<K>>
where
    K: Resource + Trim + Clone + Default + Debug,
    for<'a> &'a K: Into<BindingRef<'a>>,
{
    if let Event::Apply(Decoded::Valid(binding)) | Event::InitApply(Decoded::Valid(binding)) =
        &mut event
    {
        binding.trim(reports);
    }
    let transitions = cache.observe(event).into_iter();
    let changed = transitions.filter(|transition| match (&transition.old, &transition.new) {
        (Some(old), Some(new)) => !same_for_us((&**old).into(), (&**new).into()),
        // One that is gone is woken to be forgotten.
        _ => true,
    });
    changed.collect()
}

/// Returns `true` if nothing that decides about the binding differs. Both are trimmed.
fn same_for_us(old: BindingRef<'_>, new: BindingRef<'_>) -> bool {
    let (a, b) = (old.metadata, new.metadata);
    old.spec == new.spec
        && old.status == new.status
        && a.uid == b.uid
        && a.generation == b.generation
        && a.labels == b.labels
        && a.annotations == b.annotations
        && a.deletion_timestamp == b.deletion_timestamp
}
