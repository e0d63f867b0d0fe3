//! The functions of each kind of probe.

use std::time::Duration;

use futures::future::BoxFuture;
use health::failure::FailureClass;
use health::signal::Voters;
use karmada_runtime::args::duration;
use tokio::time::Instant;

use super::network::Node;
use super::unmet::Unmet;

const LONGEST: Duration = Duration::from_hours(24);

/// Parses a length of time in a field of the file, such as `5s`.
///
/// # Errors
/// Returns a message for the user.
pub(super) fn length(field: &str, text: &str) -> Result<Duration, String> {
    match duration(text) {
        Ok(length) if length > LONGEST => Err(format!("{field} is longer than a day")),
        Ok(length) => Ok(length),
        Err(problem) => Err(format!("{field}: {problem}")),
    }
}

/// A round of a probe.
pub(super) struct Attempt<'a> {
    pub(super) node: &'a Node,
    pub(super) deadline: Instant,
    /// The time from one round to the next.
    pub(super) period: Duration,
}

/// A kind of probe, with its declaration.
pub(super) trait Kind: Send + Sync {
    /// Checks the declaration.
    ///
    /// # Errors
    /// Returns a message for the user if it makes no sense.
    fn check(&self) -> Result<(), String>;

    /// Returns the classes of its failures, mildest first.
    fn classes(&self) -> &'static [FailureClass];

    /// Returns whose votes count.
    fn voters(&self) -> Voters {
        Voters::Nodes
    }

    /// Returns warnings about likely mistakes.
    fn warnings(&self) -> Vec<String> {
        Vec::new()
    }

    /// Runs a round.
    fn observe<'a>(&'a self, attempt: &'a Attempt<'a>) -> BoxFuture<'a, Result<(), Unmet>>;

    /// Drops the state that it keeps between rounds, before a time without any.
    fn rest(&self) {}
}
