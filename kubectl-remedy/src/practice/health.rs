//! The health of the rest of a fleet.

use std::collections::BTreeMap;

use k8s_openapi::api::discovery::v1::EndpointSlice;
use karmada_api::condition::{FALSE, TRUE};
use kube::ResourceExt;
use objects::Key;
use traffic::endpoints::{slice_cluster, slice_service};

use crate::fleet::FleetSnapshot;

/// The state of the clusters other than one.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Health {
    /// The status of each condition of each cluster.
    conditions: BTreeMap<(String, String), String>,
    /// The ready endpoints of each Service.
    ready: BTreeMap<Key, usize>,
}

impl Health {
    /// Returns the state of a fleet without the cluster.
    pub(super) fn of(fleet: &FleetSnapshot, without: &str) -> Self {
        let mut health = Self::default();
        let others = fleet.clusters.iter().map(|(_, cluster)| cluster);
        for cluster in others.filter(|cluster| cluster.name_any() != without) {
            for condition in cluster.conditions() {
                let key = (cluster.name_any(), condition.type_.clone());
                health.conditions.insert(key, condition.status.clone());
            }
        }
        for (_, slice) in fleet.slices.iter() {
            if let Some(service) = slice_service(fleet.kind, slice)
                && slice_cluster(slice).is_some_and(|cluster| cluster != without)
            {
                *health.ready.entry(service).or_default() += ready(slice);
            }
        }
        health
    }

    /// Returns the parts that were well at the `start` and are not now: a condition that is False, and a Service that has less than
    /// half of its endpoints.
    pub(super) fn worse_than(&self, start: &Self) -> Vec<String> {
        let was_true = start
            .conditions
            .iter()
            .filter(|(_, status)| *status == TRUE);
        let failing = was_true.filter(|(key, _)| {
            let now = self.conditions.get(key);
            now.is_some_and(|status| status == FALSE)
        });
        let failing = failing.map(|((cluster, kind), _)| format!("{kind} of {cluster} is False"));
        let fewer = start.ready.iter().filter_map(|(service, &before)| {
            let now = self.ready.get(service).copied().unwrap_or_default();
            let is_worse = now * 2 < before;
            is_worse.then(|| {
                format!("Service {service} has {now} ready endpoints in place of {before}")
            })
        });
        failing.chain(fewer).collect()
    }
}

fn ready(slice: &EndpointSlice) -> usize {
    let endpoints = slice.endpoints.iter().flatten();
    let ready = endpoints.filter(|endpoint| {
        let conditions = endpoint.conditions.as_ref();
        conditions.and_then(|conditions| conditions.ready) != Some(false)
    });
    ready.map(|endpoint| endpoint.addresses.len()).sum()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fixtures::{cluster, fleet, slice};
    use crate::fleet::put;

    fn health(fleet: &FleetSnapshot) -> Health {
        Health::of(fleet, "member1")
    }

    /// A part that was well before and is not now is worse; the cluster itself does not count, nor a part that was never well.
    #[test]
    fn only_others_get_worse() {
        let start = fleet();
        assert_eq!(health(&start).worse_than(&health(&start)), [""; 0]);

        let mut dead = fleet();
        put(&mut dead.clusters, cluster("member2", Some("False"), &[]));
        put(&mut dead.slices, slice("web", "member2", "10.2.0.1", false));
        assert_eq!(
            health(&dead).worse_than(&health(&start)),
            [
                "ServiceDomainNameResolutionReady of member2 is False",
                "Service shop/web has 0 ready endpoints in place of 1",
            ]
        );
        // It was so from the start.
        assert_eq!(health(&dead).worse_than(&health(&dead)), [""; 0]);

        let mut own = fleet();
        put(&mut own.slices, slice("web", "member1", "10.1.0.1", false));
        assert_eq!(health(&own).worse_than(&health(&start)), [""; 0]);
    }
}
