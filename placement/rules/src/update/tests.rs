mod history;
mod world;

use fleet_api::update::RunState;
use serde_json::{from_value, json};

use super::*;
use world::World;

/// Returns the status and the reason of a condition.
fn told(conditions: &[Condition], kind: &str) -> String {
    let said = find(conditions, kind);
    said.map_or_else(String::new, |one| format!("{} {}", one.status, one.reason))
}

fn last(world: &World) -> Condition {
    said(&world.status()).unwrap().clone()
}

/// Case F80: three stages with an approval and a wait after the first, and an approval before the second: each cluster gets the
/// snapshot when it is its turn, and the run says why it waits.
#[test]
fn stages_follow_each_other() {
    let mut world = World::of_six();
    world.start("go", "");
    world.settle();
    assert_eq!(world.with("web-0-snapshot"), ["c1"]);
    world.serve();
    assert_eq!(world.with("web-0-snapshot"), ["c1", "c2"]);
    let waits = last(&world);
    assert_eq!(
        (&*waits.reason, &*waits.message),
        (
            "UpdateRunWaiting",
            "The updateRun is waiting for after-stage tasks in stage canary to complete"
        )
    );
    assert_eq!(
        world.plan(0).wake_at,
        Some(world.now() + jiff::SignedDuration::from_mins(1))
    );
    assert!(world.answer("go-after-canary", true));
    world.serve();
    // Approved, but the minute is not over.
    assert_eq!(world.with("web-0-snapshot"), ["c1", "c2"]);
    world.seconds += 60;
    world.serve();
    let stage = world.stage("canary");
    assert_eq!(
        told(&stage.conditions, "Succeeded"),
        "True StageUpdatingSucceeded"
    );
    assert_eq!(
        told(&world.stage("staging").conditions, "Progressing"),
        "False StageUpdatingWaiting"
    );
    assert_eq!(world.with("web-0-snapshot"), ["c1", "c2"]);
    assert!(world.answer("go-before-staging", true));
    world.settle();
    assert_eq!(world.with("web-0-snapshot"), ["c1", "c2", "s1", "s2"]);
    world.report_all(true);
    world.settle();
    // By their labels, the second is the first.
    assert_eq!(world.with("web-0-snapshot"), ["c1", "c2", "p2", "s1", "s2"]);
    world.serve();
    assert_eq!(last(&world).reason, "UpdateRunSucceeded");
    assert_eq!(world.with("web-0-snapshot").len(), 6);
    let deletion = world.status().deletion_stage.unwrap();
    assert_eq!(
        told(&deletion.conditions, "Succeeded"),
        "True StageUpdatingSucceeded"
    );
    assert_eq!(world.plan(0), UpdatePlan::default());
}

/// Case F80: its stages are told at once, and nothing is done before it is started.
#[test]
fn initialized_run_waits() {
    let mut world = World::of_six();
    world.start("go", "0");
    world.runs[0].spec.state = RunState::Initialize;
    world.settle();
    let status = world.status();
    assert_eq!(
        told(&status.conditions, "Initialized"),
        "True UpdateRunInitializedSuccessfully"
    );
    let clusters = status.stages.iter().map(|stage| stage.clusters.len());
    assert_eq!(clusters.collect::<Vec<_>>(), [2, 2, 2]);
    assert_eq!(
        (
            &*status.resource_snapshot_index_used,
            status.policy_observed_cluster_count
        ),
        ("0", 6)
    );
    assert!(world.with("web-0-snapshot").is_empty());
    world.want(RunState::Run);
    world.settle();
    assert_eq!(world.with("web-0-snapshot"), ["c1"]);
    let generations = world.status().conditions.into_iter();
    let generations: Vec<_> = generations.map(|one| one.observed_generation).collect();
    assert_eq!(generations, [Some(2), Some(2)]);
}

/// Makes a run impossible.
type Spoil = fn(&mut World);

