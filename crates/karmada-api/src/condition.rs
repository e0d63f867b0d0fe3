//! The conditions of a `Cluster`, and those of them that the agent owns: their types and reasons.

pub use objects::condition::{Condition, FALSE, TRUE};

/// The condition with the agent's verdict: True if the names of Services resolve inside the cluster.
pub const DNS_READY: &str = "ServiceDomainNameResolutionReady";
/// The reason of a True [`DNS_READY`].
pub const DNS_READY_REASON: &str = "ServiceDomainNameResolutionReady";
/// The reason of a False [`DNS_READY`].
pub const DNS_FAILED_REASON: &str = "ServiceDomainNameResolutionFailed";

/// The condition with the agent's verdict: True if connections to the cluster IP of a Service reach its
/// endpoints.
pub const SERVICE_NETWORK_READY: &str = "ServiceNetworkReady";
/// The reason of a True [`SERVICE_NETWORK_READY`].
pub const SERVICE_NETWORK_READY_REASON: &str = "ServiceNetworkReady";
/// The reason of a False [`SERVICE_NETWORK_READY`].
pub const SERVICE_NETWORK_FAILED_REASON: &str = "ServiceNetworkFailed";

/// The condition with the verdict of the agents on a gateway's nodes: True if connections from there reach the
/// cluster.
pub const REACHABLE: &str = "ReachableFromGateway";
/// The reason of a True [`REACHABLE`].
pub const REACHABLE_REASON: &str = "ReachableFromGateway";
/// The reason of a False [`REACHABLE`].
pub const UNREACHABLE_REASON: &str = "UnreachableFromGateway";

/// The condition of the freshness of [`REACHABLE`], with the reasons of [`REPORTER_READY`].
pub const GATEWAY_REPORTER_READY: &str = "GatewayReporterReady";

/// The condition of the verdicts' freshness: True while those of all signals are up to date.
pub const REPORTER_READY: &str = "HealthReporterReady";
/// The reason of a True [`REPORTER_READY`].
pub const REPORTING_REASON: &str = "Reporting";
/// The reason of a False [`REPORTER_READY`] while too few nodes have a vote.
pub const INSUFFICIENT_OBSERVATIONS_REASON: &str = "InsufficientObservations";

/// The reason of a False [`REPORTER_READY`] while nobody renews the reporter's lease. The agents cannot
/// write it themselves: the remedy-controller does.
pub const REPORTER_SILENT_REASON: &str = "ReporterSilent";
/// The name of the lease of a cluster's reporter, in the cluster's execution namespace.
pub const REPORTER_LEASE: &str = "cluster-health-agent";

/// The namespace of the lease of the agents on a gateway's nodes, which has the same name. All gateways of a fleet share it,
/// for each cluster has one such condition.
pub const GATEWAY_REPORTER_NAMESPACE: &str = "karmada-system";

/// The reason of a True condition of a signal that users declare. Its type is theirs, so this reason or
/// [`DECLARED_FAILED_REASON`] tells that the agents have written it.
pub const DECLARED_READY_REASON: &str = "DeclaredSignalReady";
/// The reason of a False condition of a signal that users declare.
pub const DECLARED_FAILED_REASON: &str = "DeclaredSignalFailed";

/// The types of the conditions of a `Cluster` that the agents on a gateway's nodes write.
const OF_GATEWAY: [&str; 2] = [REACHABLE, GATEWAY_REPORTER_READY];
/// The types of the conditions that karmada-rs owns on a `Cluster`, but for those of signals that users declare: see
/// [`is_owned`].
pub const OWNED: [&str; 5] = [
    DNS_READY,
    SERVICE_NETWORK_READY,
    REPORTER_READY,
    REACHABLE,
    GATEWAY_REPORTER_READY,
];

/// Returns `true` for the condition of a signal that users declare, as the agents write it.
pub fn is_declared(condition: &Condition) -> bool {
    [DECLARED_READY_REASON, DECLARED_FAILED_REASON].contains(&&*condition.reason)
        && !OWNED.contains(&&*condition.type_)
}

/// Returns `true` for a condition that karmada-rs owns on a `Cluster`.
pub fn is_owned(condition: &Condition) -> bool {
    OWNED.contains(&&*condition.type_) || is_declared(condition)
}

/// Returns `true` for a condition of a `Cluster` that its own agents write.
pub fn is_of_member(condition: &Condition) -> bool {
    is_owned(condition) && !OF_GATEWAY.contains(&&*condition.type_)
}

/// Returns the conditions that karmada-rs owns: those of [`OWNED`] in its order, then those of signals that users declare, as
/// they are listed.
pub fn owned(conditions: &[Condition]) -> impl Iterator<Item = &Condition> {
    let fixed = OWNED
        .into_iter()
        .filter_map(move |kind| objects::condition::find(conditions, kind));
    fixed.chain(conditions.iter().filter(|one| is_declared(one)))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn condition(kind: &str, reason: &str) -> Condition {
        Condition {
            type_: kind.to_owned(),
            reason: reason.to_owned(),
            ..Condition::default()
        }
    }

    /// A condition of a type that users chose is ours by its reason, and one of our types by its type.
    #[test]
    fn reason_tells_declared_conditions() {
        let conditions = [
            condition("ImageRegistryReady", DECLARED_FAILED_REASON),
            condition("Ready", "ClusterReady"),
            condition("IngressReady", "SomebodyElse"),
            condition(DNS_READY, DNS_READY_REASON),
            condition(REPORTER_READY, DECLARED_READY_REASON),
        ];
        let types: Vec<_> = owned(&conditions).map(|one| &*one.type_).collect();
        assert_eq!(types, [DNS_READY, REPORTER_READY, "ImageRegistryReady"]);
        for (one, expected) in conditions.iter().zip([true, false, false, true, true]) {
            assert_eq!(is_owned(one), expected, "{}", one.type_);
        }
        assert!(!is_declared(&conditions[4]));
        assert!(is_of_member(&conditions[0]) && is_of_member(&conditions[4]));
        assert!(!is_of_member(&conditions[1]) && !is_of_member(&condition(REACHABLE, "")));
    }
}
