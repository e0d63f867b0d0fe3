//! The clusters that conditions block or would block, and the remedies that concern each.

use std::collections::BTreeSet;

use jiff::Timestamp;
use karmada_api::Cluster;
use objects::Key;
use traffic::remedy::{Claim, Reached};

use super::{Index, Reference};

impl Index {
    /// Takes in the clusters that a read showed to be blocked, which may be newer than those of the watch, and
    /// returns those that are concerned or admitted now.
    pub(crate) fn surveyed(&mut self, blocked: Vec<Cluster>) -> Vec<Key> {
        let mut woken = Vec::new();
        // All of them count before the first is admitted.
        for cluster in blocked {
            if let Some(change) = self.clusters.read_ahead(cluster) {
                woken.extend(self.follow_cluster(&change));
            }
        }
        self.is_surveyed = true;
        woken.extend(self.claim([]));
        woken
    }

    /// Updates the claims of the clusters in the scope of remedies, and returns them, and those that are admitted thereby.
    pub(super) fn claim_all(&mut self, references: &BTreeSet<Reference>) -> Vec<Key> {
        let mut woken = if references.contains(&Reference::EveryCluster) {
            self.keys()
        } else {
            let named = references.iter().filter_map(Reference::cluster);
            named.map(Key::cluster_scoped).collect()
        };
        let admitted = self.claim(&woken);
        woken.extend(admitted);
        woken
    }

    /// Updates the number of clusters, their claims to the bound and which remedies concern them, and returns those that
    /// are admitted thereby.
    pub(crate) fn claim<'a>(&mut self, clusters: impl IntoIterator<Item = &'a Key>) -> Vec<Key> {
        let now = self.now();
        let mut touched: Vec<Key> = Vec::new();
        for key in clusters {
            let claim = self.clusters.get(key).map_or(Claim::None, |cluster| {
                Claim::of(cluster, self.covering(key).map(|remedy| &**remedy), now)
            });
            self.bound.replace(&key.name, claim);
            touched.push(key.clone());
        }
        self.bound.set_clusters(self.clusters.existing());
        let admitted = self.admit();
        for key in touched.iter().chain(&admitted) {
            self.reach(key, now);
        }
        admitted
    }

    /// Updates which remedies concern the cluster `key`.
    fn reach(&mut self, key: &Key, now: Timestamp) {
        let reached = self.clusters.get(key).map(|cluster| {
            let may_block = self.bound.over(&key.name).is_none();
            let covering = self.covering(key).map(|remedy| &**remedy);
            Reached::of(cluster, covering, now, may_block)
        });
        let changed = self.reach.replace(&key.name, reached.unwrap_or_default());
        let changed = changed.into_iter().map(Key::cluster_scoped);
        self.concerned.extend(changed);
    }

    /// Admits clusters to being blocked and returns them.
    fn admit(&mut self) -> Vec<Key> {
        if self.is_unsurveyed() {
            return Vec::new();
        }
        let admitted = self.bound.admit();
        admitted.into_iter().map(Key::cluster_scoped).collect()
    }
}
