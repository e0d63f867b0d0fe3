//! The writes of Works, those of bindings and those of Namespaces.

use std::sync::Arc;

use k8s_openapi::api::core::v1::ObjectReference;
use karmada_api::Work;
use karmada_runtime::commit::{Committer, Outcome};
use karmada_runtime::error::BoxError;
use objects::Key;
use objects::write::{Guard, ObjectRef, Write};
use parking_lot::Mutex;
use propagation_rules::works::WorkChange;
use tokio::time::Instant;

use crate::index::{Index, Owner, Urgency};
use crate::queues::Queues;

/// Writes Works.
#[derive(Clone)]
pub(crate) struct WorkWriter {
    pub(crate) committer: Committer,
    pub(crate) index: Arc<Mutex<Index>>,
    pub(crate) queues: Queues,
}

/// What has become of the write of a Work.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum WorkWrite {
    Written,
    /// There was nothing to write, or the watch is about to show another Work than that which was read.
    Unwritten,
    /// Another client undoes it: it may be tried again then.
    Paused(Instant),
}

impl WorkWriter {
    /// Changes the Work `key` of `owner`, which is the `current` one.
    pub(crate) async fn change(
        &self,
        key: &Key,
        current: Option<&Work>,
        change: WorkChange,
        owner: &ObjectReference,
    ) -> Result<WorkWrite, BoxError> {
        let named = ObjectRef::named::<Work>(key.clone(), &());
        let about = vec![owner.clone(), named.reference()];
        let object = current.map_or(named, |work| ObjectRef::of(work, &()));
        let Some(write) = change.write(object) else {
            return Ok(WorkWrite::Unwritten);
        };
        let write = write.about(about);
        match self.committer.write(&write, None).await? {
            Outcome::Stored(stored) => {
                self.written(&write, &stored);
                Ok(WorkWrite::Written)
            }
            Outcome::Unchanged => Ok(WorkWrite::Written),
            // Made before: the watch is about to show it, and wakes its owner again.
            Outcome::Exists(_) | Outcome::DryRun => Ok(WorkWrite::Unwritten),
            Outcome::Gone(error) => Err(error.into()),
            Outcome::Contended(until) => Ok(WorkWrite::Paused(until)),
        }
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

    /// Deletes a Work, if it is that with the uid.
    pub(crate) async fn delete(
        &self,
        key: &Key,
        uid: Option<String>,
    ) -> Result<WorkWrite, BoxError> {
        // One that is made again afterwards is the first of its kind.
        self.committer.forget("work", key);
        let guard = match uid {
            Some(_) => Guard::Uid,
            None => Guard::None,
        };
        let object = ObjectRef {
            uid,
            ..ObjectRef::named::<Work>(key.clone(), &())
        };
        let write = Write::delete("work", object).guarded(guard);
        let outcome = self.committer.write(&write, None).await?;
        Ok(if outcome.is_stored() {
            WorkWrite::Written
        } else {
            WorkWrite::Unwritten
        })
    }
}
