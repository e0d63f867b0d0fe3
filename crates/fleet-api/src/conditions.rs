//! The conditions of placements, bindings and Works, and the reasons on which something is decided.

use super::Placement;
use objects::Scope;

/// The condition of a policy snapshot, of a placement, after its kind, and of each of its clusters: True once clusters are
/// found as the policy asks for.
pub const SCHEDULED: &str = "Scheduled";
/// The condition of a placement, ours, after its kind: True while it is being deleted. Of a Work: True while something in its
/// member holds the objects that it gives up.
pub const REMOVING: &str = "Removing";

/// The condition of a placement, after its kind: True once its status can be read in the namespace that it places.
pub const STATUS_SYNCED: &str = "StatusSynced";

/// The condition of a binding: True once its cluster is to have the latest snapshot.
pub const ROLLOUT_STARTED: &str = "RolloutStarted";
/// The reason of a False [`ROLLOUT_STARTED`]: the budget does not allow it yet.
pub const ROLLOUT_NOT_STARTED: &str = "RolloutNotStartedYet";
/// The reason of a False condition of a placement: the objects in some cluster do not become available. KubeFleet has none
/// for this.
pub const ROLLOUT_STUCK: &str = "RolloutStuck";
/// The condition of a binding: True once overrides are applied to the objects for its cluster.
pub const OVERRIDDEN: &str = "Overridden";
/// The reason of a True [`OVERRIDDEN`]: there are none.
pub const NO_OVERRIDE: &str = "NoOverrideSpecified";
/// The condition of a binding: True once its Works have the objects for its cluster.
pub const WORK_SYNCHRONIZED: &str = "WorkSynchronized";
/// The condition of bindings, Works and manifests: True once the member has everything.
pub const APPLIED: &str = "Applied";
/// The condition of bindings, Works and manifests: True once everything does its work.
pub const AVAILABLE: &str = "Available";
/// The condition of bindings, Works and manifests: True once differences are reported, where nothing is written.
pub const DIFF_REPORTED: &str = "DiffReported";
/// The condition of a binding, ours: True once it was available. KubeFleet's own have none.
pub const BEEN_AVAILABLE: &str = "BeenAvailable";

/// The condition of a binding, ours: True once its Works are made by its overrides. The message is the digest of their
/// results.
pub const OVERRIDES_RENDERED: &str = "OverridesRendered";
/// The condition of a Work: True if details of its manifests are left out, for it would be too large.
pub const STATUS_TRIMMED: &str = "StatusTrimmed";

/// The condition of a manifest, ours: True once its Job has done its work, so that its member may delete it. The message
/// is the hash of the manifest that the Job is of.
pub const FINISHED: &str = "Finished";

/// The reason of a False [`APPLIED`] of a binding: the member has not answered yet.
pub const APPLY_IN_PROGRESS: &str = "ApplyInProgress";
/// The reason of a False [`DIFF_REPORTED`] of a binding: the member has not answered yet.
pub const DIFF_REPORT_IN_PROGRESS: &str = "DiffReportInProgress";
/// The reason of a False [`APPLIED`] of a manifest: it is about to be applied.
pub const PREPARING: &str = "PreparingToProcess";
/// The reason of a True [`AVAILABLE`] of a binding: for some objects nobody can say.
pub const UNTRACKABLE: &str = "NotAllWorkAreAvailabilityTrackable";
/// The reason of a False [`AVAILABLE`] of a manifest, ours: its controller has given up.
pub const PROGRESS_DEADLINE_EXCEEDED: &str = "ProgressDeadlineExceeded";
/// The reason of a True [`AVAILABLE`] of a Work: for some objects nobody can say.
pub const WORK_NOT_TRACKABLE: &str = "WorkNotTrackable";

/// The condition of a cluster whose agent tells of its namespaces: True while these are all that it has.
pub const NAMESPACES_COLLECTED: &str = "NamespaceCollectionSucceeded";
/// The condition of a cluster whose agent tells the costs of its nodes: True if it knows the price of one at least.
pub const COSTS_COLLECTED: &str = "AKSClusterCostPropertiesCollectionSucceeded";

/// The condition of a cluster, ours: True while a Remedy requires the action of this name. KubeFleet has no actions.
pub const TRAFFIC_CONTROL: &str = "TrafficControl";

/// Returns the type of a condition of a placement: those of bindings, said of all of its clusters, follow its kind.
pub fn of_placement(scope: Scope, condition: &str) -> String {
    format!("{}{condition}", Placement::kind_of(scope))
}

/// The condition of a run: True once its stages are told, False for good if they cannot be.
pub const INITIALIZED: &str = "Initialized";
/// The condition of a run and of a stage: True while it goes on by itself.
pub const PROGRESSING: &str = "Progressing";
/// The condition of a run, of a stage and of a cluster in it: how it has ended.
pub const SUCCEEDED: &str = "Succeeded";
/// The condition of a cluster in a stage: True once it is given the snapshot of the run.
pub const STARTED: &str = "Started";
/// The condition of a task: True once its approval request exists.
pub const APPROVAL_REQUEST_CREATED: &str = "ApprovalRequestCreated";
/// The condition of a task: True once a person has approved it.
pub const APPROVAL_REQUEST_APPROVED: &str = "ApprovalRequestApproved";
/// The condition of a task: True once its time is over.
pub const WAIT_TIME_ELAPSED: &str = "WaitTimeElapsed";
/// The condition of an approval request: True if a person approves it.
pub const APPROVED: &str = "Approved";
/// The condition of an approval request: True once the run has taken the approval up.
pub const APPROVAL_ACCEPTED: &str = "ApprovalAccepted";
/// The reason of a False [`PROGRESSING`] of a run: it waits for a task of a stage.
pub const RUN_WAITING: &str = "UpdateRunWaiting";
/// The reason of a False [`PROGRESSING`] of a run: a cluster does not become available.
pub const RUN_STUCK: &str = "UpdateRunStuck";
/// The reason of a False [`PROGRESSING`] of a run: it was stopped.
pub const RUN_STOPPED: &str = "UpdateRunStopped";
