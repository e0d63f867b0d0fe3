//! The writes of Works, those of bindings and those of Namespaces.

use std::sync::Arc;

use k8s_openapi::api::core::v1::ObjectReference;
use karmada_api::Work;
use karmada_runtime::commit::{Committer, Outcome};
use karmada_runtime::error::BoxError;
use objects::write::{Action, ObjectRef, Write};
use parking_lot::Mutex;

use crate::index::{Index, Owner, Urgency};
use crate::queues::Queues;

/// Writes Works.
#[derive(Clone)]
pub(crate) struct WorkWriter {
    pub(crate) committer: Committer,
    pub(crate) index: Arc<Mutex<Index>>,
    pub(crate) queues: Queues,
}

impl WorkWriter {
    /// Writes a Work of `owner`, or deletes it.
    pub(crate) async fn write(
        &self,
        write: Write,
        owner: &ObjectReference,
    ) -> Result<Outcome, BoxError> {
        if write.action == Action::Delete {
            return self.delete(&write).await;
        }
        let work = ObjectRef::named::<Work>(write.object.key.clone(), &());
        let write = write.about(vec![owner.clone(), work.reference()]);
        // One that was made before is about to be shown by the watch, which wakes its owner again.
        let outcome = self.committer.write(&write, None).await?.if_present()?;
        if let Outcome::Stored(stored) = &outcome {
            self.written(&write, stored);
        }
        Ok(outcome)
    }

    /// Deletes a Work.
    pub(crate) async fn delete(&self, write: &Write) -> Result<Outcome, BoxError> {
        // One that is made again afterwards is the first of its kind.
        self.committer.forget(write.target, &write.object.key);
        Ok(self.committer.write(write, None).await?)
    }

    /// Takes in what was written to a Work: whatever is decided on an older version could only conflict. Its owner has
    /// decided it, and only another one that it had is woken before the watch shows it.
    fn written(&self, write: &Write, stored: &ObjectRef) {
        let mut index = self.index.lock();
        let Some(change) = index.works.written(write, stored) else {
            return;
        };
        if change.differs(|old, new| Owner::of(old) != Owner::of(new)) {
            for owner in index.works.concerned(&change) {
                self.queues.wake_owner(owner, Urgency::Now);
            }
        }
    }
}
