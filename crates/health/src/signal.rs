//! The subject that agents judge: a signal of the cluster's health, with a condition of its own.
//!
//! From the streak on one node to the condition, nothing knows the subject of a signal. The differences from
//! one to the next are here: its names, its words, and the closed set of classes of its failures.

use std::sync::Arc;

use karmada_api::condition::{DECLARED_READY_REASON, REPORTER_READY};

use super::failure::FailureClass;

/// Whose votes make the verdict on a signal.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Voters {
    /// Those of all nodes.
    Nodes,
    /// That of the agent that leads. The target is the same from everywhere, and must not be asked by every node.
    Leader,
}

/// A function of the cluster that each node probes and all nodes vote on, or the leader alone.
#[derive(Debug, PartialEq, Eq)]
pub struct Signal {
    /// The name, as in `--detectors` and in vote documents.
    pub name: &'static str,
    /// The function in a word, for metrics and logs.
    pub subject: &'static str,
    /// The prefix of its metrics.
    pub metric_prefix: &'static str,
    /// The type of its condition.
    pub condition: &'static str,
    /// The reason of the condition while it is True.
    pub ready_reason: &'static str,
    /// The reason of the condition while it is False.
    pub failed_reason: &'static str,
    /// The type of the condition that tells whether its verdict is fresh: [`REPORTER_READY`] of a signal of the agents' own
    /// cluster.
    pub reporter: &'static str,
    /// The observation of a round that succeeds, as a sentence.
    pub works: &'static str,
    /// The reason why a node has no observation, as a sentence.
    pub unobserved: &'static str,
    /// The classes of its failures, mildest first.
    pub classes: &'static [FailureClass],
    /// Whose votes count.
    pub voters: Voters,
}

impl Signal {
    /// Returns `true` if agents judge it of their own cluster, and not of others.
    pub fn is_of_own_cluster(&self) -> bool {
        self.reporter == REPORTER_READY
    }

    /// Returns `true` if it is not compiled in: a user declares it, and may take it back while agents run.
    pub fn is_declared(&self) -> bool {
        self.ready_reason == DECLARED_READY_REASON
    }

    /// Returns the class of this name, or [`FailureClass::OTHER`] for one that only a newer agent knows.
    pub fn class(&self, name: &str) -> FailureClass {
        let known = self.classes.iter().find(|class| class.as_str() == name);
        known.copied().unwrap_or(FailureClass::OTHER)
    }
}

/// The subject of one verdict: a signal of the agents' own cluster, or of another one.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Target {
    /// The signal.
    pub signal: &'static Signal,
    /// The cluster, unless it is that of the agents.
    pub cluster: Option<Arc<str>>,
}

impl From<&'static Signal> for Target {
    fn from(signal: &'static Signal) -> Self {
        Self {
            signal,
            cluster: None,
        }
    }
}

/// A value for each target of an agent: each signal that it runs, of its own cluster or of each of the others that it is
/// about.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PerTarget<T>(Vec<(Target, T)>);

impl<T> Default for PerTarget<T> {
    fn default() -> Self {
        Self(Vec::new())
    }
}

impl<T> PerTarget<T> {
    /// Returns the value of `signal` of the agents' own cluster, or `None` if it does not run.
    pub fn get(&self, signal: &Signal) -> Option<&T> {
        self.find(signal, None)
    }

    /// As [`Self::get`], to change the value.
    pub fn get_mut(&mut self, signal: &Signal) -> Option<&mut T> {
        let mut all = self.0.iter_mut();
        all.find(|(other, _)| other.signal.name == signal.name && other.cluster.is_none())
            .map(|(_, value)| value)
    }

    /// Returns the value of `target`, or `None` if there is none.
    pub fn of(&self, target: &Target) -> Option<&T> {
        self.find(target.signal, target.cluster.as_deref())
    }

    fn find(&self, signal: &Signal, cluster: Option<&str>) -> Option<&T> {
        self.iter()
            .find(|(other, _)| {
                other.signal.name == signal.name && other.cluster.as_deref() == cluster
            })
            .map(|(_, value)| value)
    }

    /// Adds the value of `signal` of the agents' own cluster, or replaces it.
    pub fn insert(&mut self, signal: &'static Signal, value: T) {
        self.remove(signal);
        self.0.push((signal.into(), value));
    }

    /// Removes the value of `signal` of the agents' own cluster.
    pub fn remove(&mut self, signal: &Signal) {
        self.0
            .retain(|(target, _)| target.signal.name != signal.name || target.cluster.is_some());
    }

    /// Returns the targets and their values.
    pub fn iter(&self) -> impl ExactSizeIterator<Item = (&Target, &T)> {
        self.0.iter().map(|(target, value)| (target, value))
    }

    /// As [`Self::iter`], to change the values.
    pub fn iter_mut(&mut self) -> impl ExactSizeIterator<Item = (&Target, &mut T)> {
        self.0.iter_mut().map(|(target, value)| (&*target, value))
    }

    /// Returns the values.
    pub fn values(&self) -> impl ExactSizeIterator<Item = &T> {
        self.0.iter().map(|(_, value)| value)
    }

    /// Returns another value for each target.
    pub fn map<U>(&self, mut value: impl FnMut(&Target, &T) -> U) -> PerTarget<U> {
        self.iter()
            .map(|(target, of)| (target.clone(), value(target, of)))
            .collect()
    }

    /// Returns the same values, of another cluster than that of the agents.
    #[must_use]
    pub fn about(&self, cluster: &Arc<str>) -> Self
    where
        T: Clone,
    {
        let values = self.iter().map(|(target, value)| {
            let target = Target {
                signal: target.signal,
                cluster: Some(Arc::clone(cluster)),
            };
            (target, value.clone())
        });
        values.collect()
    }
}

impl<K: Into<Target>, T> FromIterator<(K, T)> for PerTarget<T> {
    fn from_iter<I: IntoIterator<Item = (K, T)>>(values: I) -> Self {
        let values = values.into_iter();
        Self(
            values
                .map(|(target, value)| (target.into(), value))
                .collect(),
        )
    }
}

impl<T> IntoIterator for PerTarget<T> {
    type Item = (Target, T);
    type IntoIter = std::vec::IntoIter<Self::Item>;

    fn into_iter(self) -> Self::IntoIter {
        self.0.into_iter()
    }
}
