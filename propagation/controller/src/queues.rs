//! The queues of the loops.

use std::time::Duration;

use karmada_runtime::queue::Queue;
use objects::Key;
use tokio::time::Instant;

use crate::index::{Owner, TemplateKey, Urgency};

/// The time that the first report of a binding's Works waits for the others, and the least time between two
/// writes of their reports: one shows them all.
const TOGETHER: Duration = Duration::from_secs(1);

/// The queues of the loops, which share no worker. The key of a policy or a binding without a namespace
/// is that of the cluster-scoped kind.
#[derive(Clone, Debug, Default)]
pub(crate) struct Queues {
    pub(crate) templates: Queue<TemplateKey>,
    pub(crate) policies: Queue<Key>,
    pub(crate) bindings: Queue<Key>,
    /// The bindings whose dependencies follow them.
    pub(crate) dependencies: Queue<Key>,
    pub(crate) namespaces: Queue<Key>,
    /// The customizations, which are told their problems.
    pub(crate) customizations: Queue<TemplateKey>,
}

impl Queues {
    /// Wakes the owner of a Work that has changed.
    pub(crate) fn wake_owner(&self, owner: Owner, urgency: Urgency) {
        match (owner, urgency) {
            (Owner::Binding(key), Urgency::Now) => self.bindings.add(key),
            (Owner::Binding(key), Urgency::Paced) => self.bindings.add_paced(key, TOGETHER),
            (Owner::Binding(key), Urgency::WithOthers) => {
                self.bindings.add_at(key, Instant::now() + TOGETHER);
            }
            (Owner::Namespace(name), _) => self.namespaces.add(Key::cluster_scoped(name)),
        }
    }
}
