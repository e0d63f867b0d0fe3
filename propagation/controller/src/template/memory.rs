//! The memory of one process about the templates of Lazy policies.

use std::collections::BTreeMap;

use jiff::Timestamp;
use karmada_runtime::metrics::Registry;
use parking_lot::Mutex;
use propagation_rules::activation::{Activation, Seen};
use propagation_rules::candidate::Candidate;

use crate::index::TemplateKey;
use crate::metrics::CountedTemplates;

/// The memory of one process. Facts that must outlive it are recorded on bindings and templates.
#[derive(Debug)]
pub(crate) struct Activations {
    /// The templates of Lazy policies, and those that no policy selects.
    pub(super) seen: Mutex<BTreeMap<TemplateKey, Seen>>,
    /// The generation of policies, by uid, with the time of its change.
    pub(super) changed: Mutex<BTreeMap<String, (i64, Option<Timestamp>)>>,
    /// The generation of each Lazy policy, by uid, that was last announced to wait for templates.
    pub(super) announced: Mutex<BTreeMap<String, i64>>,
    waiting: CountedTemplates,
}

impl Activations {
    /// Registers `waiting_templates`.
    pub(crate) fn register(registry: &mut Registry) -> Self {
        Self {
            seen: Mutex::default(),
            changed: Mutex::default(),
            announced: Mutex::default(),
            waiting: CountedTemplates::register(
                registry,
                "waiting_templates",
                "Templates that do not follow their Lazy policy before they are edited next",
            ),
        }
    }

    /// Forgets a template that is gone.
    pub(super) fn forget(&self, template: &TemplateKey) {
        self.seen.lock().remove(template);
        self.waiting.note(template, false);
    }

    /// Remembers that no policy selects the template.
    pub(super) fn unmatched(&self, template: &TemplateKey) {
        self.seen.lock().insert(template.clone(), Seen::Unmatched);
        self.waiting.note(template, false);
    }

    pub(super) fn note(
        &self,
        template: &TemplateKey,
        policy: &Candidate<'_>,
        activation: &Activation,
    ) -> bool {
        let (seen, waits) = match activation {
            Activation::Follows(_) => (Seen::Bound, false),
            Activation::Keeps(record) => (Seen::Bound, !record.follows(policy)),
            Activation::Holds(fingerprint) => (Seen::Held(fingerprint.clone()), true),
        };
        if policy.spec.is_lazy() {
            self.seen.lock().insert(template.clone(), seen);
        } else {
            self.seen.lock().remove(template);
        }
        self.waiting.note(template, waits);
        waits
    }

    /// Returns `true` if it is to be announced that templates wait for the policy: once for each generation,
    /// and not for one for which they waited before this process began.
    pub(super) fn is_news(&self, policy: &Candidate<'_>, began: bool) -> bool {
        let generation = policy.metadata.generation.unwrap_or_default();
        let uid = policy.metadata.uid.clone().unwrap_or_default();
        let before = self.announced.lock().insert(uid, generation);
        before.map_or(began, |before| before != generation)
    }
}
