//! The changes of bindings, and those that each wakes.

use std::fmt::Debug;

use karmada_api::{ClusterResourceBinding, ResourceBinding};
use karmada_runtime::cache::{Cache, Transition};
use karmada_runtime::watch::Decoded;
use kube::Resource;
use kube::runtime::watcher::Event;
use objects::Key;
use propagation_rules::binding_ref::BindingRef;

use crate::binding::{Reports, Trim};
use crate::index::Index;

impl Index {
    /// Applies an event of a binding, and wakes it, the others of its groups that wait for what it has left, and those that
    /// wait for room which was promised to it.
    pub(crate) fn observe_binding(&mut self, event: Event<Decoded<ResourceBinding>>) -> Vec<Key> {
        let reports = self.reports();
        let mut woken = Vec::new();
        for change in changes(&mut self.bindings, event, reports) {
            woken.push(change.key.clone());
            woken.extend(self.follow_change(&change));
            woken.extend(self.regroup(&change));
        }
        woken
    }

    /// Applies an event of a binding, and wakes it, and those that wait for room which was promised to it.
    pub(crate) fn observe_cluster_binding(
        &mut self,
        event: Event<Decoded<ClusterResourceBinding>>,
    ) -> Vec<Key> {
        let reports = self.reports();
        let mut woken = Vec::new();
        for change in changes(&mut self.cluster_bindings, event, reports) {
            woken.push(change.key.clone());
            woken.extend(self.follow_change(&change));
        }
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
