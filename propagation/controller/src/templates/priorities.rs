//! The priorities that policies name, each of a PriorityClass.

use karmada_runtime::dynamic::WatchState;
use objects::Key;

use super::Templates;
use super::kinds::priority_class;

impl Templates {
    /// Returns `true` once it is known which PriorityClasses exist.
    pub(crate) fn knows_priorities(&self) -> bool {
        match self.watches.state(&priority_class()) {
            WatchState::Complete | WatchState::NotServed | WatchState::Forbidden => true,
            WatchState::Off | WatchState::Listing | WatchState::Failing => false,
        }
    }

    /// Returns the priority of a PriorityClass, and `None` if it does not exist or is not known yet.
    pub(crate) fn priority(&self, class: &str) -> Option<i32> {
        let key = Key::cluster_scoped(class);
        let class = self.watches.get(&priority_class(), &key)?.value();
        i32::try_from(class.get("value")?.as_i64()?).ok()
    }
}
