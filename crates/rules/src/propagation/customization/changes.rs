//! The kinds that a change of customizations concerns.

use std::collections::BTreeSet;
use std::sync::Arc;

use objects::GroupVersionKind;

use super::webhook::Webhook;

/// The kinds that are interpreted otherwise than before.
#[derive(Clone, Debug, Default)]
pub struct Changes {
    pub(super) scripted: BTreeSet<GroupVersionKind>,
    /// The webhooks that are others, as they were and as they are.
    pub(super) webhooks: Vec<Arc<Webhook>>,
}

impl Changes {
    /// Returns `true` if nothing is.
    pub fn is_empty(&self) -> bool {
        self.scripted.is_empty() && self.webhooks.is_empty()
    }

    /// Returns `true` if objects of the kind are to be looked at again.
    pub fn concern(&self, kind: &GroupVersionKind) -> bool {
        let mut webhooks = self.webhooks.iter();
        self.scripted.contains(kind) || webhooks.any(|webhook| webhook.interprets(kind))
    }
}
