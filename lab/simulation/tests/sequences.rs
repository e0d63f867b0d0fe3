//! After any sequence of steps the fleet converges, and then no program writes.

use std::collections::BTreeMap;
use std::time::Duration;

use simulation::convergence::{
    Change, ConditionState, Convergence, Match, RemedyShape, Role, Step,
};
use simulation::harness::{
    About, Api, ApiFault, run, run_with, search, search_from_first, sequence_of,
};

/// The number of random sequences of one run, beside those that failed once. Thousands run by `cargo xtask simulate`.
const SEQUENCES: u64 = 200;

/// The number of faults that the random sequences draw: those of the embedded API, late writes,
/// unreadable objects, and odd values in the parts of a Cluster that are not ours.
const FAULTS: usize = 19;

/// The number of kinds of writes that are judged: actions, statuses of Remedies and ingresses, finalizers,
/// and at the gateway Namespaces, Services, EndpointSlices and Ingresses.
const JUDGED: usize = 8;

/// A Remedy that blocks every cluster at once.
const AT_ONCE: RemedyShape = RemedyShape::AT_ONCE;

/// How a request for the actions of the cluster `m0` ends.
const STATUS_OF_M0: &str = "clusters/m0/status?&fieldManager=remedy-controller";
const SET: &str = r#"{"status":{"remedyActions":["TrafficControl"]}}"#;
const CLEARED: &str = r#"{"status":{"remedyActions":null}}"#;

/// A fault of Karmada's API.
fn fault(
    program: Option<Role>,
    about: Option<&'static str>,
    fault: ApiFault,
    seconds: u16,
) -> Step {
    Step::Fault {
        api: Api::Hub,
        program,
        about: about.map(About::kind),
        fault,
        seconds,
    }
}

fn put_remedy() -> Step {
    Step::Change(Change::PutRemedy {
        remedy: 0,
        spec: AT_ONCE,
    })
}

fn seconds(seconds: u32) -> Step {
    Step::Wait {
        millis: seconds * 1_000,
    }
}

/// Runs the steps, checks every property and returns the log.
fn converges(steps: &[Step]) -> String {
    let run = run::<Convergence>(steps, 0);
    assert_eq!(run.outcome, Ok(()));
    run.log()
}

/// Checks that the log contains `parts` in this order.
fn follow(log: &str, parts: &[&str]) {
    let mut rest = log;
    for part in parts {
        let found = rest.split_once(part);
        assert!(found.is_some(), "no {part:?} in its place in:\n{log}");
        rest = found.map_or("", |(_, after)| after);
    }
}

#[test]
fn random_sequences_converge() {
    let summary =
        search_from_first::<Convergence>(SEQUENCES).unwrap_or_else(|found| panic!("{found}"));
    println!("{summary}");
    // A fault or a kind of write that hardly ever happens proves nothing.
    assert_eq!(summary.figures.faults.len(), FAULTS, "{summary}");
    assert_eq!(summary.figures.judged.len(), JUDGED, "{summary}");
    for (what, count) in summary.figures.faults.iter().chain(&summary.figures.judged) {
        assert!(
            *count >= SEQUENCES / 100,
            "only {count} of {what}: {summary}"
        );
    }
}

#[test]
fn a_search_runs_every_seed() {
    let summary = search::<Convergence>([1, 2, 3], 2).unwrap();
    let steps: usize = [1, 2, 3]
        .map(|seed| sequence_of::<Convergence>(seed).len())
        .iter()
        .sum();
    assert_eq!((summary.sequences, summary.steps), (3, steps as u64));
}

#[test]
fn a_seed_makes_the_same_run_again_request_by_request() {
    for seed in 0..20 {
        let steps = sequence_of::<Convergence>(seed);
        let [one, other] = [0, 1].map(|_| run::<Convergence>(&steps, seed).log());
        let mut lines = one.lines().zip(other.lines());
        assert_eq!(lines.find(|(one, other)| one != other), None, "seed {seed}");
        assert_eq!(one.len(), other.len(), "seed {seed}");
    }
}

#[test]
fn a_converged_fleet_sees_no_write_for_hours() {
    let run = run_with::<Convergence>(&[put_remedy()], 0, Duration::from_hours(3));
    assert_eq!(run.outcome, Ok(()));
}

#[test]
fn a_remedy_deleted_while_the_controller_is_down_is_undone_when_it_is_back() {
    let program = Role::Remedy;
    let log = converges(&[
        put_remedy(),
        seconds(5),
        Step::Kill {
            program,
            replica: 0,
        },
        Step::Kill {
            program,
            replica: 1,
        },
        Step::Change(Change::DeleteRemedy { remedy: 0 }),
        seconds(60),
    ]);
    follow(&log, &[SET, "remedy-controller-0.1", CLEARED]);
}

