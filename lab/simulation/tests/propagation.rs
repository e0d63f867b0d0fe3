//! After any sequence of steps the members hold what the policies ask for, and then no program writes.

use std::thread::available_parallelism;

use simulation::propagation::{ApiFault, Propagation, Role, Step, run};
use simulation::search::{FIRST_SEED, failed_once, search, sequence_of};

/// The number of random sequences of one run.
const SEQUENCES: u64 = 400;

/// The number of faults that the random sequences draw.
const FAULTS: usize = 15;

fn seconds(seconds: u32) -> Step {
    Step::Wait {
        millis: seconds * 1_000,
    }
}

#[track_caller]
fn settles(steps: &[Step]) {
    for seed in 0..5 {
        let run = run(steps, seed);
        assert_eq!(run.outcome, Ok(()), "seed {seed}:\n{}", run.log());
    }
}

#[test]
fn random_histories_of_propagation_settle() {
    let threads = available_parallelism().unwrap().get();
    let seeds = failed_once::<Propagation>()
        .unwrap()
        .into_iter()
        .chain(FIRST_SEED..FIRST_SEED + SEQUENCES);
    match search::<Propagation>(seeds, threads) {
        Ok(summary) => {
            println!("{summary}");
            // A fault that never happens, or a program that never writes, proves nothing.
            assert_eq!(summary.faults.len(), FAULTS, "{summary}");
            assert_eq!(summary.judged.len(), Role::ALL.len(), "{summary}");
        }
        Err(found) => panic!("{found}"),
    }
}

#[test]
fn a_seed_makes_the_same_history_again() {
    for seed in 0..5 {
        let steps = sequence_of::<Propagation>(seed);
        let [one, other] = [0, 1].map(|_| run(&steps, seed));
        assert_eq!(one.outcome, other.outcome, "seed {seed}");
        assert_eq!(one.writes, other.writes, "seed {seed}");
    }
}

/// The member is a new one and lacks the namespace at first. The failure is written and over before the watch
/// of Works is back.
#[test]
fn a_failure_that_no_watch_has_shown_does_not_stay_in_the_status() {
    let (member, program, about) = (None, None, None);
    let outage = Step::Fault {
        member,
        program,
        about,
        fault: ApiFault::Outage,
        seconds: 4,
    };
    settles(&[
        seconds(1),
        outage,
        Step::Leave { cluster: 1 },
        Step::Join {
            cluster: 1,
            region: 0,
        },
        seconds(3),
    ]);
}