/// Case F81: a run that can never begin says why, and where to look.
#[test]
fn bad_runs_are_told_why() {
    let cases: [(Spoil, &str); 9] = [
        (
            |world| world.placement.spec.strategy.type_.clear(),
            "parent placement does not have an external rollout strategy, current strategy: RollingUpdate",
        ),
        (
            |world| {
                let status = world.policy.status.as_mut().unwrap();
                status.conditions[0].status = "False".to_owned();
            },
            "policy snapshot `web-0` not fully scheduled yet",
        ),
        (
            |world| world.bindings.clear(),
            "no scheduled or to-be-deleted bindings found",
        ),
        (
            |world| world.strategy = None,
            "referenced updateStrategy not found: `safe`",
        ),
        (
            |world| world.runs[0].spec.resource_snapshot_index = "-1".to_owned(),
            "invalid resource snapshot index `-1`",
        ),
        (
            |world| world.runs[0].spec.resource_snapshot_index = "7".to_owned(),
            "no resourceSnapshots with index `7` found for placement `web`",
        ),
        (
            |world| world.clusters[0].metadata.labels = None,
            "some clusters are not placed in any stage, total 1, showing up to 10: c1",
        ),
        (
            |world| {
                let twice = json!({ "name": "all", "labelSelector": {} });
                let stages = &mut world.strategy.as_mut().unwrap().spec.stages;
                stages.push(from_value(twice).unwrap());
            },
            "cluster `c1` appears in more than one stages",
        ),
        (
            |world| {
                let labels = world.clusters[5].metadata.labels.as_mut().unwrap();
                labels.insert("order".to_owned(), "first".to_owned());
            },
            "the sorting label `order:first` on cluster `p2` is not valid",
        ),
    ];
    for (spoil, reason) in cases {
        let mut world = World::of_six();
        world.start("go", "");
        world.seconds += 5;
        spoil(&mut world);
        assert!(world.plan(0).has_failed, "{reason}");
        world.settle();
        let failed = last(&world);
        assert_eq!(failed.reason, "UpdateRunInitializedFailed");
        assert!(failed.message.contains(reason), "{}", failed.message);
        assert!(is_finished(&world.runs[0]));
    }
}

/// Case F81: the facts with which a run began are no longer so.
#[test]
fn changed_facts_end_a_run() {
    let cases: [(Spoil, &str); 3] = [
        (
            |world| {
                let strategy = json!({ "type": "ServerSideApply" });
                world.placement.spec.strategy.apply_strategy = from_value(strategy).unwrap();
            },
            "the applyStrategy in the updateRun is outdated",
        ),
        (
            |world| {
                let labels = json!({ "kubernetes-fleet.io/policy-index": "1" });
                world.policy.metadata.labels = from_value(labels).unwrap();
            },
            "the policy snapshot index used in the updateRun is outdated, latest: 1, recorded: 0",
        ),
        (
            |world| {
                world.bindings[5].spec.state = fleet_api::binding::BindingState::Unscheduled;
            },
            "the number of clusters in index `2` stage has changed, new: 1, existing: 2",
        ),
    ];
    for (spoil, reason) in cases {
        let mut world = World::of_six();
        world.start("go", "");
        world.settle();
        spoil(&mut world);
        world.settle();
        let failed = last(&world);
        assert_eq!(failed.reason, "UpdateRunFailed", "{reason}");
        assert!(failed.message.contains(reason), "{}", failed.message);
    }
}

/// Case F110: a run ends with the clusters that it began with; one that is picked meanwhile, and
/// one that is left, are for the next.
#[test]
fn newcomers_wait_for_next_run() {
    let mut world = World::of_six();
    world.start("go", "");
    world.settle();
    let joined = json!({ "metadata": { "name": "c3", "labels": { "env": "canary" } } });
    world.clusters.push(from_value(joined).unwrap());
    world.pick("c3");
    let mut left = world.bindings[5].clone();
    left.metadata.name = Some("left".to_owned());
    left.spec.target_cluster = "c4".to_owned();
    left.spec.state = fleet_api::binding::BindingState::Unscheduled;
    world.bindings.push(left);
    world.serve();
    assert_eq!(last(&world).reason, "UpdateRunWaiting");
    assert_eq!(world.with("web-0-snapshot"), ["c1", "c2"]);
    assert!(
        world
            .bindings
            .iter()
            .any(|one| one.spec.target_cluster == "c4")
    );
    let clusters = world.stage("canary").clusters.len();
    assert_eq!(clusters, 2);

    pass(&mut world, "go");
    let began_with = ["c1", "c2", "p1", "p2", "s1", "s2"];
    assert_eq!(world.with("web-0-snapshot"), began_with);
    assert_eq!(world.bindings.len(), 8);
    world.start("next", "0");
    world.serve();
    pass(&mut world, "next");
    let now = ["c1", "c2", "c3", "p1", "p2", "s1", "s2"];
    assert_eq!(world.with("web-0-snapshot"), now);
    assert_eq!(world.bindings.len(), 7);
}

