//! The facts that decide about a cluster of the fleet on its hub.

use fleet_api::{InternalMemberCluster, MemberCluster};
use jiff::{SignedDuration, Timestamp};
use k8s_openapi::api::rbac::v1::{Role, RoleBinding};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;

use objects::condition_taint::ConditionTaint;

/// Everything that decides about a cluster of the fleet on its hub.
#[derive(Clone, Copy, Debug)]
pub struct MembershipFacts<'a> {
    /// The cluster.
    pub cluster: &'a MemberCluster,
    /// Its namespace.
    pub namespace: Option<&'a ObjectMeta>,
    /// The Role of its agent.
    pub role: Option<&'a Role>,
    /// The `RoleBinding` of its agent.
    pub role_binding: Option<&'a RoleBinding>,
    /// Its channel.
    pub channel: Option<&'a InternalMemberCluster>,
    /// Those of its Works that wait for its agent.
    pub waiting_works: &'a [&'a ObjectMeta],
    /// The taints that clusters have for their conditions.
    pub condition_taints: &'a [ConditionTaint],
    /// The time after which a cluster that leaves is no longer waited for.
    pub force_after: SignedDuration,
    /// The time.
    pub now: Timestamp,
}
