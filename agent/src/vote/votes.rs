//! This node's votes.

use std::collections::BTreeMap;
use std::mem::{Discriminant, discriminant};
use std::sync::Arc;

use health::observation::Observation;
use health::signal::{PerTarget, Target};
use health::threshold::Vote;

/// This node's vote on each signal.
pub(crate) type Votes = PerTarget<Option<Vote>>;

/// The observations of a round, one of each cluster that it is about.
pub(crate) type ByCluster = BTreeMap<Arc<str>, Observation>;

/// Logs the vote on `target`, if it is of another kind than before. Another failure is published, for its class and server,
/// but the vote has not changed.
pub(super) fn log_change(target: &Target, before: Option<Vote>, vote: Option<Vote>) {
    if kind(vote) == kind(before) {
        return;
    }
    let (signal, cluster) = (target.signal.subject, target.cluster.as_deref());
    match vote {
        None => tracing::warn!(signal, cluster, "This node has no vote"),
        Some(Vote::FirstSuccess) => {
            tracing::info!(signal, cluster, "This node's first answer is good");
        }
        Some(Vote::Healthy | Vote::Partial(_)) => {
            tracing::info!(signal, cluster, "This node votes healthy");
        }
        Some(Vote::Unhealthy(failure)) => {
            tracing::warn!(signal, cluster, %failure, "This node votes unhealthy");
        }
    }
}

/// Returns the kind of a vote, without its failure or its troubles.
pub(crate) fn kind(vote: Option<Vote>) -> Option<Discriminant<Vote>> {
    vote.map(|vote| match vote {
        Vote::Partial(_) => discriminant(&Vote::Healthy),
        vote => discriminant(&vote),
    })
}

/// Returns the votes of an agent that runs DNS alone.
#[cfg(test)]
pub(crate) fn on_dns(vote: Option<Vote>) -> Votes {
    PerTarget::from_iter([(&health::dns::DNS, vote)])
}
