//! Tells customizations what is wrong with them.

use std::sync::Arc;

use k8s_openapi::api::core::v1::ObjectReference;
use karmada_rules::propagation::customization::{API_VERSION, SCRIPTS};
use karmada_runtime::controller::Controller;
use karmada_runtime::error::BoxError;
use objects::{Key, Metadata};

use crate::events::Events;
use crate::index::Index;
use crate::reason::Reason;
use crate::watch::SharedIndex;

/// Reconciles customizations.
pub(crate) struct CustomizationReconciler {
    pub(crate) index: Arc<SharedIndex>,
    pub(crate) events: Arc<Events>,
}

impl Controller for CustomizationReconciler {
    type Key = Key;

    fn keys(&self) -> Vec<Key> {
        self.index.read(Index::customization_keys)
    }

    async fn reconcile(&self, key: &Key) -> Result<(), BoxError> {
        let uid = self.index.read(|index| {
            let object = index.customization(&key.name);
            object.map(|object| object.uid().to_owned())
        });
        let reference = ObjectReference {
            api_version: Some(API_VERSION.to_owned()),
            kind: Some(SCRIPTS.to_owned()),
            name: Some(key.name.clone()),
            uid,
            ..ObjectReference::default()
        };
        let problems = self.index.interpreters.problems(&key.name);
        if problems.is_empty() {
            self.events.settled(&reference);
        } else {
            let reason = Reason::InvalidCustomization;
            self.events.trouble(&reference, reason, problems.join("; "));
        }
        Ok(())
    }
}
