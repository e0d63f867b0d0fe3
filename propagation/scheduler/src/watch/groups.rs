//! The decisions about workloads that are to be together or apart, and the changes that wake the others of a group.

use karmada_api::ResourceBinding;
use karmada_rules::binding_ref::BindingRef;
use karmada_rules::schedule::{SchedulePlan, SpecWrite, is_unscheduled};
use karmada_runtime::cache::Transition;
use karmada_runtime::watch::Decoded;
use kube::runtime::watcher::Event;
use objects::Key;

use super::{SharedIndex, changes};
use crate::groups::{Groups, clusters};
use crate::index::{Index, Snapshot};

impl SharedIndex {
    /// Heeds from now on which workloads are to be together, or apart.
    pub(crate) fn heed_groups(&self) {
        self.index.lock().groups = Some(Groups::default());
    }

    /// Returns a snapshot of the binding `key` with what `plan` decides on it, and `None` if it does not exist.
    pub(crate) fn decide(
        &self,
        key: &Key,
        plan: impl FnOnce(&Snapshot) -> SchedulePlan,
    ) -> Option<(Snapshot, SchedulePlan)> {
        let mut index = self.index.lock();
        let snapshot = index.snapshot(key)?;
        if snapshot.neighbours.is_none() {
            drop(index);
            let plan = plan(&snapshot);
            return Some((snapshot, plan));
        }
        // The next one decides once this decision counts: both would find the same cluster free.
        let plan = plan(&snapshot);
        let decided = match &plan {
            SchedulePlan::Write {
                spec: Some(SpecWrite { clusters, .. }),
                ..
            } => clusters.as_deref(),
            _ => None,
        };
        let groups = index.groups.as_mut();
        let is_other = groups.is_some_and(|groups| groups.assume(key, decided));
        let woken = if is_other {
            index.who_waits_beside(key)
        } else {
            Vec::new()
        };
        drop(index);
        self.queue.add_all(woken);
        Some((snapshot, plan))
    }

    /// Notes that the clusters of the binding `key` were written, as this generation; `None` if they are only observed.
    pub(crate) fn written(&self, key: &Key, generation: Option<i64>) {
        let index = &mut *self.index.lock();
        let shown = index.bindings.get(key).map(|binding| &**binding);
        if let Some(groups) = &mut index.groups {
            groups.written(key, generation, shown);
        }
    }

    /// Notes that the clusters of the binding `key` were not written, and wakes those that waited for them.
    pub(crate) fn not_written(&self, key: &Key) {
        let mut index = self.index.lock();
        let groups = index.groups.as_mut();
        if groups.is_some_and(|groups| groups.assume(key, None)) {
            let woken = index.who_waits_beside(key);
            drop(index);
            self.queue.add_all(woken);
        }
    }
}

impl Index {
    /// Applies an event of a binding, and wakes it and the others of its groups that wait for what it has left.
    pub(crate) fn observe_binding(&mut self, event: Event<Decoded<ResourceBinding>>) -> Vec<Key> {
        let changes = changes(&mut self.bindings, event);
        let mut woken: Vec<_> = changes.iter().map(|change| change.key.clone()).collect();
        let Some(groups) = &mut self.groups else {
            return woken;
        };
        for Transition { key, old, new } in &changes {
            groups.replace(key, new.as_deref());
            let forms = [old.as_deref(), new.as_deref()];
            let [was, is] = forms.map(|form| form.map(clusters).unwrap_or_default());
            let [before, now] =
                forms.map(|form| form.and_then(|form| form.spec.workload_affinity_groups.as_ref()));
            if was == is && before == now {
                continue;
            }
            // One that runs may get more clusters only where another has left some.
            let has_left = before != now || !was.is_subset(&is);
            let others = forms.into_iter().flatten();
            let others = others.flat_map(|form| groups.others(key, form));
            let concerned = others.filter(|other| {
                let other = self.bindings.get(other);
                has_left || other.is_some_and(|other| is_unscheduled((&**other).into()))
            });
            woken.extend(concerned);
        }
        woken
    }

    /// Returns the others in the groups of the binding `key` that may wait for its clusters.
    fn who_waits_beside(&self, key: &Key) -> Vec<Key> {
        let (Some(groups), Some(binding)) = (&self.groups, self.bindings.get(key)) else {
            return Vec::new();
        };
        let others = groups.others(key, binding).into_iter();
        let waiting = others.filter(|other| {
            let other = self.bindings.get(other);
            other.is_some_and(|other| is_unfit((&**other).into()))
        });
        waiting.collect()
    }
}

/// Returns `true` if the binding could not be scheduled, for want of clusters rather than of a quota.
fn is_unfit(binding: BindingRef<'_>) -> bool {
    let condition = binding.scheduled();
    is_unscheduled(binding)
        && condition.is_some_and(|condition| condition.reason != "QuotaExceeded")
}
