//! The reasons of this program's Events.

karmada_runtime::event_reasons! {
    ApplyPolicySucceed: "a template", "its claim or its binding was written";
    GetReplicasSucceed: "a template", "its replicas were read for the first time, or are others";
    GetReplicasFailed: "a template", "the script or webhook that reads its replicas has failed; the note gives the error";
    GetComponentsFailed: "a template", "the script or webhook that reads its components has failed; the note gives the error";
    GetComponentsSucceed: "a template", "its components were read for the first time, or are others";
    PreemptPolicySucceed: "a template", "a policy took it from another one";
    ApplyPolicyFailed: "a template or a policy", "the API refuses the claim or the binding, no name is left for the binding, the policy names a PriorityClass that does not exist, a script that interprets the kind cannot be read, its replicas cannot be read, we have no right to propagate the kinds that the policy selects, or override policies that it depends on do not exist yet";
    InvalidPolicy: "a policy", "it contradicts itself, or is not supported";
    UnknownCluster: "a policy", "it suspends dispatching to clusters that do not exist";
    UnknownKind: "a policy", "it selects kinds that the API does not serve";
    WaitsForTemplate: "a policy", "it is Lazy and was changed: templates follow when they are edited next";
    GetDependenciesSucceed: "a template", "what it refers to was found for the first time, or is something else";
    GetDependenciesFailed: "a template", "a script or webhook that lists what it refers to has failed; the note gives the error";
    SyncScheduleResultToDependenciesSucceed: "a binding", "the bindings of its dependencies were written";
    SyncScheduleResultToDependenciesFailed: "a binding", "the bindings of its dependencies could not be written";
    DependencyPolicyConflict: "the binding of a dependency", "those that refer to it disagree about what is to become of it";
    ApplyOverridePolicySucceed: "a template", "override policies changed its manifest for a cluster";
    ApplyOverridePolicyFailed: "a template", "an override policy cannot be applied, so that its Work stays as it is";
    BindingContested: "a binding and its template", "another client undoes every write to the binding; the note names its field manager, if that can be found out";
    WorkContested: "a binding or a Namespace, and its Work", "another client undoes every write to the Work, or deletes it each time; the note names its field manager, if that can be found out";
    SyncWorkSucceed: "a binding and its template", "its Works were written";
    SyncWorkFailed: "a binding and its template", "its Works could not be written; the note gives the reason";
    AggregateStatusSucceed: "a binding and its template", "the status from the clusters was written to the binding";
    AggregateStatusFailed: "a template", "the script or webhook that puts its status together has failed; the note gives the error";
    InvalidCustomization: "a ResourceInterpreterCustomization or ResourceInterpreterWebhookConfiguration", "a script of it cannot be read, another customization has one for the same operation of the kind, or it is not as it must be";
}
