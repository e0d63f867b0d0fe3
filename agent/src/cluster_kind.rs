//! The kind of object that stands for this member cluster where it reports.

use fleet_api::MemberCluster;
use fleet_api::names::{cluster_of_member_namespace, member_namespace};
use karmada_api::{Cluster, cluster_of_execution_namespace, execution_namespace};
use kube::api::ApiResource;

/// The kind of object that stands for a member cluster.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, clap::ValueEnum)]
#[value(rename_all = "PascalCase")]
pub(crate) enum ClusterKind {
    /// Of a Karmada, or a fleet without one
    #[default]
    Cluster,
    /// Of the hub of a KubeFleet, or of our placements
    MemberCluster,
}

impl ClusterKind {
    /// Returns the kind as the API has it.
    pub(crate) fn resource(self) -> ApiResource {
        match self {
            Self::Cluster => ApiResource::erase::<Cluster>(&()),
            Self::MemberCluster => ApiResource::erase::<MemberCluster>(&()),
        }
    }

    /// Returns the namespace of what belongs to a cluster there.
    pub(crate) fn namespace(self, cluster: &str) -> String {
        match self {
            Self::Cluster => execution_namespace(cluster),
            Self::MemberCluster => member_namespace(cluster),
        }
    }

    /// Returns the kind and the name of the cluster to which a namespace there belongs, if it does to one.
    pub(crate) fn of_namespace(namespace: &str) -> Option<(Self, &str)> {
        let cluster = cluster_of_execution_namespace(namespace).map(|name| (Self::Cluster, name));
        let member = || Some((Self::MemberCluster, cluster_of_member_namespace(namespace)?));
        cluster.or_else(member)
    }
}
