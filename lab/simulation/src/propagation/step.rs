//! The changes of a sequence: to objects and members.

use super::objects::Template;
use super::programs::Role;
use crate::harness;

/// A step of a sequence.
pub type Step = harness::Step<Change, Role>;

/// A change by users and others.
#[derive(Clone, Debug, PartialEq, Eq)]
#[expect(missing_docs, reason = "the variants explain their fields")]
pub enum Change {
    /// A template is created or changed; a change may take away the labels and annotations of others.
    PutTemplate {
        template: Template,
        version: u8,
        wipes: bool,
    },
    /// A template is deleted.
    DeleteTemplate { template: Template },
    /// A policy is created or replaced.
    PutPolicy { policy: u8, shape: PolicyShape },
    /// Only the suspension of a policy changes.
    Pause { policy: u8, pause: Pause },
    /// A policy is deleted.
    DeletePolicy { policy: u8 },
    /// Somebody asks for a template to be scheduled anew.
    Reschedule { template: Template },
    /// An override policy labels the copies of one template in some clusters, as bits.
    PutOverride {
        of_cluster: bool,
        template: Template,
        clusters: u8,
        value: u8,
    },
    /// An override policy is deleted.
    DeleteOverride { of_cluster: bool },
    /// A cluster joins a region with an empty member, or is moved to another.
    Join { cluster: u8, region: u8 },
    /// A Cluster gets a taint in place of the one it may have, or loses that.
    Taint {
        cluster: u8,
        effect: Option<TaintEffect>,
    },
    /// A Cluster has room for so many pods.
    Room { cluster: u8, pods: u8 },
    /// A Cluster is deleted.
    Leave { cluster: u8 },
    /// Somebody in a member changes or deletes a copy.
    ChangeCopy {
        cluster: u8,
        template: Template,
        deletes: bool,
    },
    /// Somebody deletes the Work of a template in a cluster.
    DeleteWork { cluster: u8, template: Template },
    /// Somebody deletes the binding of a template.
    DeleteBinding { template: Template },
    /// The scheduler starts again, and returns workloads to earlier groups of clusters or does not.
    FailBack { is_on: bool },
    /// The API of the fleet becomes that of a later version, which shows Deployments with a further default.
    Upgrade,
}

/// The spec of a policy.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PolicyShape {
    /// The templates, each with the way in which it is selected.
    pub selects: Vec<(Template, By)>,
    /// The priority.
    pub priority: u8,
    /// Set if it takes templates of other policies. It selects by name then, as the API demands.
    pub preempts: bool,
    /// The clusters.
    pub affinity: Affinity,
    /// The bounds of the number of clusters that are used.
    pub spread: Spread,
    /// The division of replicas between the clusters.
    pub division: Division,
    /// The toleration of the taints of clusters for which workloads leave.
    pub tolerates: Toleration,
    /// The way in which copies leave a cluster for its taints.
    pub purge: Purge,
    /// Set if the objects to which its templates refer follow them.
    pub has_dependencies: bool,
    /// The pause.
    pub pause: Pause,
    /// Set if its templates follow it only once they are edited.
    pub is_lazy: bool,
}

impl PolicyShape {
    /// Returns an immediate policy of some kinds of templates in every cluster.
    pub fn of_kinds(templates: &[Template]) -> Self {
        let by_kind = templates.iter().map(|template| (*template, By::Kind));
        Self {
            selects: by_kind.collect(),
            priority: 0,
            preempts: false,
            affinity: Affinity::All,
            spread: Spread::No,
            division: Division::None,
            tolerates: Toleration::No,
            purge: Purge::Gracefully,
            has_dependencies: false,
            pause: Pause::No,
            is_lazy: false,
        }
    }
}

/// The way in which a policy selects templates of a kind.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[expect(missing_docs, reason = "each is a field of a selector, or none")]
pub enum By {
    Name,
    Label,
    Kind,
}

/// The clusters of a policy.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Affinity {
    /// Every cluster.
    All,
    /// Some by their names, as bits.
    Names(u8),
    /// Those of a region, by a label.
    Region(u8),
    /// The first of two groups that fits, each some clusters by their names, as bits.
    Groups([u8; 2]),
}

/// The bounds of the number of clusters that are used, each the least and the greatest number.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Spread {
    /// None.
    No,
    /// The clusters.
    Clusters([u8; 2]),
    /// Their regions, and the clusters.
    Regions([u8; 2], [u8; 2]),
}

/// The division of replicas between clusters.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Division {
    /// Each has all.
    None,
    /// By the weight of each.
    Weights([u8; 3]),
    /// By their room: among all that have some, or among as few as suffice.
    Room {
        /// Set if it is as few as suffice.
        aggregated: bool,
    },
}

/// The way in which copies leave a cluster for its taints.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Purge {
    /// Once others are healthy.
    Gracefully,
    /// Before there are others.
    Directly,
}

/// The toleration of a policy for taints.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[expect(missing_docs, reason = "each is a duration")]
pub enum Toleration {
    No,
    Seconds(u8),
    Forever,
}

/// The effect of a taint.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[expect(missing_docs, reason = "they are Kubernetes'")]
pub enum TaintEffect {
    NoSchedule,
    NoExecute,
}

/// The suspension of a policy.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Pause {
    /// None.
    No,
    /// On every cluster.
    Whole,
    /// On some clusters, as bits.
    On(u8),
}