/// Has a run that waits after its first stage go through the others, to its end.
fn pass(world: &mut World, run: &str) {
    assert!(world.answer(&format!("{run}-after-canary"), true));
    world.serve();
    world.seconds += 60;
    world.serve();
    assert!(world.answer(&format!("{run}-before-staging"), true));
    world.serve();
    assert_eq!(last(world).reason, "UpdateRunSucceeded");
}

/// Case F110: a run that is made with its placement waits until that is scheduled.
#[test]
fn run_awaits_its_schedule() {
    let mut world = World::of_six();
    world.start("go", "");
    let scheduled = world.policy.status.take();
    assert_eq!(world.plan(0), UpdatePlan::default());
    world.policy.status = scheduled;
    world.settle();
    assert_eq!(world.with("web-0-snapshot"), ["c1"]);
}

/// Case F110: a run that comes before its strategy waits some seconds for it.
#[test]
fn run_awaits_its_strategy() {
    let mut world = World::of_six();
    world.start("go", "");
    let strategy = world.strategy.take();
    let awaiting = UpdatePlan {
        wake_at: Some(world.now() + jiff::SignedDuration::from_secs(5)),
        ..UpdatePlan::default()
    };
    assert_eq!(world.plan(0), awaiting);
    world.strategy = strategy;
    world.settle();
    assert_eq!(world.with("web-0-snapshot"), ["c1"]);
}

/// Case F81: another run gives a cluster something else meanwhile: the first one fails, with its stage and its cluster.
#[test]
fn overtaken_run_fails() {
    let mut world = World::of_six();
    world.start("go", "0");
    world.settle();
    world.snapshot();
    world.start("next", "1");
    world.settle();
    assert_eq!(world.with("web-1-snapshot"), ["c1"]);
    world.step(0, usize::MAX);
    world.runs.truncate(1);
    let failed = last(&world);
    assert_eq!(failed.reason, "UpdateRunFailed");
    assert!(
        failed.message.contains("concurrent updateRun"),
        "{}",
        failed.message
    );
    let stage = world.stage("canary");
    assert_eq!(
        told(&stage.conditions, "Succeeded"),
        "False StageUpdatingFailed"
    );
    assert_eq!(
        told(&stage.clusters[0].conditions, "Succeeded"),
        "False ClusterUpdatingFailed"
    );
}

/// Case F81: a version that does not become available holds its stage, and is named with its object after five minutes; once
/// it is mended the run goes on.
#[test]
fn broken_version_is_named() {
    let mut world = World::of_six();
    world.start("go", "");
    world.settle();
    world.report("c1", false);
    let failed = json!([{ "group": "apps", "version": "v1", "kind": "Deployment", "namespace": "shop", "name": "web",
        "condition": { "type": "Available", "status": "False", "reason": "ManifestNotAvailableYet",
        "message": "0 of 2 replicas" } }]);
    world.bindings[0].status.as_mut().unwrap().failed_placements = from_value(failed).unwrap();
    world.settle();
    assert_eq!(last(&world).reason, "UpdateRunProgressing");
    let wake_at = world.plan(0).wake_at.unwrap();
    assert_eq!(wake_at, world.now() + jiff::SignedDuration::from_mins(5));
    world.seconds += 300;
    world.settle();
    let stuck = last(&world);
    assert_eq!(stuck.reason, "UpdateRunStuck");
    assert_eq!(
        stuck.message,
        "The updateRun is stuck waiting for c1 cluster(s) in stage canary to finish updating, please check placement \
         status for potential errors: Deployment shop/web in c1 is not Available: ManifestNotAvailableYet: 0 of 2 replicas"
    );
    assert_eq!(world.with("web-0-snapshot"), ["c1"]);
    world.report("c1", true);
    world.settle();
    assert_eq!(last(&world).reason, "UpdateRunProgressing");
    assert_eq!(world.with("web-0-snapshot"), ["c1", "c2"]);
}

