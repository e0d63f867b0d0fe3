//! Records the problems of customizations on them.

use std::sync::Arc;

use k8s_openapi::api::core::v1::ObjectReference;
use karmada_runtime::controller::Controller;
use karmada_runtime::error::BoxError;
use objects::Metadata;
use propagation_rules::customization::{SCRIPTS, webhook};

use crate::events::Events;
use crate::index::TemplateKey;
use crate::reason::Reason;
use crate::templates::Templates;

/// Reconciles customizations.
pub(crate) struct CustomizationReconciler {
    pub(crate) templates: Arc<Templates>,
    pub(crate) events: Arc<Events>,
}

impl Controller for CustomizationReconciler {
    type Key = TemplateKey;

    fn keys(&self) -> Vec<TemplateKey> {
        self.templates.index.lock().customization_keys()
    }

    async fn reconcile(&self, key: &TemplateKey) -> Result<(), BoxError> {
        let object = self.templates.index.lock().customization(key).cloned();
        let TemplateKey { kind, key } = key;
        let reference = ObjectReference {
            api_version: Some(kind.api_version()),
            kind: Some(kind.kind.clone()),
            name: Some(key.name.clone()),
            uid: object.as_ref().map(|object| object.uid().to_owned()),
            ..ObjectReference::default()
        };
        let problems = if kind.kind == SCRIPTS {
            self.templates.interpreters.problems(&key.name)
        } else {
            object.as_ref().map(webhook::problems).unwrap_or_default()
        };
        if problems.is_empty() {
            self.events.settled(&reference);
        } else {
            let reason = Reason::InvalidCustomization;
            self.events.trouble(&reference, reason, problems.join("; "));
        }
        Ok(())
    }
}
