//! Which clusters a remedy looks at.

use std::collections::BTreeSet;

use karmada_api::Remedy;

use crate::reverse_index::ReverseIndex;

/// The clusters a remedy looks at.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Scope {
    /// All there are and will be.
    Every,
    /// Those with these names.
    Named(BTreeSet<String>),
}

impl Scope {
    /// The scope of `remedy`: an affinity that is absent or names no cluster covers every one.
    pub fn of(remedy: &Remedy) -> Self {
        let affinity = remedy.spec.cluster_affinity.as_ref();
        match affinity.and_then(|affinity| affinity.cluster_names.as_ref()) {
            Some(names) if !names.is_empty() => Self::Named(names.iter().cloned().collect()),
            _ => Self::Every,
        }
    }

    /// Whether `cluster` is among them.
    pub fn covers(&self, cluster: &str) -> bool {
        match self {
            Self::Every => true,
            Self::Named(names) => names.contains(cluster),
        }
    }

    /// The clusters that at least one of two scopes covers: those a change from one to the other
    /// concerns.
    #[must_use]
    pub fn union(self, other: Self) -> Self {
        match (self, other) {
            (Self::Named(mut names), Self::Named(others)) => {
                names.extend(others);
                Self::Named(names)
            }
            _ => Self::Every,
        }
    }
}

/// Which remedies look at a cluster.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct RemedyIndex {
    every: BTreeSet<String>,
    named: ReverseIndex<String, String>,
}

impl RemedyIndex {
    /// The remedy `name` now has this scope; none: it is gone.
    pub fn replace(&mut self, name: &str, scope: Option<Scope>) {
        let name = name.to_owned();
        self.every.remove(&name);
        let clusters = match scope {
            Some(Scope::Named(clusters)) => clusters,
            Some(Scope::Every) => {
                self.every.insert(name.clone());
                BTreeSet::new()
            }
            None => BTreeSet::new(),
        };
        self.named.replace(&name, clusters);
    }

    /// The names of the remedies that look at `cluster`, each once.
    pub fn covering(&self, cluster: &str) -> impl Iterator<Item = &String> {
        self.every.iter().chain(self.named.sources(cluster))
    }
}
