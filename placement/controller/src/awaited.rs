//! Our writes that the watches have not shown yet: what is decided without them would be written twice.

use std::collections::BTreeMap;
use std::time::Duration;

use objects::Key;
use tokio::time::Instant;

/// The time after which a write is not waited for: the watch may never show what was gone again at once.
const PATIENCE: Duration = Duration::from_secs(10);

/// The objects that were written and not shown yet, each with the key for which nothing is decided before.
#[derive(Debug, Default)]
pub(crate) struct Awaited(BTreeMap<Key, (Key, Instant)>);

impl Awaited {
    /// Notes that `object` is being written for `owner`.
    pub(crate) fn note(&mut self, object: Key, owner: Key) {
        self.0.insert(object, (owner, Instant::now() + PATIENCE));
    }

    /// Notes that the watch has shown `object`, or is not going to.
    pub(crate) fn shown(&mut self, object: &Key) {
        self.0.remove(object);
    }

    /// Returns the time until which a write for `owner` is waited for.
    pub(crate) fn until(&self, owner: &Key) -> Option<Instant> {
        let now = Instant::now();
        let awaited = self.0.values();
        let awaited = awaited.filter(|(of, until)| of == owner && now < *until);
        awaited.map(|(_, until)| *until).max()
    }
}
