//! The reasons of this program's Events.

karmada_runtime::event_reasons! {
    ServiceDomainNameResolutionReady: "Cluster", "the verdict has become that DNS works";
    ServiceDomainNameResolutionFailed: "Cluster", "the verdict has become that DNS is dead";
    ServiceNetworkReady: "Cluster", "the verdict has become that connections to a Service reach its endpoints";
    ServiceNetworkFailed: "Cluster", "the verdict has become that they do not";
    ReachableFromGateway: "Cluster", "the verdict has become that connections from the gateway reach the cluster";
    UnreachableFromGateway: "Cluster", "the verdict has become that they do not";
    DeclaredSignalReady: "Cluster", "the verdict on a signal that users declare has become that it works; the note names its condition";
    DeclaredSignalFailed: "Cluster", "the verdict on it has become that it fails";
    Reporting: "Cluster", "the verdict is fresh again";
    InsufficientObservations: "Cluster", "the verdict is stale, because too few nodes vote";
    ReporterSilent: "Cluster", "the verdict is stale, because no agent renews the cluster's lease";
    RemedyActionSet: "Cluster", "an action was set; the note names the Remedy and the condition";
    RemedyActionCleared: "Cluster", "no Remedy requires the action any longer";
    RemedyWouldAct: "Cluster", "a Remedy that only observes would set its actions";
    MaxBlockedClustersReached: "Cluster", "a condition requires a block that --max-blocked-clusters does not allow";
    RemedyActionsContested: "Cluster", "another client undoes every write to its actions";
    ConditionRefused: "Cluster", "the API refuses to store that its reporter is silent, for example by an admission policy; the note gives the reason";
    RemedyActionsRefused: "Cluster", "the API refuses every write to its actions, for example by an admission policy; the note gives the reason";
    StatusRefused: "Remedy", "the API refuses every write to its status, for example by an admission policy; the note gives the reason";
    SelectsNoCluster: "Remedy", "its clusterAffinity names no cluster";
    NeverMatches: "Remedy", "its decisionMatches are empty, and no annotation says when it acts";
    NoActions: "Remedy", "it has no action";
    IncompleteMatch: "Remedy", "a match lacks what it needs";
    InvalidExpiry: "Remedy", "its annotation expires-at is no time";
    InvalidObserveOnly: "Remedy", "its annotation observe-only is neither true nor false";
    InvalidWhen: "Remedy", "its annotation when names no conditions, or its decisionMatches are not empty";
    UnknownStatus: "Remedy", "a match names a status that no condition has";
    ClusterNotFound: "Remedy", "it names a cluster that does not exist";
    ConditionNotFound: "Remedy", "it names a condition that no cluster has";
    UnknownAction: "Remedy", "it has an action that none of our programs carries out";
    RemedyExpired: "Remedy", "its time is over: it counts as deleted";
}

#[cfg(test)]
mod tests {
    use health::SIGNALS;
    use karmada_api::condition;
    use karmada_runtime::events::EventReason;

    use super::*;

    /// The reasons of our conditions are reasons of events.
    #[test]
    fn condition_reasons_are_event_reasons() {
        let of_signals = SIGNALS.map(|signal| [signal.ready_reason, signal.failed_reason]);
        let others = [
            condition::DECLARED_READY_REASON,
            condition::DECLARED_FAILED_REASON,
            condition::REPORTING_REASON,
            condition::INSUFFICIENT_OBSERVATIONS_REASON,
            condition::REPORTER_SILENT_REASON,
        ];
        for reason in of_signals.into_iter().flatten().chain(others) {
            let mut listed = Reason::ALL.iter();
            assert!(listed.any(|listed| listed.as_str() == reason), "{reason}");
        }
    }
}
