//! The Events recorded on templates and policies, each when its reason arises and not with every
//! reconcile.

use std::collections::BTreeMap;
use std::fmt;

use k8s_openapi::api::core::v1::ObjectReference;
use karmada_runtime::events::EventReason;
use kube::runtime::events::{Event, EventType};
use objects::message::are_same_troubles;
use parking_lot::Mutex;

use crate::reason::Reason;

type Record = dyn Fn(ObjectReference, Event) + Send + Sync;

/// Records Events.
pub(crate) struct Events {
    record: Box<Record>,
    /// The troubles of each object that were last recorded: their reasons and notes.
    troubles: Mutex<BTreeMap<Subject, Vec<(Reason, String)>>>,
}

/// The kind, namespace and name of an object.
type Subject = (Option<String>, Option<String>, Option<String>);

impl fmt::Debug for Events {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Events").finish_non_exhaustive()
    }
}

impl Events {
    /// Creates a recorder that passes Events on to `record`.
    pub(crate) fn new(record: impl Fn(ObjectReference, Event) + Send + Sync + 'static) -> Self {
        Self {
            record: Box::new(record),
            troubles: Mutex::default(),
        }
    }

    /// Creates a recorder that records nothing.
    pub(crate) fn none() -> Self {
        Self::new(|_, _| {})
    }

    /// Records that `regarding` was changed as it should be.
    pub(crate) fn success(&self, regarding: ObjectReference, reason: Reason, note: String) {
        tracing::info!(object = %named(&regarding), reason = reason.as_str(), note, "Changed");
        self.record(regarding, EventType::Normal, reason, note);
    }

    /// Records a trouble of `regarding`, each time that this is called.
    pub(crate) fn warning(&self, regarding: ObjectReference, reason: Reason, note: String) {
        tracing::warn!(object = %named(&regarding), reason = reason.as_str(), note, "Not as desired");
        self.record(regarding, EventType::Warning, reason, note);
    }

    /// Records the trouble of `regarding`, unless it is the one that was recorded last.
    pub(crate) fn trouble(&self, regarding: &ObjectReference, reason: Reason, note: String) {
        self.troubles(regarding, vec![(reason, note)]);
    }

    /// Records the troubles that `regarding` has at once, unless they are those that were recorded last, or of the same webhook.
    pub(crate) fn troubles(&self, regarding: &ObjectReference, troubles: Vec<(Reason, String)>) {
        let mut known = self.troubles.lock();
        let before = known.insert(subject(regarding), troubles.clone());
        drop(known);
        if are_same_troubles(&troubles, &before.unwrap_or_default()) {
            return;
        }
        for (reason, note) in troubles {
            self.warning(regarding.clone(), reason, note);
        }
    }

    /// Notes a trouble of `regarding` that was recorded before this replica began to lead.
    pub(crate) fn known(&self, regarding: &ObjectReference, reason: Reason, note: String) {
        let trouble = vec![(reason, note)];
        self.troubles.lock().insert(subject(regarding), trouble);
    }

    /// Forgets the trouble of `regarding`: it is over, or the object is gone.
    pub(crate) fn settled(&self, regarding: &ObjectReference) {
        self.troubles.lock().remove(&subject(regarding));
    }

    fn record(&self, regarding: ObjectReference, type_: EventType, reason: Reason, note: String) {
        let event = Event {
            type_,
            reason: reason.as_str().to_owned(),
            note: Some(note),
            action: reason.as_str().to_owned(),
            secondary: None,
        };
        (self.record)(regarding, event);
    }
}

fn subject(regarding: &ObjectReference) -> Subject {
    let ObjectReference {
        kind,
        namespace,
        name,
        ..
    } = regarding.clone();
    (kind, namespace, name)
}

fn named(regarding: &ObjectReference) -> String {
    let (kind, namespace, name) = subject(regarding);
    let parts = [kind, namespace, name].into_iter().flatten();
    parts.collect::<Vec<_>>().join("/")
}
