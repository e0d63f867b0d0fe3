//! The reasons of this program's Events.

karmada_runtime::event_reasons! {
    PlacementRolloutStarted: "a placement", "every cluster gets its latest snapshot";
    PlacementOverriddenSucceeded: "a placement", "the overrides are applied for every cluster, or there are none";
    PlacementWorkSynchronized: "a placement", "the Works of every cluster have its latest snapshot";
    PlacementApplied: "a placement", "every cluster has applied them";
    PlacementAvailable: "a placement", "what was applied is available in every cluster";
    PlacementDiffReported: "a placement", "every cluster has reported in what it differs, and nothing is written";
    PlacementRolloutStuck: "a placement", "what some cluster has does not become available; the note says where and what";
    PlacementRolloutCompleted: "a placement", "all of this is so, in as many clusters as it asks for";
    OverrideRefused: "an override", "it contradicts itself, changes what makes an object this one, has an object that another override had before, or cannot be snapshotted; what it said before that goes on";
    OverrideWaitsForRollout: "an override", "it was written and names no placement, so that it goes out with the next rollout of each placement of its objects";
    OverriddenPlacementUnknown: "an override", "a minute after it was written the placement that it names is not there";
}
