//! The room that is promised to bindings, and those that wait for it.

use jiff::Timestamp;
use objects::Key;
use propagation_rules::schedule::{Assumed, Assumptions, concerns, waits_for_room};

use super::{Index, left};
use crate::assumptions::AssumedBindings;
use crate::binding::AnyBinding;

impl Index {
    /// Ends the assumptions about the binding `key` that have lasted long enough, and returns those that wait for that room.
    pub(crate) fn end_assumptions(&mut self, key: &Key) -> Vec<Key> {
        if let Some(assumed) = &mut self.assumed {
            assumed.end(key);
        }
        self.recount(key)
    }

    /// Returns the time at which the next assumption about the binding `key` ends by itself.
    pub(crate) fn next_end(&self, key: &Key) -> Option<Timestamp> {
        self.assumed.as_ref()?.shown(key).next_end()
    }

    /// Returns the Pods that are assumed in clusters when the binding `key` is decided; `None` if nobody keeps account of it.
    pub(super) fn assumed_for(&self, key: &Key) -> Option<Assumed> {
        let assumed = self.assumed.as_ref()?;
        // A decision of its own that was perhaps not written leaves room for the same again.
        Some(assumed.all_if(key, &assumed.shown(key)))
    }

    /// Ends the assumptions about any binding that have lasted long enough, or were made by an earlier leader.
    pub(super) fn end_all_assumptions(&mut self) {
        let keys = self.assumed.iter().flat_map(AssumedBindings::keys);
        let keys: Vec<_> = keys.cloned().collect();
        for key in &keys {
            self.end_assumptions(key);
        }
    }

    /// Notes whether a binding that is decided waits for room, to be woken as soon as some is free.
    pub(super) fn note_waiting(&mut self, binding: &AnyBinding) {
        if let Some(assumed) = &mut self.assumed {
            let (left, view) = (left(&self.scheduler, &self.clusters), binding.view());
            let waits =
                self.scheduler.schedules(view) && waits_for_room(&self.scheduler, view, &left);
            assumed.note_waiting(&binding.key(), waits);
        }
    }

    /// Counts the assumptions about the binding `key` after a change, and returns the bindings that wait for the room that
    /// it frees.
    pub(super) fn recount(&mut self, key: &Key) -> Vec<Key> {
        let counted = self.counted(key);
        let Some(mut assumed) = self.assumed.take() else {
            return Vec::new();
        };
        let freed = assumed.count(key, counted).into_iter();
        let freed = freed.map(Key::cluster_scoped);
        let freed: Vec<_> = freed.filter_map(|key| self.clusters.get(&key)).collect();
        let woken = if freed.is_empty() {
            Vec::new()
        } else {
            assumed.take_waiting(|waiting| {
                let binding = self.binding(waiting);
                binding.is_none_or(|binding| {
                    freed
                        .iter()
                        .any(|cluster| concerns(binding.view(), cluster))
                })
            })
        };
        self.assumed = Some(assumed);
        woken
    }

    /// Returns the assumptions that count of the binding `key`, with the decision that is not written yet.
    fn counted(&self, key: &Key) -> Assumptions {
        let Some(assumed) = &self.assumed else {
            return Assumptions::default();
        };
        let shown = assumed.shown(key);
        match (self.decisions.get(key), self.binding(key)) {
            (Some(targets), Some(binding)) => {
                shown.with(binding.view().spec, targets, assumed.now())
            }
            _ => shown,
        }
    }
}
