//! The kind of object that stands for a member cluster in the API of its fleet.

use std::fmt;
use std::str::FromStr;

use fleet_api::MemberCluster;
use fleet_api::names::{cluster_of_member_namespace, member_namespace};
use karmada_api::{Cluster, cluster_of_execution_namespace, execution_namespace};
use kube::core::ApiResource;

/// The kind of object that stands for a member cluster.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum ClusterKind {
    /// That of a Karmada, or of a fleet without one.
    #[default]
    Cluster,
    /// That of the hub of a KubeFleet, or of our placements.
    MemberCluster,
}

/// The error for a text that is no [`ClusterKind`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct InvalidClusterKind;

impl fmt::Display for InvalidClusterKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("must be Cluster or MemberCluster")
    }
}

impl std::error::Error for InvalidClusterKind {}

impl FromStr for ClusterKind {
    type Err = InvalidClusterKind;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        match text {
            "Cluster" => Ok(Self::Cluster),
            "MemberCluster" => Ok(Self::MemberCluster),
            _ => Err(InvalidClusterKind),
        }
    }
}

impl ClusterKind {
    /// Returns the kind as the API has it.
    pub fn resource(self) -> ApiResource {
        match self {
            Self::Cluster => ApiResource::erase::<Cluster>(&()),
            Self::MemberCluster => ApiResource::erase::<MemberCluster>(&()),
        }
    }

    /// Returns the namespace of the programs that serve such clusters.
    pub fn system_namespace(self) -> &'static str {
        match self {
            Self::Cluster => "karmada-system",
            Self::MemberCluster => "fleet-system",
        }
    }

    /// Returns the namespace of the objects that belong to a cluster there.
    pub fn namespace(self, cluster: &str) -> String {
        match self {
            Self::Cluster => execution_namespace(cluster),
            Self::MemberCluster => member_namespace(cluster),
        }
    }

    /// Returns the kind and the name of the cluster to which a namespace there belongs, if it does to one.
    pub fn of_namespace(namespace: &str) -> Option<(Self, &str)> {
        let cluster = cluster_of_execution_namespace(namespace).map(|name| (Self::Cluster, name));
        let member = cluster_of_member_namespace(namespace).map(|name| (Self::MemberCluster, name));
        cluster.or(member)
    }
}
