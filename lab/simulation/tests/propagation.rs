//! After any sequence of steps the members hold the copies that policies ask for, and then no program writes.

#![expect(
    clippy::panic,
    clippy::print_stdout,
    reason = "the helpers of tests are tests"
)]

use simulation::harness::{self, Api, ApiFault, Property, Summary, run, sequence_of};
use simulation::propagation::{
    Affinity, By, Change, Lazy, PolicyShape, Propagation, Role, Spread, Step, TaintEffect,
    Template, Toleration,
};

/// The number of random sequences of one run, beside those that failed once. Thousands run by `cargo xtask simulate`.
const SEQUENCES: u64 = 40;

/// The same of Lazy policies, which are shorter.
const LAZY_SEQUENCES: u64 = 40;

/// The number of faults that these sequences draw; thousands draw two more.
const FAULTS: usize = 13;

fn seconds(seconds: u32) -> Step {
    Step::Wait {
        millis: seconds * 1_000,
    }
}

fn taint(cluster: u8) -> Step {
    let effect = Some(TaintEffect::NoExecute);
    Step::Change(Change::Taint { cluster, effect })
}

fn policy_of(template: Template, affinity: Affinity) -> PolicyShape {
    PolicyShape {
        selects: vec![(template, By::Name)],
        affinity,
        ..PolicyShape::of_kinds(&[])
    }
}

#[track_caller]
fn settles(steps: &[Step]) {
    for seed in 0..5 {
        let run = run::<Propagation>(steps, seed);
        assert_eq!(run.outcome, Ok(()), "seed {seed}:\n{}", run.log());
    }
}

/// Runs the seeds that failed once and as many others.
fn search_from_first<P: Property>(sequences: u64) -> Summary {
    let summary = harness::search_from_first::<P>(sequences);
    let summary = summary.unwrap_or_else(|found| panic!("{found}"));
    println!("{summary}");
    // A program that never writes proves nothing.
    assert_eq!(summary.figures.judged.len(), Role::ALL.len(), "{summary}");
    summary
}

/// Case P62: whatever happens, the members hold the copies that policies ask for, and then nobody writes.
#[test]
fn random_histories_of_propagation_settle() {
    let summary = search_from_first::<Propagation>(SEQUENCES);
    // Neither does a fault that never happens.
    assert_eq!(summary.figures.faults.len(), FAULTS, "{summary}");
}

/// Case P62: with Lazy policies every move has a reason that the oracle names.
#[test]
fn no_history_of_lazy_policies_moves_a_workload_without_a_reason() {
    search_from_first::<Lazy>(LAZY_SEQUENCES);
}

#[test]
fn a_seed_makes_the_same_history_again() {
    for seed in 0..5 {
        let steps = sequence_of::<Propagation>(seed);
        let [one, other] = [0, 1].map(|_| run::<Propagation>(&steps, seed));
        assert_eq!(one.outcome, other.outcome, "seed {seed}");
        assert_eq!(one.figures, other.figures, "seed {seed}");
    }
}

/// The member is a new one and lacks the namespace at first. The failure is written and over before the watch
/// of Works is back.
#[test]
fn a_failure_that_no_watch_has_shown_does_not_stay_in_the_status() {
    let (api, program, about) = (Api::Hub, None, None);
    let outage = Step::Fault {
        api,
        program,
        about,
        fault: ApiFault::Outage,
        seconds: 4,
    };
    settles(&[
        seconds(1),
        outage,
        Step::Change(Change::Leave { cluster: 1 }),
        Step::Change(Change::Join {
            cluster: 1,
            region: 0,
        }),
        seconds(3),
    ]);
}

/// The reason names the taints that are not tolerated any longer.
#[test]
fn what_is_not_scheduled_names_another_reason_once_its_tolerations_end() {
    let shape = PolicyShape {
        tolerates: Toleration::Seconds(120),
        ..policy_of(Template::ConfigMapA, Affinity::Names(0b001))
    };
    settles(&[
        Step::Change(Change::Leave { cluster: 0 }),
        Step::Change(Change::PutPolicy { policy: 0, shape }),
        taint(1),
    ]);
}

#[test]
fn an_eviction_of_what_no_policy_has_any_more_does_not_end() {
    let delete = Step::Change(Change::DeletePolicy { policy: 0 });
    settles(&[Step::Settle, taint(0), seconds(5), delete]);
}

#[test]
fn a_workload_returns_to_an_earlier_group_with_the_flag_only() {
    for is_on in [false, true] {
        let shape = policy_of(Template::Deployment, Affinity::Groups([0b001, 0b010]));
        let (cluster, effect) = (0, None);
        settles(&[
            Step::Change(Change::FailBack { is_on }),
            Step::Change(Change::PutPolicy { policy: 0, shape }),
            Step::Settle,
            taint(cluster),
            Step::Settle,
            Step::Change(Change::Taint { cluster, effect }),
        ]);
    }
}

/// Regions are compared by the room of their clusters, and the programs start again at the end.
#[test]
fn a_workload_does_not_follow_the_room_of_regions() {
    let template = Template::Deployment;
    let shape = PolicyShape {
        spread: Spread::Regions([1, 1], [1, 1]),
        ..policy_of(template, Affinity::All)
    };
    let [full, free] =
        [0, 4].map(|pods| [0, 2].map(|cluster| Step::Change(Change::Room { cluster, pods })));
    let deploy = Step::Change(Change::PutTemplate {
        template,
        version: 1,
        wipes: false,
    });
    let mut steps = vec![
        Step::Change(Change::DeleteTemplate { template }),
        Step::Change(Change::PutPolicy { policy: 0, shape }),
    ];
    steps.extend(full);
    steps.extend([Step::Settle, deploy, Step::Settle]);
    steps.extend(free);
    settles(&steps);
}
