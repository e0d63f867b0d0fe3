//! The clusters on which each remedy acts.

use std::collections::BTreeSet;

use jiff::Timestamp;
use karmada_api::{Cluster, Remedy};

use super::decision::Cause;
use super::effect::{Effect, actions, blocks};
use objects::reverse_index::ReverseIndex;

/// The most names of clusters in a status.
const LISTED: usize = 100;

/// The remedies that concern one cluster, by their effect there.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Reached {
    /// The cluster has an action that they require.
    acting: BTreeSet<String>,
    /// They require a block that the bound refuses.
    refused: BTreeSet<String>,
    /// They would act if they did not only observe.
    observing: BTreeSet<String>,
}

/// The clusters that one remedy concerns.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Reach {
    /// Those that have an action which the remedy requires.
    pub acting: Listed,
    /// Those to which the bound refuses a block.
    pub refused: Listed,
    /// Those on which it would act if it did not only observe.
    pub observing: Listed,
}

/// A number of clusters, and the names of the first.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Listed {
    /// The number of all.
    pub count: usize,
    /// The names, sorted, of at most 100.
    pub names: Vec<String>,
}

/// The clusters that each remedy concerns, and the remedies that concern each cluster.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ReachIndex {
    acting: ReverseIndex<String, String>,
    refused: ReverseIndex<String, String>,
    observing: ReverseIndex<String, String>,
}

impl Reached {
    /// Returns the remedies that concern `cluster` at `now`, of those that cover it. While
    /// `may_block` is false, the bound keeps the cluster unblocked.
    pub fn of<'a>(
        cluster: &Cluster,
        remedies: impl IntoIterator<Item = &'a Remedy>,
        now: Timestamp,
        may_block: bool,
    ) -> Self {
        let mut reached = Self::default();
        // A cluster that is leaving gets nothing new, and keeps its actions whatever a remedy requires.
        if cluster.metadata.deletion_timestamp.is_some() {
            return reached;
        }
        for remedy in remedies {
            let name = &remedy.metadata.name;
            match Effect::of(remedy, cluster, now) {
                Some(Effect::WouldAct(_)) => reached.observing.extend(name.clone()),
                Some(Effect::Acts(cause)) => {
                    let (actions, set) = (actions(remedy), cluster.remedy_actions());
                    if actions.iter().any(|action| set.contains(action)) {
                        reached.acting.extend(name.clone());
                    }
                    if !may_block && cause != Cause::Unconditional && blocks(actions) {
                        reached.refused.extend(name.clone());
                    }
                }
                Some(Effect::Unclear) | None => {}
            }
        }
        reached
    }
}

impl ReachIndex {
    /// Replaces the remedies that concern `cluster`, and returns those for which that is a change.
    pub fn replace(&mut self, cluster: &str, reached: Reached) -> BTreeSet<String> {
        let cluster = cluster.to_owned();
        let mut changed = BTreeSet::new();
        for (index, remedies) in [
            (&mut self.acting, reached.acting),
            (&mut self.refused, reached.refused),
            (&mut self.observing, reached.observing),
        ] {
            let before = index.targets(&cluster);
            let gone = before.iter().filter(|remedy| !remedies.contains(*remedy));
            let new = remedies.iter();
            let new = new.filter(|remedy| before.binary_search(remedy).is_err());
            let differing: BTreeSet<String> = gone.chain(new).cloned().collect();
            if differing.is_empty() {
                continue;
            }
            changed.extend(differing);
            index.replace(&cluster, remedies);
        }
        changed
    }

    /// Returns the clusters that `remedy` concerns.
    pub fn of(&self, remedy: &str) -> Reach {
        let [acting, refused, observing] =
            [&self.acting, &self.refused, &self.observing].map(|index| {
                let clusters = index.sources(remedy);
                Listed {
                    count: index.count(remedy),
                    names: clusters.take(LISTED).cloned().collect(),
                }
            });
        Reach {
            acting,
            refused,
            observing,
        }
    }
}
