//! The reasons of this program's Events.

karmada_runtime::event_reasons! {
    WorkDispatching: "Work", "its condition Dispatching has changed: a pause began or ended";
    SyncSucceed: "Work", "its manifests were applied, after they were not";
    SyncFailed: "Work", "a manifest could not be applied; the note gives the reason";
    ReflectStatusSucceed: "Work", "the status of an object was read from the member for the first time, or is another";
    ReflectStatusFailed: "Work", "the script or webhook that reads the status of an object has failed; the note gives the error";
    InterpretHealthFailed: "Work", "the script or webhook that reads the health of an object has failed; the note gives the error";
    InterpretHealthSucceed: "Work", "the health of an object is known for the first time, or has changed";
    MemberObjectContested: "Work", "another client in the member changes an object back after each of our writes; the note names the member and the client's field manager, if that can be found out";
    EndpointSliceWithheld: "Work", "with --block-multicluster-services, a slice of a blocked cluster was taken out of the member; the note names both";
    EndpointSliceReleased: "Work", "its slices are in the member again, as their cluster is blocked no longer or no other serves the Service; the note tells which";
    MemberTaskFailed: "Cluster", "the objects in the cluster are not watched any more by a fault of the program, and are again a minute later; the log has the fault";
    CollectEndpointsFailed: "ServiceExport", "the endpoints of the Service cannot be collected from a cluster, or not be written; the note gives the reason";
    EndpointsNotOurs: "ServiceExport", "another program, such as a Karmada, collects the endpoints of the Service from a cluster, and they are left to it";
    DeriveServiceFailed: "ServiceImport", "the API refuses the Service that stands for the import; the note gives its reason";
}
