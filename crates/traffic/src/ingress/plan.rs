use k8s_openapi::api::networking::v1::IngressLoadBalancerStatus;
use karmada_api::{MultiClusterIngressStatus, ServiceLocation};
use serde::Serialize;

/// The write of one field.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum FieldPlan<T> {
    /// The field is up to date.
    Unchanged,
    /// This value replaces the current one.
    Write(T),
}

impl<T: PartialEq> FieldPlan<T> {
    /// Plans a write of `wanted` unless it is the current value.
    pub(super) fn replace(current: &T, wanted: T) -> Self {
        if *current == wanted {
            Self::Unchanged
        } else {
            Self::Write(wanted)
        }
    }
}

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
        let without = |list: &[String], other: &[String]| {
            let mut rest: Vec<String> = list.to_vec();
            rest.retain(|cluster| !other.contains(cluster));
            rest.sort();
            rest.dedup();
            rest
        };
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

/// Plans the write of `status.loadBalancer` after the load balancer has returned `reported`. `None` in the
/// plan removes the field, as does a `reported` without addresses.
pub fn load_balancer(
    status: Option<&MultiClusterIngressStatus>,
    reported: IngressLoadBalancerStatus,
) -> FieldPlan<Option<IngressLoadBalancerStatus>> {
    let current = status.and_then(|status| status.load_balancer.clone());
    let has_addresses = reported.ingress.as_ref().is_some_and(|i| !i.is_empty());
    FieldPlan::replace(&current, Some(reported).filter(|_| has_addresses))
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
        let plan = FieldPlan::replace(&StatusPatch::current(&status), wanted.clone());
        assert_eq!(plan, FieldPlan::Write(wanted));
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

    /// The load balancer's addresses are written only when they changed.
    #[test]
    fn only_changed_addresses_are_written() {
        let status = |load_balancer| MultiClusterIngressStatus {
            load_balancer,
            ..MultiClusterIngressStatus::default()
        };
        let old = status(Some(addresses(&["192.0.2.1"])));
        let new = addresses(&["192.0.2.2"]);
        assert_eq!(
            load_balancer(Some(&old), addresses(&["192.0.2.1"])),
            FieldPlan::Unchanged
        );
        assert_eq!(
            load_balancer(Some(&old), new.clone()),
            FieldPlan::Write(Some(new.clone()))
        );
        assert_eq!(
            load_balancer(None, new.clone()),
            FieldPlan::Write(Some(new))
        );
    }

    /// A load balancer without addresses has no status.
    #[test]
    fn no_addresses_no_status() {
        let none = IngressLoadBalancerStatus::default();
        for reported in [none, addresses(&[])] {
            let empty = MultiClusterIngressStatus {
                load_balancer: Some(addresses(&["192.0.2.1"])),
                ..MultiClusterIngressStatus::default()
            };
            assert_eq!(load_balancer(None, reported.clone()), FieldPlan::Unchanged);
            assert_eq!(
                load_balancer(Some(&empty), reported),
                FieldPlan::Write(None)
            );
        }
    }
}
