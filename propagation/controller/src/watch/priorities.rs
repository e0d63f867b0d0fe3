//! The priorities that policies name, each of a PriorityClass.

use karmada_runtime::dynamic::WatchState;
use objects::Key;

use super::SharedIndex;
use super::kinds::{has_priority, priority_class};
use crate::index::Policy;

impl SharedIndex {
    /// Returns `true` once it is known which PriorityClasses exist.
    pub(crate) fn knows_priorities(&self) -> bool {
        match self.templates.state(&priority_class()) {
            WatchState::Complete | WatchState::NotServed | WatchState::Forbidden => true,
            WatchState::Off | WatchState::Listing | WatchState::Failing => false,
        }
    }

    /// Returns the priority of a PriorityClass, and `None` if it does not exist or is not known yet.
    pub(crate) fn priority(&self, class: &str) -> Option<i32> {
        let key = Key::cluster_scoped(class);
        let class = self.templates.get(&priority_class(), &key)?.value();
        i32::try_from(class.get("value")?.as_i64()?).ok()
    }

    /// Wakes the templates of the policies that name a PriorityClass.
    pub(super) fn wake_prioritized(&self) {
        let policies = self.read(|index| {
            let keys = index.policies_where(has_priority).into_iter();
            keys.filter_map(|key| index.policy(&key))
                .collect::<Vec<_>>()
        });
        let policies: Vec<_> = policies.iter().map(Policy::candidate).collect();
        self.wake_templates_of(&policies);
    }
}
