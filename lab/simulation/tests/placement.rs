//! After any sequence of steps the members hold the objects that placements ask for, and then only heartbeats come.

use simulation::harness::{Api, ApiFault, run, search_from_first, sequence_of};
use simulation::placement::{Apply, Change, Placement, PlacementShape, Policy, Scope, Step};

/// The number of random sequences of one run, beside those that failed once. Thousands run by `cargo xtask simulate`.
const SEQUENCES: u64 = 60;

/// The fewest faults that must have happened, of the 15 that the random sequences draw.
const FAULTS: usize = 9;

const EVERYWHERE: PlacementShape = PlacementShape {
    policy: Policy::All,
    region: None,
    tolerates: false,
    scope: Scope::Whole,
    apply: Apply::ClientSide,
};

#[track_caller]
fn settles(steps: &[Step]) {
    for seed in 0..3 {
        let run = run::<Placement>(steps, seed);
        assert_eq!(run.outcome, Ok(()), "seed {seed}:\n{}", run.log());
    }
}

fn millis(millis: u32) -> Step {
    Step::Wait { millis }
}

fn put(app: u8, shape: PlacementShape) -> Step {
    Step::Change(Change::PutPlacement { app, shape })
}

/// Case F60: whatever happens, the members hold the placed objects, placements say so, and then nobody writes.
#[test]
fn random_histories_settle() {
    let summary =
        search_from_first::<Placement>(SEQUENCES).unwrap_or_else(|found| panic!("{found}"));
    println!("{summary}");
    // A program that never writes, or a fault that never happens, proves nothing.
    assert_eq!(summary.figures.judged.len(), 2, "{summary}");
    assert!(summary.figures.faults.len() >= FAULTS, "{summary}");
}

#[test]
fn seeds_repeat_their_histories() {
    for seed in 0..5 {
        let steps = sequence_of::<Placement>(seed);
        let [one, other] = [0, 1].map(|_| run::<Placement>(&steps, seed));
        assert_eq!(one.outcome, other.outcome, "seed {seed}");
        assert_eq!(one.figures, other.figures, "seed {seed}");
    }
}

/// The agent dies while its cluster leaves, and the controller starts anew once it has left.
#[test]
fn left_cluster_is_forgotten() {
    settles(&[millis(145), Step::Change(Change::Leave { cluster: 1 })]);
}

#[test]
fn emptied_placement_is_at_rest() {
    settles(&[
        millis(1_000),
        Step::Change(Change::DeleteNamespace { app: 0 }),
    ]);
}

/// The policy is edited in the first moments, with bindings for clusters that it then leaves out.
#[test]
fn early_edit_holds_nobody_up() {
    let region = Some(0);
    let elsewhere = PlacementShape {
        region,
        ..EVERYWHERE
    };
    for first in [150, 200, 250, 300, 350] {
        settles(&[millis(first), put(0, elsewhere)]);
    }
}

/// A member whose API fails for longer than the controller bears keeps its objects, and catches up.
#[test]
fn unhealthy_member_keeps_everything() {
    let (api, program, about) = (Api::Member(0), None, None);
    let (fault, seconds) = (ApiFault::Unavailable, 500);
    settles(&[
        Step::Settle,
        Step::Fault {
            api,
            program,
            about,
            fault,
            seconds,
        },
        millis(400_000),
        Step::Change(Change::PutMap {
            app: 0,
            map: 1,
            value: 3,
        }),
        put(1, EVERYWHERE),
        millis(60_000),
    ]);
}

/// A placement of a namespace goes where that is, and another in its place where one goes.
#[test]
fn namespace_is_followed() {
    let namespace = |cluster, is_there| Step::Change(Change::MemberNamespace { cluster, is_there });
    let two = PlacementShape {
        policy: Policy::Number {
            clusters: 2,
            spreads: false,
        },
        ..EVERYWHERE
    };
    settles(&[
        put(2, two),
        namespace(0, true),
        namespace(1, true),
        Step::Settle,
        namespace(1, false),
        millis(500),
        namespace(2, true),
        Step::Settle,
        Step::Change(Change::DeletePlacement { app: 2 }),
    ]);
}

/// While a placement only reports, members stay as they are; their excess goes once it applies.
#[test]
fn reports_change_nothing() {
    let with = |apply| {
        let shape = PlacementShape {
            apply,
            ..EVERYWHERE
        };
        put(0, shape)
    };
    let map = |map, value| Step::Change(Change::PutMap { app: 0, map, value });
    for end in [Apply::ClientSide, Apply::ServerSide] {
        settles(&[
            map(1, 1),
            Step::Settle,
            with(Apply::ReportDiff),
            Step::Settle,
            map(2, 2),
            Step::Change(Change::DeleteMap { app: 0, map: 1 }),
            Step::Settle,
            with(end),
            Step::Settle,
            with(Apply::ReportDiff),
            millis(100),
            Step::Change(Change::DeletePlacement { app: 0 }),
        ]);
    }
}
