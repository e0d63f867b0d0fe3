//! The kinds that a change of customizations concerns.

use std::collections::BTreeSet;
use std::sync::Arc;

use objects::GroupVersionKind;

use super::webhook::Webhook;

/// The kinds that are interpreted otherwise than before.
#[derive(Clone, Debug, Default)]
pub struct Changes {
    /// Every kind is to be looked at.
    is_everything: bool,
    scripted: BTreeSet<GroupVersionKind>,
    /// The webhooks that are others, as they were and as they are.
    webhooks: Vec<Arc<Webhook>>,
}

impl Changes {
    pub(super) fn new(scripted: BTreeSet<GroupVersionKind>, webhooks: Vec<Arc<Webhook>>) -> Self {
        Self {
            is_everything: false,
            scripted,
            webhooks,
        }
    }

    /// Returns the change that concerns every kind.
    pub fn everything() -> Self {
        Self {
            is_everything: true,
            ..Self::default()
        }
    }

    /// Returns `true` if nothing is.
    pub fn is_empty(&self) -> bool {
        !self.is_everything && self.scripted.is_empty() && self.webhooks.is_empty()
    }

    /// Returns `true` if objects of the kind are to be looked at again.
    pub fn concern(&self, kind: &GroupVersionKind) -> bool {
        let mut webhooks = self.webhooks.iter();
        self.is_everything
            || self.scripted.contains(kind)
            || webhooks.any(|webhook| webhook.interprets(kind))
    }
}
