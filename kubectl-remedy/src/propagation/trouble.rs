//! The troubles that an object may have in a cluster.

use karmada_api::execution_namespace;
use objects::Key;

use super::command::{made, named, policy};
use super::facts::Facts;

/// A trouble in a cluster, the gravest first.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Trouble {
    /// There is no such cluster.
    NoCluster,
    /// Its Work is not applied, and the member is not ready, as it says.
    Unreachable(String),
    /// Its Work cannot be applied, as it says.
    Failed(String),
    /// Another binding has the Work of its name.
    Taken(Key),
    /// It has no Work.
    NoWork,
    /// Its Work is being deleted.
    Deleting,
    /// Its Work has not been applied as it is now, and says nothing.
    Unapplied,
    /// Nothing is created or changed; true if the cluster is up to date.
    Paused(bool),
    /// Its copy is not healthy.
    Unhealthy,
    /// The member is not ready, as it says, and had been given everything.
    NotReady(String),
    /// It is not to be there any more, and is all the same.
    Unneeded,
}

impl Trouble {
    /// Returns the word by which programs know it.
    pub(super) fn word(&self) -> &'static str {
        match self {
            Self::NoCluster => "ClusterMissing",
            Self::Unreachable(_) => "ClusterUnreachable",
            Self::Failed(_) => "ApplyFailed",
            Self::Taken(_) => "WorkTaken",
            Self::NoWork => "NoWork",
            Self::Deleting => "WorkDeleting",
            Self::Unapplied => "NotApplied",
            Self::Paused(_) => "Paused",
            Self::Unhealthy => "Unhealthy",
            Self::NotReady(_) => "ClusterNotReady",
            Self::Unneeded => "NotNeeded",
        }
    }

    /// Returns `true` if somebody has to act, and it is not merely under way or intended.
    pub(super) fn is_wrong(&self) -> bool {
        matches!(
            self,
            Self::NoCluster | Self::Unreachable(_) | Self::Failed(_) | Self::Taken(_)
        )
    }

    /// Returns it as a sentence about the object in the cluster.
    pub(super) fn sentence(&self, object: &str, cluster: &str) -> String {
        match self {
            Self::NoCluster => format!("{object} is to be in {cluster}, which does not exist"),
            Self::Unreachable(says) => {
                format!("{object} is not applied in {cluster}, which is not ready: {says}")
            }
            Self::Failed(says) => format!("{object} is not applied in {cluster}: {says}"),
            Self::Taken(other) => {
                format!(
                    "{object} has no Work for {cluster}: binding {other} has the one of its name"
                )
            }
            Self::NoWork => format!("{object} has no Work for {cluster} yet"),
            Self::Deleting => {
                format!(
                    "The Work of {object} for {cluster} is being deleted, and makes room for a new one"
                )
            }
            Self::Unapplied => {
                format!("{object} has a Work for {cluster} that nobody has applied yet")
            }
            Self::Paused(true) => {
                format!("{object} is paused in {cluster}, which has all there is to have now")
            }
            Self::Paused(false) => {
                format!("{object} is paused in {cluster}, which does not have it as it is now")
            }
            Self::Unhealthy => format!("{object} is applied in {cluster}, and not healthy there"),
            Self::NotReady(says) => {
                format!("{object} was applied in {cluster}, which is not ready now: {says}")
            }
            Self::Unneeded => format!("{object} is not to be in {cluster} any more"),
        }
    }

    /// Returns the command to run next.
    pub(super) fn next(&self, facts: &Facts, cluster: &str) -> String {
        let work = named(
            "work",
            &Key::new(execution_namespace(cluster), facts.work_name()),
        );
        match self {
            Self::NoCluster => "kubectl get clusters".to_owned(),
            Self::Unreachable(_) | Self::NotReady(_) => {
                format!("kubectl describe cluster/{cluster}")
            }
            Self::Failed(_) | Self::Deleting | Self::Unneeded => format!("kubectl describe {work}"),
            Self::Taken(_) => format!("kubectl get {work} -o yaml"),
            Self::NoWork => format!("kubectl describe {}", made(facts)),
            Self::Unapplied => "kubectl get leases -n karmada-system".to_owned(),
            Self::Paused(_) => {
                let claim = facts.claimed();
                let paused = claim.map_or_else(|| made(facts), |claim| policy(&claim.policy()));
                format!("kubectl get {paused} -o jsonpath={{.spec.suspension}}")
            }
            Self::Unhealthy => {
                format!("kubectl get {work} -o jsonpath={{.status.manifestStatuses}}")
            }
        }
    }
}
