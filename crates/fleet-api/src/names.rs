//! Labels, annotations and finalizers of KubeFleet's, and the names of the objects of one cluster.

/// The label of everything that a placement made: the placement's name.
pub const PARENT_PLACEMENT: &str = "kubernetes-fleet.io/parent-CRP";
/// The label of a snapshot: `true` on the latest.
pub const IS_LATEST: &str = "kubernetes-fleet.io/is-latest-snapshot";
/// The label of a policy snapshot: its index.
pub const POLICY_INDEX: &str = "kubernetes-fleet.io/policy-index";
/// The label of a resource snapshot: the index of its group.
pub const RESOURCE_INDEX: &str = "kubernetes-fleet.io/resource-index";
/// The label of a snapshot of an override: the override's name.
pub const PARENT_OVERRIDE: &str = "kubernetes-fleet.io/parent-resource-override";
/// The label of a snapshot of an override: its index.
pub const OVERRIDE_INDEX: &str = "kubernetes-fleet.io/override-index";
/// The label of a Work: the binding that it is of.
pub const PARENT_BINDING: &str = "kubernetes-fleet.io/parent-resource-binding";
/// The label of a Work: the namespace of the binding that it is of, if that has one.
pub const PARENT_NAMESPACE: &str = "kubernetes-fleet.io/parent-placement-namespace";
/// The label of a Work: the index of the snapshot that it is of.
pub const PARENT_SNAPSHOT_INDEX: &str = "kubernetes-fleet.io/parent-resource-snapshot-index";
/// The label of a member cluster, and of its namespace: the cluster's name.
pub const MEMBER_NAME: &str = "kubernetes-fleet.io/member-name";
/// The label of a namespace that belongs to the fleet itself.
pub const IS_FLEET_RESOURCE: &str = "kubernetes-fleet.io/is-fleet-resource";

/// The annotation of a policy snapshot: the placement's generation that it was last brought up to.
pub const PLACEMENT_GENERATION: &str = "kubernetes-fleet.io/CRP-generation";
/// The annotation of a policy snapshot: the number of clusters to pick.
pub const NUMBER_OF_CLUSTERS: &str = "kubernetes-fleet.io/number-of-clusters";
/// The annotation of the master of a group of resource snapshots: the hash of the whole content.
pub const RESOURCE_HASH: &str = "kubernetes-fleet.io/resource-hash";
/// The annotation of a master: the number of its group's snapshots.
pub const NUMBER_OF_SNAPSHOTS: &str = "kubernetes-fleet.io/number-of-resource-snapshots";
/// The annotation of a master: the number of envelopes in its group.
pub const NUMBER_OF_ENVELOPES: &str = "kubernetes-fleet.io/number-of-enveloped-object";
/// The annotation of a snapshot that is not the master: its place among those of its group.
pub const PART_INDEX: &str = "kubernetes-fleet.io/subindex-of-resource-snapshot";
/// The annotation of an unscheduled binding: the state that it had before.
pub const PREVIOUS_STATE: &str = "kubernetes-fleet.io/previous-binding-state";
/// The annotation of an eviction, ours: the uid of the binding that it deletes.
pub const EVICTED_BINDING: &str = "kubernetes-fleet.io/evicted-binding";
/// The annotation of a binding, ours: the digest of the results of its overrides in its cluster, as the rollout gave it.
pub const OVERRIDES_DIGEST: &str = "kubernetes-fleet.io/overrides-digest";
/// The annotation of a Work: the master of the group of snapshots that it is of.
pub const PARENT_SNAPSHOT_NAME: &str = "kubernetes-fleet.io/parent-resource-snapshot-name";
/// The annotation of a Work: the hash of the names of the cluster-scoped overrides in it.
pub const CLUSTER_OVERRIDES_HASH: &str =
    "kubernetes-fleet.io/parent-cluster-resource-override-snapshot-hash";
/// The annotation of a Work: the hash of the names of the namespaced overrides in it.
pub const OVERRIDES_HASH: &str = "kubernetes-fleet.io/parent-resource-override-snapshot-hash";

/// The label of an approval request: the run that waits for it.
pub const TARGET_RUN: &str = "kubernetes-fleet.io/targetUpdateRun";
/// The label of an approval request: the stage of the run.
pub const TARGET_STAGE: &str = "kubernetes-fleet.io/targetUpdatingStage";
/// The label of an approval request: [`BEFORE_STAGE`] or [`AFTER_STAGE`].
pub const TASK_TYPE: &str = "kubernetes-fleet.io/taskType";
/// The value of [`TASK_TYPE`] on a request that the first cluster of a stage waits for.
pub const BEFORE_STAGE: &str = "beforeStage";
/// The value of [`TASK_TYPE`] on a request that the next stage waits for.
pub const AFTER_STAGE: &str = "afterStage";
/// The label of an approval request: `true`.
pub const IS_LATEST_APPROVAL: &str = "kubernetes-fleet.io/isLatestUpdateRunApproval";
/// The name of the last stage of every run.
pub const DELETION_STAGE: &str = "kubernetes-fleet.io/deleteStage";

