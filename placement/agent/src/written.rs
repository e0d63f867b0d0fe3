//! Works as our last writes have left them: until the watch shows that, what is decided from it would be written twice.

use std::collections::{BTreeMap, BTreeSet};

use fleet_api::Work;
use fleet_api::work::WorkStatus;
use objects::{Key, Metadata};
use parking_lot::Mutex;

/// The writes to Works that the watch may not have shown yet.
#[derive(Debug, Default)]
pub(crate) struct WrittenWorks(Mutex<BTreeMap<Key, Written>>);

#[derive(Debug, Default)]
struct Written {
    /// The versions that are older.
    superseded: BTreeSet<String>,
    version: String,
    finalizers: Option<Vec<String>>,
    status: Option<WorkStatus>,
}

impl WrittenWorks {
    /// Returns a Work of the watch as it is stored, as far as we know.
    pub(crate) fn latest(&self, mut work: Work) -> Work {
        let mut works = self.0.lock();
        let key = Key::of(&work);
        match works.get(&key) {
            Some(written)
                if written
                    .superseded
                    .contains(work.metadata.resource_version()) =>
            {
                work.metadata.resource_version = Some(written.version.clone());
                work.metadata.finalizers.clone_from(&written.finalizers);
                work.status.clone_from(&written.status);
            }
            Some(_) => drop(works.remove(&key)),
            None => {}
        }
        work
    }

    /// Notes that a Work was written, and had the version `replaced` before.
    pub(crate) fn note(&self, replaced: &str, work: &Work) {
        let mut works = self.0.lock();
        let written = works.entry(Key::of(work)).or_default();
        written.superseded.insert(replaced.to_owned());
        work.metadata
            .resource_version()
            .clone_into(&mut written.version);
        written.finalizers.clone_from(&work.metadata.finalizers);
        written.status.clone_from(&work.status);
    }

    /// Forgets a Work that is gone.
    pub(crate) fn forget(&self, work: &Key) {
        self.0.lock().remove(work);
    }
}
