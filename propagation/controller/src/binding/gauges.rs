//! The gauges of Works that are not as their bindings would have them.

use std::collections::BTreeMap;

use karmada_runtime::metrics::Registry;
use objects::Key;
use parking_lot::Mutex;
use prometheus_client::metrics::gauge::Gauge;

/// The numbers of Works that are not as their bindings would have them: because of a suspension, or because
/// another binding has them.
#[derive(Debug, Default)]
pub(crate) struct WorkGauges {
    suspended: Gauge,
    held: Gauge,
    taken: Gauge,
    /// Those of each binding that has any.
    by_binding: Mutex<BTreeMap<Key, Counts>>,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Counts {
    pub(super) suspended: usize,
    pub(super) held: usize,
    pub(super) taken: usize,
}

impl WorkGauges {
    pub(crate) fn register(registry: &mut Registry) -> Self {
        Self {
            suspended: registry.register(
                "suspended_works",
                "Works whose dispatching is suspended",
                Gauge::default(),
            ),
            held: registry.register(
                "held_works",
                "Works that no cluster needs any more and that stay, because dispatching is suspended",
                Gauge::default(),
            ),
            taken: registry.register(
                "taken_works",
                "Works that cannot be made, because another binding has those of their names",
                Gauge::default(),
            ),
            by_binding: Mutex::default(),
        }
    }

    /// Replaces the numbers of a binding.
    pub(super) fn set(&self, key: &Key, counts: Counts) {
        let mut by_binding = self.by_binding.lock();
        if counts == Counts::default() {
            by_binding.remove(key);
        } else {
            by_binding.insert(key.clone(), counts);
        }
        self.show(&by_binding);
    }

    /// Forgets every binding.
    pub(super) fn clear(&self) {
        let mut by_binding = self.by_binding.lock();
        by_binding.clear();
        self.show(&by_binding);
    }

    fn show(&self, by_binding: &BTreeMap<Key, Counts>) {
        let suspended = by_binding.values().map(|counts| counts.suspended);
        let held = by_binding.values().map(|counts| counts.held);
        self.suspended.set(as_i64(suspended.sum()));
        self.held.set(as_i64(held.sum()));
        let taken = by_binding.values().map(|counts| counts.taken);
        self.taken.set(as_i64(taken.sum()));
    }
}

fn as_i64(count: usize) -> i64 {
    i64::try_from(count).unwrap_or(i64::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The gauges are the sums over bindings.
    #[test]
    fn gauges_sum_over_bindings() {
        let gauges = WorkGauges::default();
        let shown = || {
            let WorkGauges {
                suspended,
                held,
                taken,
                ..
            } = &gauges;
            (suspended.get(), held.get(), taken.get())
        };
        let (a, b) = (Key::new("ns", "a"), Key::new("ns", "b"));
        let counts = |suspended, held, taken| Counts {
            suspended,
            held,
            taken,
        };
        gauges.set(&a, counts(2, 1, 0));
        gauges.set(&b, counts(1, 0, 1));
        assert_eq!(shown(), (3, 1, 1));
        gauges.set(&a, counts(0, 0, 0));
        assert_eq!(shown(), (1, 0, 1));
        gauges.clear();
        assert_eq!(shown(), (0, 0, 0));
    }
}