/// karmada#7776: the Remedy is deleted before the controller has seen its own write, so that its
/// cache shows nothing to clear.
#[test]
fn a_write_skipped_because_the_cache_already_looked_right_is_made_later() {
    let delayed = ApiFault::DelayEvents {
        millis: 5_000,
        coalesce: false,
    };
    let log = converges(&[
        seconds(5),
        fault(Some(Role::Remedy), Some("clusters"), delayed, 30),
        put_remedy(),
        seconds(1),
        Step::Change(Change::DeleteRemedy { remedy: 0 }),
        seconds(30),
    ]);
    follow(&log, &[SET, "DELETED", CLEARED]);
}

/// karmada#7776 again: the watch lists anew, and shows neither the controller's own write nor the
/// other writer's that reverted it.
#[test]
fn an_action_that_another_writer_takes_back_unseen_is_set_again() {
    let log = converges(&[
        fault(None, Some("clusters"), ApiFault::ExpireWatches, 1),
        put_remedy(),
        Step::Wait { millis: 1 },
        Step::Change(Change::RewriteStatus { cluster: 0, age: 1 }),
        seconds(10),
    ]);
    let set = format!("{STATUS_OF_M0} {SET}");
    follow(&log, &[&set, &set]);
}

/// A deleted lease has two leaders for a moment. Their watches are at different versions, and each
/// undoes the other's writes: with pauses, and only until the former leader reads the new lease.
#[test]
fn two_leaders_by_a_deleted_lease_do_not_fight_without_a_pause() {
    for (program, change) in [
        (Role::Remedy, put_remedy()),
        (
            Role::Ingress,
            Step::Change(Change::DeleteIngress { ingress: 0 }),
        ),
    ] {
        for millis in [1, 700, 1_666] {
            converges(&[
                Step::Wait { millis: 1 },
                fault(None, None, ApiFault::Outage, 2),
                Step::Wait { millis },
                Step::Change(Change::DeleteLease { program }),
                change.clone(),
            ]);
        }
    }
}

/// Plays a leader whose write is in flight while another replica takes over and finds nothing to do.
fn late_write_of(program: Role) -> String {
    converges(&[
        seconds(5),
        fault(Some(program), None, ApiFault::Late { millis: 20_000 }, 1),
        put_remedy(),
        Step::Wait { millis: 1 },
        Step::Kill {
            program,
            replica: 0,
        },
        Step::Change(Change::DeleteRemedy { remedy: 0 }),
        seconds(60),
    ])
}

#[test]
fn a_write_of_a_former_leader_that_comes_late_is_put_right() {
    let log = late_write_of(Role::Remedy);
    follow(&log, &[SET, "remedy-controller-1.0", CLEARED]);
}

#[test]
fn two_controllers_during_a_leader_change_agree() {
    let program = Role::Remedy;
    let log = converges(&[
        put_remedy(),
        seconds(5),
        Step::Change(Change::StealLease { program }),
        Step::Change(Change::DeleteRemedy { remedy: 0 }),
        seconds(1),
        put_remedy(),
        Step::Change(Change::Condition {
            cluster: 0,
            reporter: false,
            status: Some(ConditionState::Unhealthy),
        }),
        Step::Change(Change::DeleteRemedy { remedy: 0 }),
        seconds(60),
    ]);
    follow(&log, &[SET, CLEARED]);
}

/// The load balancer's address is stored, but the response is lost, and the watch is late when the
/// class is deleted: the controller releases an ingress whose newest status it has not seen.
/// The seed decides which watch comes back first.
#[test]
fn an_ingress_released_on_a_stale_view_keeps_nothing_of_ours() {
    let steps = [
        Step::Wait { millis: 1 },
        Step::Change(Change::DeleteClass { class: 0 }),
        fault(None, None, ApiFault::Silence, 1),
        Step::Change(Change::Address {
            ingress: 0,
            served: true,
        }),
        Step::Wait { millis: 1 },
    ];
    for seed in 0..20 {
        let run = run::<Convergence>(&steps, seed);
        assert_eq!(run.outcome, Ok(()), "seed {seed}");
    }
}