/// The label of a Work that an envelope became: the kind of the envelope.
pub const ENVELOPE_TYPE: &str = "kubernetes-fleet.io/envelope-work";
/// The label of such a Work: the name of the envelope.
pub const ENVELOPE_NAME: &str = "kubernetes-fleet.io/envelope-name";
/// The label of such a Work: the namespace of the envelope, if it has one.
pub const ENVELOPE_NAMESPACE: &str = "kubernetes-fleet.io/envelope-namespace";
/// The annotation of a `ConfigMap` that is an envelope: `true`.
pub const ENVELOPE_CONFIG_MAP: &str = "kubernetes-fleet.io/envelope-configmap";

/// The annotation of an object in a member: the hash of the manifest that was written last.
pub const SPEC_HASH: &str = "kubernetes-fleet.io/spec-hash";
/// The annotation of an object in a member, ours: the placement that it is of.
pub const PLACEMENT: &str = "kubernetes-fleet.io/placement";

/// The finalizer of a placement, until its snapshots are gone.
pub const PLACEMENT_FINALIZER: &str = "kubernetes-fleet.io/crp-cleanup";
/// The finalizer of a placement, until its bindings are gone.
pub const PLACEMENT_SCHEDULER_FINALIZER: &str = "kubernetes-fleet.io/scheduler-cleanup";
/// The finalizer of a binding, until its scheduler lets it go.
pub const BINDING_SCHEDULER_FINALIZER: &str = "kubernetes-fleet.io/scheduler-crb-cleanup";
/// The finalizer of a binding until its Works are gone, and of a Work until its objects are.
pub const WORK_FINALIZER: &str = "kubernetes-fleet.io/work-cleanup";
/// The finalizer of a run, until its approval requests are gone.
pub const UPDATE_RUN_FINALIZER: &str = "kubernetes-fleet.io/stagedupdaterun-finalizer";
/// The finalizer of an override, until its snapshots are gone.
pub const OVERRIDE_FINALIZER: &str = "kubernetes-fleet.io/override-cleanup";
/// The finalizer of a member cluster, until it has left.
pub const MEMBER_FINALIZER: &str = "kubernetes-fleet.io/membercluster-finalizer";
/// The property of a cluster: the average price of a core for an hour.
pub const CORE_COST_PROPERTY: &str = "kubernetes.azure.com/per-cpu-core-cost";
/// The property of a cluster: the average price of a GiB of memory for an hour.
pub const MEMORY_COST_PROPERTY: &str = "kubernetes.azure.com/per-gb-memory-cost";
/// The text before the type of an instance in the property that counts the nodes of that type, which ends in `/count`.
pub const INSTANCES_PROPERTY: &str = "kubernetes.azure.com/vm-sizes/";
/// The property of a cluster: the version of its Kubernetes.
pub const VERSION_PROPERTY: &str = "k8s.io/k8s-version";
/// The property of a cluster: the URL of its API, as others reach it.
pub const ENTRYPOINT_PROPERTY: &str = "k8s.io/cluster-entrypoint";
/// The property of a cluster: the certificates by which its API is known, as PEM.
pub const AUTHORITY_PROPERTY: &str = "k8s.io/cluster-certificate-authority-data";

/// The finalizer of a member cluster by KubeFleet's controller of cluster profiles, which nobody else takes off
/// where that is gone.
pub const PROFILE_FINALIZER: &str = "kubernetes-fleet.io/cluster-profile-cleanup";

/// Returns the namespace on the hub that belongs to the member cluster `cluster`.
pub fn member_namespace(cluster: &str) -> String {
    format!("{MEMBER_NAMESPACE_PREFIX}{cluster}")
}

/// Returns the name of the Role in that namespace by which the agent of `cluster` reads and writes there.
pub fn member_role(cluster: &str) -> String {
    format!("fleet-role-{cluster}")
}

/// Returns the name of the `RoleBinding` by which the agent of `cluster` has that Role.
pub fn member_role_binding(cluster: &str) -> String {
    format!("fleet-rolebinding-{cluster}")
}

/// Returns the member cluster to which `namespace` belongs, if it is that of one.
pub fn cluster_of_member_namespace(namespace: &str) -> Option<&str> {
    let cluster = namespace.strip_prefix(MEMBER_NAMESPACE_PREFIX);
    cluster.filter(|cluster| !cluster.is_empty())
}

const MEMBER_NAMESPACE_PREFIX: &str = "fleet-member-";
