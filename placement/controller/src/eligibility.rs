//! Looks at a cluster whenever it changes, or may have changed by itself: an agent that is not heard of sends nothing.

use std::sync::Arc;

use jiff::Timestamp;
use karmada_runtime::controller::Controller;
use karmada_runtime::error::BoxError;
use objects::Key;

use crate::watch::SharedIndex;

/// Looks at clusters, and writes nothing.
pub(crate) struct Judge {
    pub(crate) index: Arc<SharedIndex>,
    pub(crate) clock: fn() -> Timestamp,
}

impl Controller for Judge {
    type Key = Key;

    fn keys(&self) -> Vec<Key> {
        self.index.read(|index| {
            let members = index.fleet.members.iter();
            members.map(|(key, _)| key.clone()).collect()
        })
    }

    async fn reconcile(&self, key: &Key) -> Result<(), BoxError> {
        let now = (self.clock)();
        if let Some(at) = self.index.judge(&key.name, now) {
            self.index.queues.fleet.add_at_time(key.clone(), at, now);
        }
        Ok(())
    }
}
