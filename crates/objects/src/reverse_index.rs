//! An index of references between objects, by the object referred to.

use std::borrow::Borrow;
use std::collections::{BTreeMap, BTreeSet};

/// The targets that each source refers to, and the sources of each target.
// Sorted lists, because most have one element: a node of a `BTreeSet` takes the memory of eleven.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ReverseIndex<S, T> {
    targets: BTreeMap<S, Box<[T]>>,
    sources: BTreeMap<T, Vec<S>>,
}

impl<S, T> Default for ReverseIndex<S, T> {
    fn default() -> Self {
        Self {
            targets: BTreeMap::new(),
            sources: BTreeMap::new(),
        }
    }
}

impl<S: Clone + Ord, T: Clone + Ord> ReverseIndex<S, T> {
    /// Replaces the targets of `source`. A source without targets is removed.
    pub fn replace(&mut self, source: &S, targets: BTreeSet<T>) {
        for target in self.targets.remove(source).unwrap_or_default() {
            self.remove(&target, source);
        }
        for target in &targets {
            self.add(target, source);
        }
        if !targets.is_empty() {
            self.targets
                .insert(source.clone(), targets.into_iter().collect());
        }
    }

    fn add(&mut self, target: &T, source: &S) {
        let sources = self.sources.entry(target.clone());
        let sources = sources.or_insert_with(|| Vec::with_capacity(1));
        if let Err(place) = sources.binary_search(source) {
            sources.insert(place, source.clone());
        }
    }

    fn remove(&mut self, target: &T, source: &S) {
        let Some(sources) = self.sources.get_mut(target) else {
            return;
        };
        if let Ok(place) = sources.binary_search(source) {
            sources.remove(place);
        }
        // An index over the life of a program must not grow with names that are gone.
        if sources.is_empty() {
            self.sources.remove(target);
        }
    }

    /// Returns the targets of `source`, in order.
    pub fn targets<Q: Ord + ?Sized>(&self, source: &Q) -> &[T]
    where
        S: Borrow<Q>,
    {
        self.targets.get(source).map_or(&[], |targets| targets)
    }

    /// Iterates over the targets of all sources, in order.
    pub fn all_targets(&self) -> impl Iterator<Item = &T> {
        self.sources.keys()
    }

    /// Returns the number of sources of `target`.
    pub fn count<Q: Ord + ?Sized>(&self, target: &Q) -> usize
    where
        T: Borrow<Q>,
    {
        self.sources.get(target).map_or(0, Vec::len)
    }

    /// Returns the sources of `target`, in order.
    pub fn sources<Q: Ord + ?Sized>(
        &self,
        target: &Q,
    ) -> impl Iterator<Item = &S> + use<'_, Q, S, T>
    where
        T: Borrow<Q>,
    {
        self.sources.get(target).into_iter().flatten()
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        /// Replacing one source at a time gives the index that is built of the last targets of each.
        #[test]
        fn replacing_equals_rebuilding(
            changes in prop::collection::vec((0_u8..6, prop::collection::btree_set(0_u8..8, 0..4)), 0..40),
        ) {
            let mut incremental = ReverseIndex::default();
            let mut last = BTreeMap::new();
            for (source, targets) in changes {
                incremental.replace(&source, targets.clone());
                last.insert(source, targets);
            }
            let mut rebuilt = ReverseIndex::default();
            for (source, targets) in &last {
                rebuilt.replace(source, targets.clone());
            }
            prop_assert_eq!(&incremental, &rebuilt);
            for source in 0..6 {
                let targets = last.get(&source).into_iter().flatten();
                prop_assert!(incremental.targets(&source).iter().eq(targets));
            }
            let all: BTreeSet<_> = last.values().flatten().collect();
            prop_assert!(incremental.all_targets().eq(all));
            for target in 0..8 {
                let named: Vec<_> = last.iter().filter(|(_, targets)| targets.contains(&target)).map(|(s, _)| s).collect();
                prop_assert_eq!(incremental.count(&target), named.len());
                prop_assert_eq!(incremental.sources(&target).collect::<Vec<_>>(), named);
            }
        }
    }
}
