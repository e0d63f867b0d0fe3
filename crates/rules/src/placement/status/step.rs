//! The steps of a placement on its way into a cluster, and the words for each.

use fleet_api::conditions::{
    APPLIED, AVAILABLE, DIFF_REPORTED, OVERRIDDEN, ROLLOUT_STARTED, WORK_SYNCHRONIZED,
};

/// A step on the way into a cluster.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Step {
    /// The condition of the binding, and of the cluster in the placement's status.
    pub(super) kind: &'static str,
    /// The words while nobody knows.
    pub(super) unknown: Words,
    /// The words if it is not done.
    pub(super) not: Words,
    /// The words once it is done everywhere.
    pub(super) done: Words,
    /// The message for one cluster while nobody knows.
    pub(super) pending: &'static str,
}

/// A reason, and a message around the number of clusters.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Words {
    pub(super) reason: &'static str,
    before: &'static str,
    after: &'static str,
}

impl Words {
    const fn new(reason: &'static str, before: &'static str, after: &'static str) -> Self {
        Self {
            reason,
            before,
            after,
        }
    }

    /// Returns the message about so many clusters.
    pub(super) fn message(&self, clusters: usize) -> String {
        format!("{}{clusters}{}", self.before, self.after)
    }
}

/// The steps where something is written.
pub(super) const WRITING: [Step; 5] = [STARTED, OVERRIDING, SYNCHRONIZING, APPLYING, SERVING];

/// The steps where differences are only reported.
pub(super) const REPORTING: [Step; 4] = [STARTED, OVERRIDING, SYNCHRONIZING, COMPARING];

const STARTED: Step = Step {
    kind: ROLLOUT_STARTED,
    unknown: Words::new(
        "RolloutStartedUnknown",
        "There are still ",
        " cluster(s) in the process of deciding whether to roll out the latest resources or not",
    ),
    not: Words::new(
        "RolloutNotStartedYet",
        "The rollout is being blocked by the rollout strategy in ",
        " cluster(s)",
    ),
    done: Words::new(
        "RolloutStarted",
        "All ",
        " cluster(s) start rolling out the latest resource",
    ),
    pending: "In the process of deciding whether to roll out some version of the resources or not",
};

const OVERRIDING: Step = Step {
    kind: OVERRIDDEN,
    unknown: Words::new(
        "OverriddenPending",
        "There are still ",
        " cluster(s) in the process of overriding the selected resources if there is any override defined",
    ),
    not: Words::new(
        "OverriddenFailed",
        "Failed to override resources in ",
        " cluster(s)",
    ),
    done: Words::new(
        "OverriddenSucceeded",
        "The selected resources are successfully overridden in ",
        " cluster(s)",
    ),
    pending: "In the process of overriding the selected resources if there is any override defined",
};

const SYNCHRONIZING: Step = Step {
    kind: WORK_SYNCHRONIZED,
    unknown: Words::new(
        "WorkSynchronizedUnknown",
        "There are still ",
        " cluster(s) in the process of having their works synchronized",
    ),
    not: Words::new(
        "WorkNotSynchronizedYet",
        "Failed to synchronize the works of ",
        " cluster(s)",
    ),
    done: Words::new(
        "WorkSynchronized",
        "Work(s) are successfully created or updated in ",
        " target cluster(s)' namespaces",
    ),
    pending: "In the process of synchronizing the works",
};

const APPLYING: Step = Step {
    kind: APPLIED,
    unknown: Words::new(
        "ApplyPending",
        "There are still ",
        " cluster(s) in the process of applying the resources",
    ),
    not: Words::new(
        "ApplyFailed",
        "Failed to apply resources to ",
        " cluster(s), please check the `failedPlacements` status",
    ),
    done: Words::new(
        "ApplySucceeded",
        "The selected resources are successfully applied to ",
        " cluster(s)",
    ),
    pending: "In the process of applying the resources",
};

const SERVING: Step = Step {
    kind: AVAILABLE,
    unknown: Words::new(
        "ResourceAvailableUnknown",
        "There are still ",
        " cluster(s) in the process of checking the availability of the resources",
    ),
    not: Words::new(
        "ResourceNotAvailableYet",
        "The selected resources in ",
        " cluster(s) are still not available yet",
    ),
    done: Words::new(
        "ResourceAvailable",
        "The selected resources in ",
        " cluster(s) are available now",
    ),
    pending: "In the process of checking the availability of the resources",
};

const COMPARING: Step = Step {
    kind: DIFF_REPORTED,
    unknown: Words::new(
        "DiffReportingPending",
        "There are still ",
        " cluster(s) in the process of reporting differences",
    ),
    not: Words::new(
        "DiffReportingIncompleteOrFailed",
        "Failed to report differences in ",
        " cluster(s)",
    ),
    done: Words::new(
        "DiffReportingCompleted",
        "Diff reporting in ",
        " cluster(s) has been completed",
    ),
    pending: "In the process of reporting differences",
};
