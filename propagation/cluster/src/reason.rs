//! The reasons of this program's Events, which are Karmada's.

karmada_runtime::event_reasons! {
    ClusterReady: "Cluster", "its condition Ready has become True";
    ClusterNotReady: "Cluster", "its API server answers that it is not healthy";
    ClusterNotReachable: "Cluster", "its API server could not be reached for a while, or, of mode Pull, its programs have fallen silent";
    CreateExecutionSpaceSucceed: "Cluster", "its execution namespace was created";
    RemoveExecutionSpaceSucceed: "Cluster", "its execution namespace was deleted, as the Cluster is";
    ClusterTaskFailed: "Cluster", "what the program does for it beside the probes has ended by a fault of the program, and begins anew a minute later; the log has the fault";
    TaintClusterSucceed: "Cluster", "its taints have changed; the note names them";
}
