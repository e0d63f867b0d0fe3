//! KubeFleet's API as Rust types: placements, their snapshots and bindings, Works, and the clusters of a fleet.
//!
//! The fields of a type stand in the order of KubeFleet's: snapshots carry hashes of their JSON, in which that
//! order counts, so that a fleet that changes hands keeps its snapshots.
//!
//! - [`policy`]: which clusters a placement is for.
//! - [`placement`]: the user's placement, its strategy, and its status.
//! - [`snapshot`]: the selection of a placement, and its policy, as they were at one moment.
//! - [`binding`]: a placement on one cluster.
//! - [`work`]: the manifests for one cluster, and in that cluster the owner of their objects.
//! - [`envelope`]: objects that have no effect on the hub.
//! - [`eviction`]: placements that are to leave a cluster, and how many may at a time.
//! - [`overrides`]: the differences between clusters.
//! - [`update`]: updates of clusters stage by stage, and the approvals that they wait for.
//! - [`member`]: the clusters; [`cluster_profile`]: as programs of any fleet read them.
//! - [`conditions`]: the conditions of bindings and Works.
//! - [`definitions()`]: their `CustomResourceDefinition`s.
//! - [`names`]: the labels, annotations and finalizers that tie these together.

pub mod binding;
pub mod cluster_profile;
pub mod conditions;
mod definitions;
pub mod envelope;
pub mod eviction;
pub mod member;
pub mod names;
pub mod overrides;
pub mod placement;
pub mod policy;
pub mod snapshot;
pub mod update;
pub mod work;

pub use binding::Binding;
pub use cluster_profile::ClusterProfile;
pub use definitions::definitions;
pub use envelope::{ClusterResourceEnvelope, ResourceEnvelope};
pub use eviction::{ClusterResourcePlacementDisruptionBudget, ClusterResourcePlacementEviction};
pub use member::{InternalMemberCluster, MemberCluster};
pub use overrides::{
    ClusterResourceOverride, ClusterResourceOverrideSnapshot, ResourceOverride,
    ResourceOverrideSnapshot,
};
pub use placement::{ClusterResourcePlacementStatus, Placement};
pub use snapshot::{PolicySnapshot, ResourceSnapshot};
pub use update::{ApprovalRequest, StagedUpdateRun, StagedUpdateStrategy};
pub use work::{AppliedWork, Work};
