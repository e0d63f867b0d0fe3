//! The assumptions about each binding: the Pods that it has placed and that its clusters do not report yet.

use std::collections::{BTreeMap, BTreeSet};

use jiff::Timestamp;
use objects::Key;
use propagation_rules::binding_ref::BindingRef;
use propagation_rules::schedule::{Assumed, Assumptions};

/// The assumptions about bindings, each and all together. One goes with its binding.
#[derive(Debug)]
pub(crate) struct AssumedBindings {
    clock: fn() -> Timestamp,
    bindings: BTreeMap<Key, Account>,
    all: Assumed,
    /// The bindings that wait for room, unless they are woken already.
    waiting: BTreeSet<Key>,
}

/// The assumptions about one binding.
#[derive(Debug, Default)]
struct Account {
    /// The version that the watch has shown, or that was written.
    shown: Assumptions,
    /// Those that count: the same, with the decision that is not written yet.
    counted: Assumptions,
}

impl AssumedBindings {
    pub(crate) fn new(clock: fn() -> Timestamp) -> Self {
        Self {
            clock,
            bindings: BTreeMap::new(),
            all: Assumed::default(),
            waiting: BTreeSet::new(),
        }
    }

    /// Returns the time.
    pub(crate) fn now(&self) -> Timestamp {
        (self.clock)()
    }

    /// Returns the assumptions about the binding `key` by its stored version.
    pub(crate) fn shown(&self, key: &Key) -> Assumptions {
        let account = self.bindings.get(key);
        account.map_or_else(Assumptions::default, |account| account.shown.clone())
    }

    /// Returns the assumptions that count of all bindings, if these count of the binding `key`.
    pub(crate) fn all_if(&self, key: &Key, counted: &Assumptions) -> Assumed {
        let mut all = self.all.clone();
        if let Some(account) = self.bindings.get(key)
            && account.counted != *counted
        {
            all.remove(account.counted.workloads());
            all.extend(counted.workloads());
        }
        all
    }

    /// Iterates over the bindings of which something is assumed.
    pub(crate) fn keys(&self) -> impl Iterator<Item = &Key> {
        self.bindings.keys()
    }

    /// Follows the binding `key` from one version to the next; `None` before the first and after the last.
    pub(crate) fn show(
        &mut self,
        key: &Key,
        old: Option<BindingRef<'_>>,
        new: Option<BindingRef<'_>>,
    ) {
        let now = self.now();
        let shown = match (old, new) {
            (_, None) => Assumptions::default(),
            (None, Some(new)) => Assumptions::first(new, now),
            (Some(old), Some(new)) => self.shown(key).after(old, new, now),
        };
        self.account(key).shown = shown;
    }

    /// Ends the assumptions about the binding `key` that have lasted long enough.
    pub(crate) fn end(&mut self, key: &Key) {
        let now = self.now();
        let account = self.account(key);
        account.shown = std::mem::take(&mut account.shown).ended(now);
    }

    /// Counts this of the binding `key` from now on, and returns the clusters in which it is less than before.
    pub(crate) fn count(&mut self, key: &Key, counted: Assumptions) -> BTreeSet<String> {
        let account = self.bindings.entry(key.clone()).or_default();
        let freed = account.counted.freed(&counted);
        if account.counted != counted {
            self.all.remove(account.counted.workloads());
            self.all.extend(counted.workloads());
            account.counted = counted;
        }
        if account.shown.is_empty() && account.counted.is_empty() {
            self.bindings.remove(key);
        }
        freed
    }

    /// Notes whether the binding `key` waits for room.
    pub(crate) fn note_waiting(&mut self, key: &Key, waits: bool) {
        if waits {
            self.waiting.insert(key.clone());
        } else {
            self.waiting.remove(key);
        }
    }

    /// Takes those of the waiting bindings that `is_concerned`: they wait no longer until they are decided anew.
    pub(crate) fn take_waiting(&mut self, is_concerned: impl Fn(&Key) -> bool) -> Vec<Key> {
        let concerned = self.waiting.extract_if(.., |key| is_concerned(key));
        concerned.collect()
    }

    fn account(&mut self, key: &Key) -> &mut Account {
        self.bindings.entry(key.clone()).or_default()
    }
}
