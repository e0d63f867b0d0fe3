//! The pauses between our writes where another client undoes each of them, and who is told of that.

use std::fmt::Debug;
use std::sync::Arc;

use k8s_openapi::api::core::v1::ObjectReference;
use karmada_runtime::contention::{Attempt, Contention, find_rival};
use kube::Api;
use objects::Key;
use objects::wanted::Wanted;
use serde::de::DeserializeOwned;
use tokio::time::Instant;

use crate::events::Events;
use crate::identity::NAME;
use crate::reason::Reason;

/// What one loop writes to one object.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) enum Part {
    /// What a binding has of its template and policy.
    Binding(Key),
    /// The ID and the finalizer of a binding.
    Identity(Key),
    /// What a binding has because another one refers to its template, or because its own refers to others.
    Dependency { binding: Key, referrer: Key },
    /// A Work.
    Work(Key),
}

/// The clients that undo what we write.
#[derive(Debug)]
pub(crate) struct Rivals {
    contention: Contention<Part>,
    events: Arc<Events>,
}

impl Part {
    fn object(&self) -> &Key {
        match self {
            Self::Binding(key) | Self::Identity(key) | Self::Work(key) => key,
            Self::Dependency { binding, .. } => binding,
        }
    }

    fn reason(&self) -> Reason {
        match self {
            Self::Work(_) => Reason::WorkContested,
            Self::Binding(_) | Self::Identity(_) | Self::Dependency { .. } => {
                Reason::BindingContested
            }
        }
    }

    /// Returns what Events call it, with its `fields`.
    fn named(&self, fields: &[String]) -> String {
        let (kind, key) = match self {
            Self::Work(key) => ("work", key),
            other => ("binding", other.object()),
        };
        if fields.is_empty() {
            return format!("{kind}({key})");
        }
        let fields = fields.iter().map(|field| {
            let dotted = field.trim_start_matches('/').replace('/', ".");
            dotted.replace("~1", "/").replace("~0", "~")
        });
        let fields: Vec<_> = fields.collect();
        format!("{} of {kind}({key})", fields.join(", "))
    }
}

impl Rivals {
    /// Creates the pauses of a program, of which `events` tell.
    pub(crate) fn new(events: Arc<Events>) -> Self {
        Self {
            contention: Contention::default(),
            events,
        }
    }

    /// Begins a write to `part`, which is one of `objects`. When it is the first that has to wait, the objects
    /// `concerned` are told why.
    ///
    /// # Errors
    /// Fails with the end of the pause before the write.
    pub(crate) async fn begin<K>(
        &self,
        part: Part,
        wanted: &Wanted,
        objects: &Api<K>,
        concerned: impl FnOnce() -> Vec<ObjectReference>,
    ) -> Result<Attempt<Part>, Instant>
    where
        K: Clone + DeserializeOwned + Debug,
    {
        let (value, replaced) = (&wanted.value, wanted.replaced.as_deref());
        let begun = (self.contention).begin(part.clone(), value, replaced, Instant::now());
        let backoff = match begun {
            Ok(attempt) => return Ok(attempt),
            Err(backoff) => backoff,
        };
        if backoff.is_news {
            let rival = find_rival(objects, &part.object().name, NAME, &wanted.paths).await;
            let manager = rival.as_deref().unwrap_or("another client");
            let what = part.named(&wanted.paths);
            let note = format!(
                "{manager} undoes every write to {what}; this controller writes again after growing pauses, up to 5 minutes"
            );
            for object in concerned() {
                self.events.warning(object, part.reason(), note.clone());
            }
        }
        Err(backoff.until)
    }

    /// Notes that a write that has begun was stored as this version.
    pub(crate) fn stored(&self, attempt: Attempt<Part>, version: Option<String>) {
        self.contention.stored(attempt, version, Instant::now());
    }

    /// Forgets a part that is gone, or that we have given up.
    pub(crate) fn forget(&self, part: &Part) {
        self.contention.forget(part);
    }
}
