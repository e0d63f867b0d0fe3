//! The writes for a cluster of the fleet.

use fleet_api::InternalMemberCluster;
use k8s_openapi::api::core::v1::Namespace;
use k8s_openapi::api::rbac::v1::{Role, RoleBinding};
use serde_json::Value;

/// How an object is brought up to date.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Change<K> {
    /// It is created.
    Create(Box<K>),
    /// It is patched, by a merge patch.
    Patch(Value),
}

/// A write for a cluster of the fleet.
#[derive(Clone, Debug, PartialEq)]
pub enum MembershipWrite {
    /// The merge patch of the cluster itself, guarded.
    Cluster(Value),
    /// Its namespace.
    Namespace(Change<Namespace>),
    /// The Role of its agent.
    Role(Change<Role>),
    /// The `RoleBinding` of its agent.
    RoleBinding(Change<RoleBinding>),
    /// Its channel.
    Channel(Change<InternalMemberCluster>),
    /// The Work of this name waits for its agent no longer.
    ReleaseWork(String),
    /// Its namespace goes.
    DeleteNamespace {
        /// The uid of the namespace.
        uid: String,
    },
    /// The merge patch of its status, guarded.
    Status(Value),
}
