//! A leader on a gateway's nodes, which reports on a member that is not its own cluster.

use std::sync::Arc;

use karmada_api::condition::{
    DECLARED_READY_REASON, GATEWAY_REPORTER_READY, REACHABLE, UNREACHABLE_REASON,
};

use super::*;
use crate::reachability::{REACHABILITY, ReachabilityClass};

fn leader() -> (Reporter, PerTarget<Quorum>, Instant) {
    let started = Instant::now();
    let quorums = PerTarget::from_iter([(&REACHABILITY, QUORUM)]).about(&Arc::from("member1"));
    (Reporter::new(PACE, &quorums, started), quorums, started)
}

fn unreached() -> Tally {
    let address = "10.0.0.7:8080".parse().unwrap();
    let failure = Failure::new(ReachabilityClass::Timeout, address);
    let mut tally = Tally::default();
    for node in ["g1", "g2"] {
        tally.count(node, Ballot::Vote(Vote::Unhealthy(failure)));
    }
    tally
}

/// The verdict and its freshness are conditions of their own, beside those of the member's agents.
#[test]
fn verdict_has_own_conditions() {
    let (mut reporter, quorums, started) = leader();
    let tallies = quorums.map(|_, _| unreached());
    let theirs = [
        stale(INSUFFICIENT_OBSERVATIONS_REASON),
        dns_true(),
        element("ImageRegistryReady", TRUE, DECLARED_READY_REASON, ""),
    ];
    let ReportPlan::Write(writes) = reporter.plan(&tallies, &theirs, started, time(NOW)) else {
        panic!("nothing to write");
    };
    let written: Vec<_> = writes
        .iter()
        .map(|it| [&it.type_, &it.status, &it.reason, &it.message].map(String::as_str))
        .collect();
    assert_eq!(
        written,
        [
            [
                REACHABLE,
                FALSE,
                UNREACHABLE_REASON,
                "2 of 2 nodes fail: timeout from 10.0.0.7:8080 (2); g1, g2"
            ],
            [
                GATEWAY_REPORTER_READY,
                TRUE,
                REPORTING_REASON,
                "enough nodes vote"
            ],
        ]
    );
}

/// Of a member without addresses nothing is said, unless there is a verdict: that becomes stale and stays.
#[test]
fn member_without_addresses_is_stale() {
    let (mut reporter, _, started) = leader();
    let nothing = PerTarget::from_iter::<[(&'static Signal, Tally); 0]>([]);
    let plan = reporter.plan(&nothing, &[], started, time(NOW));
    assert_eq!(plan, ReportPlan::Unchanged);
    let verdict = element(REACHABLE, FALSE, UNREACHABLE_REASON, "2 of 2 nodes fail");
    let conditions = [verdict];
    let at = started + PACE.patience;
    let plan = reporter.plan(&nothing, &conditions, started, time(NOW));
    assert_eq!(plan, ReportPlan::Wait(at));
    let ReportPlan::Write(writes) = reporter.plan(&nothing, &conditions, at, time(NOW)) else {
        panic!("nothing to write");
    };
    let [stale] = writes.as_slice() else {
        panic!("{writes:?}");
    };
    assert_eq!(
        (&*stale.type_, &*stale.status),
        (GATEWAY_REPORTER_READY, FALSE)
    );
    assert_eq!(stale.message, "no node has anything to vote on");
}
