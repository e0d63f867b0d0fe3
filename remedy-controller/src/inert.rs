//! Warns of remedies that can never act, which Karmada's own definition of the kind accepts.

use std::collections::BTreeMap;
use std::sync::Arc;

use karmada_api::Key;
use karmada_rules::remedy::{Inert, inert};
use karmada_runtime::controller::Controller;
use karmada_runtime::error::BoxError;
use karmada_runtime::events::EventRecorder;
use kube::Resource;
use parking_lot::Mutex;

use crate::events::never_acts;
use crate::watch::SharedIndex;

/// Records an Event on a Remedy when a reason arises why it never acts.
pub(crate) struct InertRemedies {
    index: Arc<SharedIndex>,
    events: EventRecorder,
    recorded: Mutex<BTreeMap<Key, Recorded>>,
}

/// The reasons of a Remedy that were last recorded.
struct Recorded {
    /// The Remedy's uid: one that is made again under the same name is another.
    uid: Option<String>,
    reasons: Vec<Inert>,
}

impl InertRemedies {
    pub(crate) fn new(index: Arc<SharedIndex>, events: EventRecorder) -> Self {
        Self {
            index,
            events,
            recorded: Mutex::default(),
        }
    }

    /// Replaces the recorded reasons of the Remedy `key`, and returns those that are new.
    fn arisen(&self, key: &Key, uid: Option<String>, reasons: Vec<Inert>) -> Vec<Inert> {
        let mut recorded = self.recorded.lock();
        let before = recorded.remove(key).filter(|before| before.uid == uid);
        let before = before.map(|before| before.reasons).unwrap_or_default();
        if !reasons.is_empty() {
            let reasons = reasons.clone();
            recorded.insert(key.clone(), Recorded { uid, reasons });
        }
        let new = reasons
            .into_iter()
            .filter(|reason| !before.contains(reason));
        new.collect()
    }
}

impl Controller for InertRemedies {
    type Key = Key;

    fn keys(&self) -> Vec<Key> {
        self.index.remedies()
    }

    async fn reconcile(&self, key: &Key) -> Result<(), BoxError> {
        let remedy = self.index.remedy(key);
        let reasons = remedy.as_deref().map(inert).unwrap_or_default();
        let uid = remedy
            .as_ref()
            .and_then(|remedy| remedy.metadata.uid.clone());
        let arisen = self.arisen(key, uid, reasons);
        for (reason, remedy) in arisen.into_iter().zip(std::iter::repeat(remedy).flatten()) {
            tracing::warn!(remedy = key.name, %reason, "Remedy never acts");
            self.events
                .record(remedy.object_ref(&()), never_acts(reason));
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use karmada_rules::remedy::MaxBlocked;
    use karmada_runtime::program::Program;
    use karmada_runtime::queue::Queue;
    use kube::Client;

    use super::*;

    #[tokio::test]
    async fn a_remedy_that_is_made_again_is_warned_of_again() {
        let mut program = Program::new("test", ([127, 0, 0, 1], 0).into());
        let nobody = tower::service_fn(|_: http::Request<kube::client::Body>| async {
            std::io::Result::Ok(http::Response::new(kube::client::Body::empty()))
        });
        let events = EventRecorder::spawn(&mut program, Client::new(nobody, "default"));
        let index = SharedIndex::new(Queue::default(), MaxBlocked::Percent(100));
        let inert = InertRemedies::new(Arc::new(index), events);
        let key = Key::cluster_scoped("r");
        let arisen = |uid: &str, reasons: &[Inert]| {
            let arisen = inert.arisen(&key, Some(uid.to_owned()), reasons.to_vec());
            arisen.len()
        };
        let never = [Inert::NeverMatches];
        assert_eq!([arisen("a", &never), arisen("a", &never)], [1, 0]);
        assert_eq!([arisen("b", &never), arisen("b", &never)], [1, 0]);
        assert_eq!([arisen("b", &[]), arisen("b", &never)], [0, 1]);
    }
}