/// Case F82: a run that is stopped lets the clusters under way become ready, and goes on where it stopped.
#[test]
fn stopped_run_goes_on() {
    let mut world = World::of_six();
    world.start("go", "");
    world.settle();
    world.want(RunState::Stop);
    world.settle();
    let stopping = last(&world);
    assert_eq!(
        (&*stopping.status, &*stopping.reason),
        ("Unknown", "UpdateRunStopping")
    );
    world.report_all(true);
    world.settle();
    assert_eq!(last(&world).reason, "UpdateRunStopped");
    assert_eq!(
        told(&world.stage("canary").conditions, "Progressing"),
        "False StageUpdatingStopped"
    );
    assert_eq!(world.with("web-0-snapshot"), ["c1"]);
    world.want(RunState::Run);
    world.settle();
    assert_eq!(world.with("web-0-snapshot"), ["c1", "c2"]);
}

/// Clusters that are no longer picked keep their version until the last stage.
#[test]
fn left_clusters_come_last() {
    let mut world = World::new(&[("p1", "prod"), ("p2", "prod")]);
    world.bindings[0].spec.state = fleet_api::binding::BindingState::Unscheduled;
    world.start("go", "");
    world.settle();
    assert_eq!(world.bindings.len(), 2);
    world.serve();
    assert_eq!(last(&world).reason, "UpdateRunSucceeded");
    assert_eq!(world.bindings.len(), 1);
    // Of the stages without clusters, nobody is asked.
    assert!(world.approvals.is_empty());
    let skipped = told(&world.stage("canary").conditions, "Succeeded");
    assert_eq!(skipped, "True StageUpdatingSkippedNoClusters");
}

/// A cluster that has everything already is given nothing.
#[test]
fn current_clusters_are_left_alone() {
    let mut world = World::new(&[("p1", "prod"), ("p2", "prod")]);
    world.start("go", "0");
    world.serve();
    let before = world.bindings.clone();
    world.start("again", "0");
    world.settle();
    assert_eq!(last(&world).reason, "UpdateRunSucceeded");
    assert_eq!(world.bindings, before);
}

/// A wait after a stage begins when its clusters are up to date, also if they were when it was approved.
#[test]
fn late_approval_delays_the_wait() {
    let mut world = World::new(&[("c1", "canary")]);
    world.start("go", "0");
    world.serve();
    world.answer("go-after-canary", true);
    world.seconds += 60;
    world.serve();
    assert_eq!(last(&world).reason, "UpdateRunSucceeded");
    let strategy = world.strategy.as_mut().unwrap();
    strategy.spec.stages[0].before_stage_tasks =
        from_value(json!([{ "type": "Approval" }])).unwrap();
    world.start("again", "0");
    world.settle();
    world.seconds += 7200;
    world.answer("again-before-canary", true);
    world.answer("again-after-canary", true);
    world.settle();
    world.answer("again-after-canary", true);
    world.settle();
    assert_eq!(last(&world).reason, "UpdateRunWaiting");
    world.seconds += 60;
    world.settle();
    assert_eq!(last(&world).reason, "UpdateRunSucceeded");
}

/// Case F83: the approval of an earlier run of the same name is none of this one.
#[test]
fn earlier_approval_does_not_count() {
    let mut world = World::new(&[("s1", "staging")]);
    world.start("go", "0");
    world.settle();
    assert!(world.answer("go-before-staging", true));
    world.runs.clear();
    world.seconds += 10;
    world.start("go", "0");
    world.serve();
    assert!(world.with("web-0-snapshot").is_empty());
    assert_eq!(last(&world).reason, "UpdateRunWaiting");
    assert!(world.answer("go-before-staging", true));
    world.serve();
    assert_eq!(last(&world).reason, "UpdateRunSucceeded");
}

/// An approval can be taken back until it is accepted, and not afterwards.
#[test]
fn accepted_approval_stays() {
    let mut world = World::new(&[("s1", "staging")]);
    world.start("go", "0");
    world.settle();
    world.answer("go-before-staging", true);
    // It is accepted, and before the run says so its program dies.
    world.step(0, 1);
    world.answer("go-before-staging", false);
    world.serve();
    assert_eq!(last(&world).reason, "UpdateRunSucceeded");
    let conditions = &world.approvals[0].status.as_ref().unwrap().conditions;
    assert_eq!(
        told(conditions, "ApprovalAccepted"),
        "True ApprovalRequestApprovalAccepted"
    );
}
