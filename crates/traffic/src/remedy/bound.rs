//! The bound of the clusters that conditions may block, across the whole fleet.
//!
//! A probe that is misconfigured everywhere makes every cluster fail at once. The bound then keeps a part
//! of the fleet in service. It counts the clusters with `TrafficControl`, except those for which a remedy
//! without matches requires it: that is a person's decision.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::str::FromStr;

use jiff::Timestamp;
use karmada_api::{Cluster, Remedy, TRAFFIC_CONTROL};

use super::decision::Cause;
use super::effect::{Effect, actions, blocks};

/// The largest number of clusters that conditions may block.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum MaxBlocked {
    /// A number of clusters.
    Count(usize),
    /// A percentage of all clusters that exist, rounded down.
    Percent(u8),
}

impl MaxBlocked {
    fn limit(self, clusters: usize) -> usize {
        match self {
            Self::Count(count) => count,
            Self::Percent(percent) => clusters.saturating_mul(usize::from(percent)) / 100,
        }
    }
}

impl FromStr for MaxBlocked {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let percent = text.strip_suffix('%');
        let known = match percent {
            Some(percent) => percent
                .parse()
                .ok()
                .filter(|p| *p <= 100)
                .map(Self::Percent),
            None => text.parse().ok().map(Self::Count),
        };
        known.ok_or_else(|| {
            "write a number of clusters such as 3, or a percentage from 0% to 100%".to_owned()
        })
    }
}

impl fmt::Display for MaxBlocked {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Count(count) => count.fmt(f),
            Self::Percent(percent) => write!(f, "{percent}%"),
        }
    }
}

/// The relation of one cluster to the bound.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Claim {
    /// The cluster does not count: nothing requires a block, or a remedy without matches does.
    None,
    /// A condition requires a block that is not set yet.
    Wanted,
    /// The block is set, required or not.
    Held,
}

impl Claim {
    /// Returns the claim of `cluster` at `now`. `remedies` are those that cover it, in any order.
    pub fn of<'a>(
        cluster: &Cluster,
        remedies: impl IntoIterator<Item = &'a Remedy>,
        now: Timestamp,
    ) -> Self {
        let mut wanted = false;
        for remedy in remedies {
            if !blocks(actions(remedy)) {
                continue;
            }
            match Effect::of(remedy, cluster, now) {
                Some(Effect::Acts(Cause::Unconditional)) => return Self::None,
                Some(Effect::Acts(Cause::Conditions(_))) => wanted = true,
                Some(Effect::WouldAct(_) | Effect::Unclear) | None => {}
            }
        }
        if blocks(cluster.remedy_actions()) {
            Self::Held
        } else if wanted && cluster.metadata.deletion_timestamp.is_none() {
            Self::Wanted
        } else {
            Self::None
        }
    }
}

/// The clusters that conditions block or would block, and the bound.
#[derive(Clone, Debug)]
pub struct BlockBound {
    max: MaxBlocked,
    /// The number of clusters that exist.
    clusters: usize,
    /// The clusters that count, by whether their block is set.
    held: BTreeMap<String, bool>,
    waiting: BTreeSet<String>,
}

/// The reason why a block that a condition requires is not set.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct OverBound {
    max: MaxBlocked,
    limit: usize,
    clusters: usize,
}

impl BlockBound {
    /// Creates the bound of a fleet without clusters.
    pub fn new(max: MaxBlocked) -> Self {
        Self {
            max,
            clusters: 0,
            held: BTreeMap::new(),
            waiting: BTreeSet::new(),
        }
    }

    /// Sets the number of clusters that exist.
    pub fn set_clusters(&mut self, clusters: usize) {
        self.clusters = clusters;
    }

    /// Replaces the claim of `cluster`.
    pub fn replace(&mut self, cluster: &str, claim: Claim) {
        match claim {
            Claim::None => {
                self.held.remove(cluster);
                self.waiting.remove(cluster);
            }
            // A block that was admitted and is not seen yet keeps its place.
            Claim::Wanted if self.held.contains_key(cluster) => {
                self.held.insert(cluster.to_owned(), false);
            }
            Claim::Wanted => {
                self.waiting.insert(cluster.to_owned());
            }
            Claim::Held => {
                self.waiting.remove(cluster);
                self.held.insert(cluster.to_owned(), true);
            }
        }
    }

    /// Admits waiting clusters up to the bound and returns them.
    pub fn admit(&mut self) -> Vec<String> {
        let mut admitted = Vec::new();
        while self.held.len() < self.limit() {
            // By name, and not by the time of the condition's transition: that time is from the clock of
            // whoever wrote the condition, may be null, and moves with every flap, so the order of those
            // that wait would change while nothing else does. A name says the same after a restart.
            let Some(first) = self.waiting.pop_first() else {
                break;
            };
            self.held.insert(first.clone(), false);
            admitted.push(first);
        }
        admitted
    }

    /// Forgets whom an earlier term admitted without a block to show for it: those that are set stay,
    /// and the others wait for [`Self::admit`] again.
    pub fn restart(&mut self) {
        let (set, unset) = std::mem::take(&mut self.held)
            .into_iter()
            .partition(|(_, set)| *set);
        self.held = set;
        self.waiting.extend(BTreeMap::into_keys(unset));
    }

    /// Returns the reason why `cluster` must not be blocked although a condition requires it.
    pub fn over(&self, cluster: &str) -> Option<OverBound> {
        self.waiting.contains(cluster).then(|| OverBound {
            max: self.max,
            limit: self.limit(),
            clusters: self.clusters,
        })
    }

    /// Returns the number of clusters that the bound keeps unblocked.
    pub fn waiting(&self) -> usize {
        self.waiting.len()
    }

    /// Returns `true` if conditions may not block every cluster.
    pub fn binds(&self) -> bool {
        self.limit() < self.clusters
    }

    /// Returns the number of clusters that conditions may block now.
    pub fn limit(&self) -> usize {
        self.max.limit(self.clusters)
    }
}

impl fmt::Display for OverBound {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self {
            max,
            limit,
            clusters,
        } = self;
        write!(
            f,
            "{TRAFFIC_CONTROL} not set: --max-blocked-clusters={max} lets conditions block {limit} of {clusters} clusters, and that many are blocked"
        )
    }
}

#[cfg(test)]
mod tests;