/// karmada#5030: another writer puts a whole status back as it was.
#[test]
fn actions_survive_a_cluster_status_that_another_writer_rewrites_wholesale() {
    let rewrite = Step::Change(Change::RewriteStatus { cluster: 0, age: 1 });
    let log = converges(&[
        seconds(5),
        put_remedy(),
        seconds(5),
        rewrite.clone(),
        seconds(5),
        Step::Change(Change::DeleteRemedy { remedy: 0 }),
        seconds(5),
        rewrite,
        seconds(5),
    ]);
    // Lost and set again; cleared, brought back and cleared again.
    let set = format!("{STATUS_OF_M0} {SET}");
    let cleared = format!("{STATUS_OF_M0} {CLEARED}");
    follow(&log, &[&set, &set, &cleared, &cleared]);
}

/// The same with a write to an ingress, which still has our finalizer when the write arrives.
#[test]
fn a_late_write_of_a_former_leader_to_an_ingress_is_put_right() {
    let log = late_write_of(Role::Ingress);
    let blocked = r#""trafficBlockClusters":["m0","m1"]"#;
    let released = r#""trafficBlockClusters":null"#;
    follow(&log, &[blocked, "ingress-controller-1.0", released]);
}

/// The faults of ten minutes.
const OF_TEN_MINUTES: [ApiFault; 16] = [
    ApiFault::Conflicts { every: 2 },
    ApiFault::TooManyRequests { seconds: 2 },
    ApiFault::Unauthorized,
    ApiFault::Forbidden,
    ApiFault::InternalErrors { every: 1 },
    ApiFault::Unavailable,
    ApiFault::Slow { millis: 3_000 },
    ApiFault::LoseResponses { every: 1 },
    ApiFault::Outage,
    ApiFault::Silence,
    ApiFault::CutWatches { inside_line: true },
    ApiFault::StaleLists { versions: 20 },
    ApiFault::ExpireWatches,
    ApiFault::FailWatches,
    ApiFault::WithholdBookmarks,
    ApiFault::DelayEvents {
        millis: 5_000,
        coalesce: true,
    },
];

/// Returns the seconds for which a fault of ten minutes lasts.
fn lasting(fault: ApiFault) -> u16 {
    match fault {
        // Programs list again only when watches expire, which is the next fault; and a watch has a
        // bookmark once a minute.
        ApiFault::StaleLists { .. } | ApiFault::WithholdBookmarks => 60,
        _ => 10,
    }
}

/// Ten minutes in which a cluster's DNS dies or comes back every 40 s, each time under another fault: its
/// agent's every verdict reaches the load balancer before the next. The seeds put other odd values into the
/// parts of the Clusters that are not ours.
#[test]
fn no_verdict_is_missed_in_ten_minutes_of_faults() {
    let matching = Match {
        reporter: false,
        equal: true,
        status: ConditionState::Unhealthy,
    };
    let remedy = Step::Change(Change::PutRemedy {
        remedy: 0,
        spec: RemedyShape {
            matches: Some(vec![matching]),
            ..AT_ONCE
        },
    });
    let observe = |resolves| {
        Step::Change(Change::Observe {
            cluster: 0,
            resolves,
        })
    };
    let mut steps = vec![remedy, observe(true), seconds(10)];
    for (of_api, resolves) in OF_TEN_MINUTES
        .into_iter()
        .zip([false, true].into_iter().cycle())
    {
        steps.push(fault(None, None, of_api, lasting(of_api)));
        steps.push(observe(resolves));
        steps.push(seconds(40));
    }
    let [set, cleared] = [SET, CLEARED].map(|body| format!("{STATUS_OF_M0} {body}"));
    let [blocked, released] =
        [r#"["m0"]"#, "null"].map(|blocked| format!(r#""trafficBlockClusters":{blocked}"#));
    let slices = "/apis/discovery.k8s.io/v1/namespaces/shop/endpointslices";
    let [cut, restored] = ["DELETE", "POST"].map(|method| format!(": {method} {slices}"));
    let mut hits = BTreeMap::new();
    for seed in 0..20 {
        let run = run::<Convergence>(&steps, seed);
        assert_eq!(run.outcome, Ok(()), "seed {seed}");
        let odd = run.figures.faults["ForeignValue"];
        assert_eq!(odd, 2, "seed {seed}: both Clusters have an odd value");
        for (fault, count) in &run.figures.faults {
            *hits.entry(*fault).or_insert(0) += count;
        }
        let log = run.log();
        for [block, release] in [[&blocked, &released], [&cut, &restored]] {
            let followed = [&set, block, &cleared, release].map(String::as_str);
            follow(&log, &followed.repeat(OF_TEN_MINUTES.len() / 2));
        }
    }
    // A fault that never happens proves nothing. The odd values count as one more.
    hits.retain(|_, count| *count > 0);
    assert_eq!(hits.len(), OF_TEN_MINUTES.len() + 1, "{hits:?}");
}
