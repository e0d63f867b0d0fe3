//! The clusters that a remedy covers.

use std::collections::BTreeSet;

use karmada_api::Remedy;

use objects::reverse_index::ReverseIndex;

/// The clusters that a remedy covers.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Scope {
    /// Every cluster, present or future.
    Every,
    /// The clusters with these names.
    Named(BTreeSet<String>),
}

impl Scope {
    /// Returns the scope of `remedy`. Without an affinity it is every cluster; an affinity without names
    /// selects none, so that a list emptied by mistake does not block a fleet.
    pub fn of(remedy: &Remedy) -> Self {
        match &remedy.spec.cluster_affinity {
            Some(affinity) => {
                Self::Named(affinity.cluster_names.iter().flatten().cloned().collect())
            }
            None => Self::Every,
        }
    }

    /// Returns `true` if the scope covers `cluster`.
    pub fn covers(&self, cluster: &str) -> bool {
        match self {
            Self::Every => true,
            Self::Named(names) => names.contains(cluster),
        }
    }

    /// Returns the clusters that at least one of two scopes covers, which are those to reconcile after a
    /// change from one to the other.
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

/// Returns `true` if the scope of `remedy` covers `cluster`.
pub fn covers(remedy: &Remedy, cluster: &str) -> bool {
    let affinity = remedy.spec.cluster_affinity.as_ref();
    affinity.is_none_or(|affinity| {
        let mut names = affinity.cluster_names.iter().flatten();
        names.any(|name| name == cluster)
    })
}

/// An index from clusters to the remedies that cover them.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct RemedyIndex {
    every: BTreeSet<String>,
    named: ReverseIndex<String, String>,
}

impl RemedyIndex {
    /// Replaces the scope of the remedy `name`. `None` removes it.
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

    /// Returns the names of the remedies that cover `cluster`, each once.
    pub fn covering(&self, cluster: &str) -> impl Iterator<Item = &String> {
        self.every.iter().chain(self.named.sources(cluster))
    }

    /// Returns the remedies that name `cluster`.
    pub fn naming(&self, cluster: &str) -> impl Iterator<Item = &String> {
        self.named.sources(cluster)
    }
}
