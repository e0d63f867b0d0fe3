//! An index of references between objects, by the object referred to.

use std::borrow::Borrow;
use std::collections::{BTreeMap, BTreeSet};

/// The targets that each source refers to, and the sources of each target.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ReverseIndex<S, T> {
    targets: BTreeMap<S, BTreeSet<T>>,
    sources: BTreeMap<T, BTreeSet<S>>,
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
            if let Some(sources) = self.sources.get_mut(&target) {
                sources.remove(source);
                // An index over the life of a program must not grow with names that are gone.
                if sources.is_empty() {
                    self.sources.remove(&target);
                }
            }
        }
        for target in &targets {
            self.sources
                .entry(target.clone())
                .or_default()
                .insert(source.clone());
        }
        if !targets.is_empty() {
            self.targets.insert(source.clone(), targets);
        }
    }

    /// Returns the targets of `source`, if it has any.
    pub fn targets<Q: Ord + ?Sized>(&self, source: &Q) -> Option<&BTreeSet<T>>
    where
        S: Borrow<Q>,
    {
        self.targets.get(source)
    }

    /// Returns the number of sources of `target`.
    pub fn count<Q: Ord + ?Sized>(&self, target: &Q) -> usize
    where
        T: Borrow<Q>,
    {
        self.sources.get(target).map_or(0, BTreeSet::len)
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
        #[test]
        fn replacing_one_at_a_time_equals_building_anew(
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
                let targets = last.get(&source).filter(|targets| !targets.is_empty());
                prop_assert_eq!(incremental.targets(&source), targets);
            }
            for target in 0..8 {
                let named: Vec<_> = last.iter().filter(|(_, targets)| targets.contains(&target)).map(|(s, _)| s).collect();
                prop_assert_eq!(incremental.count(&target), named.len());
                prop_assert_eq!(incremental.sources(&target).collect::<Vec<_>>(), named);
            }
        }
    }
}
