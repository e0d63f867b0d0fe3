//! The reasons of this program's Events.

karmada_runtime::event_reasons! {
    PlacementRolloutStarted: "a placement", "every cluster gets its latest snapshot";
    PlacementOverriddenSucceeded: "a placement", "the overrides are applied for every cluster, or there are none";
    PlacementWorkSynchronized: "a placement", "the Works of every cluster have its latest snapshot";
    PlacementApplied: "a placement", "every cluster has applied them";
    PlacementAvailable: "a placement", "what was applied is available in every cluster";
    PlacementDiffReported: "a placement", "every cluster has reported in what it differs, and nothing is written";
    PlacementRolloutStuck: "a placement", "what some cluster has does not become available; the note says where and what";
    PlacementSelectsNothing: "a placement", "a selector selects nothing; the note says which";
    PlacementRolloutCompleted: "a placement", "all of this is so, in as many clusters as it asks for";
    UpdateRunInitialized: "a run", "its stages are known, and a state of Run starts it";
    UpdateRunInitializedFailed: "a run", "it can never begin; the note says why";
    UpdateRunWaiting: "a run", "it waits for a time, or for an approval, before or after a stage";
    UpdateRunStuck: "a run", "a cluster does not become ready for 5 minutes; the note says where and what";
    UpdateRunStopped: "a run", "it was to stop, and no cluster is being updated any more";
    UpdateRunSucceeded: "a run", "every cluster has its snapshot, and those that are no longer picked have nothing";
    UpdateRunFailed: "a run", "it cannot go on; the note says why, and another run is needed";
    OverrideRefused: "an override", "it contradicts itself, changes what makes an object this one, has an object that another override had before, or cannot be snapshotted; what it said before that goes on";
    OverrideWaitsForRollout: "an override", "it was written and names no placement, so that it goes out with the next rollout of each placement of its objects";
    OverriddenPlacementUnknown: "an override", "a minute after it was written the placement that it names is not there";
}
