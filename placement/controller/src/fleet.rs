//! The clusters of the fleet, and which of them may be given anything.

use std::collections::BTreeMap;
use std::sync::Arc;

use fleet_api::MemberCluster;
use jiff::{SignedDuration, Timestamp};
use karmada_runtime::cache::Transition;
use karmada_runtime::expectations::Expectations;
use karmada_runtime::store::Store;
use objects::{Key, Metadata};
use placement_rules::eligible::{Eligibility, LastHeard, Obstacle, Reach, eligibility, heartbeat};
use placement_rules::pick::{ClusterChange, FleetCluster, change};

/// The clusters of the fleet.
#[derive(Debug)]
pub(crate) struct Fleet {
    pub(crate) members: Store<MemberCluster>,
    heartbeat_timeout: SignedDuration,
    heard: BTreeMap<String, LastHeard>,
    /// Each as it was when placements were last woken on its account.
    judged: BTreeMap<String, Member>,
}

/// A cluster of the fleet at one moment.
#[derive(Clone, Debug)]
pub(crate) struct Member {
    pub(crate) cluster: Arc<MemberCluster>,
    /// Why it may not be given anything.
    pub(crate) obstacle: Option<Obstacle>,
}

/// The result of a look at a cluster.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Judgement {
    /// How it has changed since the last look, if scheduling depends on that.
    pub(crate) change: Option<ClusterChange>,
    /// True if it does not exist.
    pub(crate) is_gone: bool,
    /// The time at which it may change by itself.
    pub(crate) until: Option<Timestamp>,
}

impl Member {
    pub(crate) fn as_fleet(&self) -> FleetCluster<'_> {
        FleetCluster {
            cluster: &self.cluster,
            obstacle: self.obstacle,
        }
    }

    pub(crate) fn reach(&self) -> Reach {
        match self.obstacle {
            None => Reach::Reachable,
            Some(_) => Reach::Unreachable,
        }
    }

    pub(crate) fn name(&self) -> &str {
        self.cluster.metadata.name()
    }
}

impl Fleet {
    pub(crate) fn new(heartbeat_timeout: SignedDuration, expectations: &Expectations) -> Self {
        Self {
            members: Store::default().expecting(expectations, &()),
            heartbeat_timeout,
            heard: BTreeMap::new(),
            judged: BTreeMap::new(),
        }
    }

    /// Notes when the agent of a cluster was heard of.
    pub(crate) fn hear(&mut self, change: &Transition<MemberCluster>, now: Timestamp) {
        let name = &change.key.name;
        if let Some(beat) = change.new.as_deref().and_then(heartbeat) {
            let before = self.heard.get(name).copied();
            let heard = LastHeard::observe(before, beat, now);
            self.heard.insert(name.clone(), heard);
        } else {
            self.heard.remove(name);
        }
    }

    /// Returns the keys of the clusters.
    pub(crate) fn keys(&self) -> Vec<Key> {
        self.members.keys().cloned().collect()
    }

    /// Returns every cluster.
    pub(crate) fn all(&self, now: Timestamp) -> Vec<Member> {
        let members = self.members.iter();
        members
            .map(|(_, cluster)| Member {
                cluster: Arc::clone(cluster),
                obstacle: self.eligibility(cluster, now).obstacle,
            })
            .collect()
    }

    /// Returns a cluster as it is at a moment.
    pub(crate) fn member(&self, name: &str, now: Timestamp) -> Option<Member> {
        let cluster = self.get(name)?;
        Some(Member {
            cluster: Arc::clone(cluster),
            obstacle: self.eligibility(cluster, now).obstacle,
        })
    }

    /// Returns a cluster.
    pub(crate) fn get(&self, name: &str) -> Option<&Arc<MemberCluster>> {
        self.members.get(&Key::cluster_scoped(name))
    }

    /// Looks at a cluster.
    pub(crate) fn judge(&mut self, name: &str, now: Timestamp) -> Judgement {
        let mut until = None;
        let after = self.get(name).map(|cluster| {
            let eligibility = self.eligibility(cluster, now);
            until = eligibility.until;
            Member {
                cluster: Arc::clone(cluster),
                obstacle: eligibility.obstacle,
            }
        });
        let before = match &after {
            Some(after) => self.judged.insert(name.to_owned(), after.clone()),
            None => self.judged.remove(name),
        };
        let [before, after] = [&before, &after].map(|one| one.as_ref().map(Member::as_fleet));
        Judgement {
            change: change(before, after),
            is_gone: after.is_none(),
            until,
        }
    }

    fn eligibility(&self, cluster: &MemberCluster, now: Timestamp) -> Eligibility {
        let heard = self.heard.get(cluster.metadata.name()).copied();
        eligibility(cluster, heard, self.heartbeat_timeout, now)
    }
}
