//! The Services that Works bring to clusters.

use std::collections::{BTreeMap, BTreeSet};

use objects::Key;
use objects::reverse_index::ReverseIndex;

use super::origin::Origin;

/// The Services that Works bring to clusters, by cluster and by Service.
#[derive(Debug, Default)]
pub(super) struct Dispatched {
    /// From a Work to the Services that it brings.
    works: ReverseIndex<Key, Origin>,
    services: BTreeMap<String, BTreeSet<Key>>,
    clusters: BTreeMap<Key, BTreeSet<String>>,
}

impl Dispatched {
    /// Takes in the Services that a Work brings now, and returns those that are new or no longer brought.
    pub(super) fn replace(&mut self, work: &Key, origins: BTreeSet<Origin>) -> Vec<Origin> {
        let before = self.works.targets(work).to_vec();
        let concerned: BTreeSet<Origin> =
            before.into_iter().chain(origins.iter().cloned()).collect();
        self.works.replace(work, origins);
        concerned
            .into_iter()
            .filter(|origin| self.update(origin))
            .collect()
    }

    /// Brings both maps up to date, and returns `true` if that has changed them.
    fn update(&mut self, origin: &Origin) -> bool {
        let Origin { cluster, service } = origin;
        if self.contains(origin) {
            self.clusters
                .entry(service.clone())
                .or_default()
                .insert(cluster.clone());
            return self
                .services
                .entry(cluster.clone())
                .or_default()
                .insert(service.clone());
        }
        remove(&mut self.clusters, service, cluster);
        remove(&mut self.services, cluster, service)
    }

    /// Returns `true` if a Work brings the Service to the cluster.
    pub(super) fn contains(&self, origin: &Origin) -> bool {
        self.works.count(origin) > 0
    }

    /// Returns the Services that are brought to a cluster.
    pub(super) fn services(&self, cluster: &str) -> impl Iterator<Item = &Key> {
        self.services.get(cluster).into_iter().flatten()
    }

    /// Returns the clusters to which a Service is brought.
    pub(super) fn clusters(&self, service: &Key) -> impl Iterator<Item = &String> {
        self.clusters.get(service).into_iter().flatten()
    }
}

fn remove<K: Ord, V: Ord>(map: &mut BTreeMap<K, BTreeSet<V>>, key: &K, value: &V) -> bool {
    let Some(values) = map.get_mut(key) else {
        return false;
    };
    let removed = values.remove(value);
    if values.is_empty() {
        map.remove(key);
    }
    removed
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A Service is brought as long as one of its Works does.
    #[test]
    fn last_work_takes_service_away() {
        let (web, origin) = (
            Key::new("shop", "web"),
            Origin::new("m1", Key::new("shop", "web")),
        );
        let works = ["a", "b"].map(|name| Key::new("karmada-es-m1", name));
        let mut dispatched = Dispatched::default();
        let only = BTreeSet::from([origin.clone()]);
        let changed = [origin];
        assert_eq!(dispatched.replace(&works[0], only.clone()), changed);
        assert_eq!(dispatched.replace(&works[1], only), []);
        assert_eq!(dispatched.clusters(&web).collect::<Vec<_>>(), ["m1"]);
        assert_eq!(dispatched.services("m1").collect::<Vec<_>>(), [&web]);
        assert_eq!(dispatched.replace(&works[0], BTreeSet::new()), []);
        assert_eq!(dispatched.replace(&works[1], BTreeSet::new()), changed);
        assert!(!dispatched.contains(&changed[0]));
        assert_eq!(
            dispatched.clusters(&web).count() + dispatched.services("m1").count(),
            0
        );
    }
}
