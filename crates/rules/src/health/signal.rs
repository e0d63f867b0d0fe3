//! What agents judge: a signal of the cluster's health, with a condition of its own.
//!
//! From the streak on one node to the condition, nothing knows what a signal is about. What differs from
//! one to the next is here: its names, its words, and the closed set of classes of its failures.

use super::failure::FailureClass;

/// A function of the cluster that each node probes and all nodes vote on.
#[derive(Debug, PartialEq, Eq)]
pub struct Signal {
    /// The name, as in `--detectors` and in vote documents.
    pub name: &'static str,
    /// The function in a word, for metrics and logs.
    pub subject: &'static str,
    /// What the names of its metrics begin with.
    pub metric_prefix: &'static str,
    /// The type of its condition.
    pub condition: &'static str,
    /// The reason of the condition while it is True.
    pub ready_reason: &'static str,
    /// The reason of the condition while it is False.
    pub failed_reason: &'static str,
    /// The observation of a round that succeeds, as a sentence.
    pub works: &'static str,
    /// The reason why a node has no observation, as a sentence.
    pub unobserved: &'static str,
    /// The classes of its failures, mildest first.
    pub classes: &'static [FailureClass],
}

impl Signal {
    /// Returns the class of this name, or [`FailureClass::OTHER`] for one that only a newer agent knows.
    pub fn class(&self, name: &str) -> FailureClass {
        let known = self.classes.iter().find(|class| class.as_str() == name);
        known.copied().unwrap_or(FailureClass::OTHER)
    }
}

/// A value for each of the signals that an agent runs, in the order of its probes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PerSignal<T>(Vec<(&'static Signal, T)>);

impl<T> PerSignal<T> {
    /// Returns the value of `signal`, or `None` if it does not run.
    pub fn get(&self, signal: &Signal) -> Option<&T> {
        self.iter()
            .find(|(other, _)| other.name == signal.name)
            .map(|(_, value)| value)
    }

    /// As [`Self::get`], to change the value.
    pub fn get_mut(&mut self, signal: &Signal) -> Option<&mut T> {
        let mut all = self.0.iter_mut();
        all.find(|(other, _)| other.name == signal.name)
            .map(|(_, value)| value)
    }

    /// Returns the signals and their values.
    pub fn iter(&self) -> impl ExactSizeIterator<Item = (&'static Signal, &T)> {
        self.0.iter().map(|(signal, value)| (*signal, value))
    }

    /// Returns the values.
    pub fn values(&self) -> impl ExactSizeIterator<Item = &T> {
        self.0.iter().map(|(_, value)| value)
    }

    /// Returns another value for each signal.
    pub fn map<U>(&self, mut value: impl FnMut(&'static Signal, &T) -> U) -> PerSignal<U> {
        self.iter()
            .map(|(signal, of)| (signal, value(signal, of)))
            .collect()
    }
}

impl<T> FromIterator<(&'static Signal, T)> for PerSignal<T> {
    fn from_iter<I: IntoIterator<Item = (&'static Signal, T)>>(values: I) -> Self {
        Self(values.into_iter().collect())
    }
}

impl<T> IntoIterator for PerSignal<T> {
    type Item = (&'static Signal, T);
    type IntoIter = std::vec::IntoIter<Self::Item>;

    fn into_iter(self) -> Self::IntoIter {
        self.0.into_iter()
    }
}
