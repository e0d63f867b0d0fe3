use k8s_openapi::api::networking::v1::IngressLoadBalancerStatus;
use karmada_api::{MultiClusterIngressStatus, ServiceLocation};
use serde::Serialize;

/// A merge patch of the Services' locations and the blocked clusters. An absent field is sent as null,
/// which removes it.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct StatusPatch {
    /// `status.serviceLocations`.
    pub service_locations: Option<Vec<ServiceLocation>>,
    /// `status.trafficBlockClusters`.
    pub traffic_block_clusters: Option<Vec<String>>,
}

impl StatusPatch {
    /// Creates a patch in which an empty list is an absent one.
    pub(super) fn new(locations: Vec<ServiceLocation>, blocked: Vec<String>) -> Self {
        Self {
            service_locations: Some(locations).filter(|l| !l.is_empty()),
            traffic_block_clusters: Some(blocked).filter(|b| !b.is_empty()),
        }
    }

    /// Returns the patch that would change nothing.
    pub(super) fn current(status: &MultiClusterIngressStatus) -> Self {
        Self {
            service_locations: status.service_locations.clone(),
            traffic_block_clusters: status.traffic_block_clusters.clone(),
        }
    }
}

/// The clusters newly blocked, and those no longer blocked, each sorted.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct BlockChange {
    /// Newly blocked.
    pub blocked: Vec<String>,
    /// No longer blocked.
    pub unblocked: Vec<String>,
}

impl BlockChange {
    pub(super) fn between(before: &[String], after: &[String]) -> Self {
        Self {
            blocked: without(after, before),
            unblocked: without(before, after),
        }
    }

    /// Returns the change from `earlier`, a change from the same clusters, to this one.
    #[must_use]
    pub fn since(&self, earlier: &Self) -> Self {
        let further = Self::between(&earlier.blocked, &self.blocked);
        let back = Self::between(&earlier.unblocked, &self.unblocked);
        Self {
            blocked: [further.blocked, back.unblocked].concat(),
            unblocked: [back.blocked, further.unblocked].concat(),
        }
    }
}

/// Returns those of `list` that are not in `other`, sorted.
fn without(list: &[String], other: &[String]) -> Vec<String> {
    let mut rest = list.to_vec();
    rest.retain(|cluster| !other.contains(cluster));
    rest.sort();
    rest.dedup();
    rest
}

/// Returns the `status.loadBalancer` with the addresses that the load balancer has `reported`; `None`, which removes the field,
/// without addresses.
pub fn load_balancer(reported: IngressLoadBalancerStatus) -> Option<IngressLoadBalancerStatus> {
    let has_addresses = reported.ingress.as_ref().is_some_and(|i| !i.is_empty());
    Some(reported).filter(|_| has_addresses)
}

#[cfg(test)]
mod tests {
    use k8s_openapi::api::networking::v1::IngressLoadBalancerIngress;
    use serde_json::json;

    use super::super::fixtures::location;
    use super::*;

    fn names(list: &[&str]) -> Vec<String> {
        list.iter().map(|&n| n.to_owned()).collect()
    }

    fn addresses(ips: &[&str]) -> IngressLoadBalancerStatus {
        let ingress = ips.iter().map(|&ip| IngressLoadBalancerIngress {
            ip: Some(ip.to_owned()),
            ..IngressLoadBalancerIngress::default()
        });
        IngressLoadBalancerStatus {
            ingress: Some(ingress.collect()),
        }
    }

    /// A status patch has null for absent fields.
    #[test]
    fn absent_fields_are_null() {
        let patch = StatusPatch::new(vec![location("s", &["m1"])], Vec::new());
        let expected = json!({
            "serviceLocations": [{"name": "s", "clusters": ["m1"]}],
            "trafficBlockClusters": null,
        });
        assert_eq!(serde_json::to_value(patch).unwrap(), expected);
    }

    /// An empty list in a status is not an absent one.
    #[test]
    fn empty_list_is_not_absent() {
        let status = MultiClusterIngressStatus {
            traffic_block_clusters: Some(Vec::new()),
            ..MultiClusterIngressStatus::default()
        };
        let wanted = StatusPatch::new(Vec::new(), Vec::new());
        assert_ne!(StatusPatch::current(&status), wanted);
    }

    /// A block change lists the clusters blocked and unblocked.
    #[test]
    fn change_lists_both_directions() {
        let change = BlockChange::between(&names(&["b", "a"]), &names(&["b", "d", "c"]));
        assert_eq!(change.blocked, ["c", "d"]);
        assert_eq!(change.unblocked, ["a"]);
        let same = BlockChange::between(&names(&["a"]), &names(&["a"]));
        assert_eq!(same, BlockChange::default());
    }

    /// A load balancer without addresses has no status.
    #[test]
    fn no_addresses_no_status() {
        let reported = addresses(&["192.0.2.1"]);
        assert_eq!(load_balancer(reported.clone()), Some(reported));
        for reported in [IngressLoadBalancerStatus::default(), addresses(&[])] {
            assert_eq!(load_balancer(reported), None);
        }
    }
}
