mod declared;
mod members;
mod signals;

use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;
use karmada_api::condition::{DNS_FAILED_REASON, DNS_READY, DNS_READY_REASON};
use proptest::prelude::*;

use super::*;
use crate::dns::{DNS, DnsClass};
use crate::observation::Failure;
use crate::quorum::Ballot;
use crate::threshold::Vote;

const PACE: Pace = Pace {
    period: Duration::from_secs(5),
    patience: Duration::from_secs(30),
};
const QUORUM: Quorum = Quorum {
    min_answering: 50,
    failure: 80,
};
const THEN: &str = "2026-11-20T08:00:00Z";
const NOW: &str = "2026-11-21T10:00:00.25Z";
const NOW_WHOLE: &str = "2026-11-21T10:00:00Z";

/// Returns a value for DNS alone.
fn only<T>(value: T) -> PerTarget<T> {
    PerTarget::from_iter([(&DNS, value)])
}

fn time(text: &str) -> Timestamp {
    text.parse().unwrap()
}

fn failure(class: DnsClass) -> Failure {
    Failure::new(class, "10.96.0.10:53".parse().unwrap())
}

fn unhealthy() -> Vote {
    Vote::Unhealthy(failure(DnsClass::Timeout))
}

fn element(kind: &str, status: &str, reason: &str, message: &str) -> Condition {
    Condition {
        type_: kind.to_owned(),
        status: status.to_owned(),
        reason: reason.to_owned(),
        message: message.to_owned(),
        last_transition_time: Some(Time(time(THEN))),
        observed_generation: None,
        unclear: false,
    }
}

fn dns_true() -> Condition {
    element(DNS_READY, TRUE, DNS_READY_REASON, "no node fails")
}

fn dns_false() -> Condition {
    let message = "1 of 1 nodes fail: timeout from 10.96.0.10 (1); n1";
    element(DNS_READY, FALSE, DNS_FAILED_REASON, message)
}

fn fresh() -> Condition {
    element(REPORTER_READY, TRUE, REPORTING_REASON, "enough nodes vote")
}

fn stale(reason: &str) -> Condition {
    element(REPORTER_READY, FALSE, reason, "0 of 1 nodes vote")
}

/// A leader, with the start of its term.
struct Leader {
    reporter: Reporter,
    started: Instant,
}

impl Leader {
    fn new() -> Self {
        let started = Instant::now();
        Self {
            reporter: Reporter::new(PACE, &only(QUORUM), started),
            started,
        }
    }

    fn at(&self, seconds: u64) -> Instant {
        self.started + Duration::from_secs(seconds)
    }

    fn plan(&mut self, seconds: u64, vote: Option<Vote>, conditions: &[Condition]) -> ReportPlan {
        let mut tally = Tally::default();
        tally.count("n1", vote.map_or(Ballot::NoVote, Ballot::Vote));
        self.plan_of(seconds, &tally, conditions)
    }

    fn plan_of(&mut self, seconds: u64, tally: &Tally, conditions: &[Condition]) -> ReportPlan {
        let now = self.at(seconds);
        self.reporter
            .plan(&only(tally.clone()), conditions, now, time(NOW))
    }

    /// Plans, and applies the planned writes.
    fn act(
        &mut self,
        seconds: u64,
        vote: Option<Vote>,
        conditions: &mut Vec<Condition>,
    ) -> ReportPlan {
        let plan = self.plan(seconds, vote, conditions);
        if let ReportPlan::Write(writes) = &plan {
            for write in writes {
                conditions.retain(|c| c.type_ != write.type_);
                conditions.push(write.clone());
                let now = self.at(seconds);
                self.reporter.wrote(&write.type_, now);
            }
        }
        plan
    }
}

fn now_is(mut condition: Condition) -> Condition {
    condition.last_transition_time = Some(Time(time(NOW_WHOLE)));
    condition
}

/// Returns the writes of a new leader.
fn written(vote: Option<Vote>, conditions: &[Condition]) -> Vec<Condition> {
    match Leader::new().plan(1, vote, conditions) {
        ReportPlan::Write(writes) => writes,
        ReportPlan::Unchanged | ReportPlan::Wait(_) => Vec::new(),
    }
}

#[test]
fn without_a_vote_nothing_is_written_yet() {
    assert_eq!(written(None, &[]), []);
    assert_eq!(written(None, &[dns_true(), fresh()]), []);
    assert_eq!(written(None, &[dns_false(), fresh()]), []);
}

#[test]
fn a_first_success_is_the_verdict_only_of_a_cluster_that_has_none() {
    let first = Some(Vote::FirstSuccess);
    let both = [now_is(dns_true()), now_is(fresh())];
    assert_eq!(written(first, &[]), both);
    let unknown = element(DNS_READY, "Unknown", "", "");
    assert_eq!(written(first, &[unknown, fresh()]), [now_is(dns_true())]);
    assert_eq!(written(first, &[dns_false(), fresh()]), []);
    assert_eq!(written(first, &[dns_true(), stale("ReporterSilent")]), []);
}

#[test]
fn a_vote_changes_the_verdict_and_its_message_shows_the_failure() {
    let healthy = Some(Vote::Healthy);
    assert_eq!(
        written(healthy, &[dns_false(), fresh()]),
        [now_is(dns_true())]
    );
    let failing = Some(unhealthy());
    assert_eq!(
        written(failing, &[dns_true(), fresh()]),
        [now_is(dns_false())]
    );
}

#[test]
fn an_up_to_date_condition_is_not_written_again() {
    assert_eq!(written(Some(Vote::Healthy), &[dns_true(), fresh()]), []);
    assert_eq!(written(Some(unhealthy()), &[fresh(), dns_false()]), []);
}

#[test]
fn a_vote_makes_a_silent_reporters_verdict_fresh() {
    let conditions = [dns_true(), stale("ReporterSilent")];
    assert_eq!(written(Some(Vote::Healthy), &conditions), [now_is(fresh())]);
}

#[test]
fn another_reason_with_the_same_status_is_corrected_and_keeps_its_time() {
    let overwritten = element(DNS_READY, FALSE, "Other", "other");
    assert_eq!(
        written(Some(unhealthy()), &[overwritten, fresh()]),
        [dns_false()]
    );
}

#[test]
fn a_leader_without_a_vote_marks_the_verdict_stale_after_its_patience() {
    let mut leader = Leader::new();
    let mut conditions = vec![dns_false(), fresh()];
    let deadline = leader.at(30);
    assert_eq!(
        leader.plan(0, None, &conditions),
        ReportPlan::Wait(deadline)
    );
    assert_eq!(
        leader.plan(29, None, &conditions),
        ReportPlan::Wait(deadline)
    );
    let stale = stale(INSUFFICIENT_OBSERVATIONS_REASON);
    assert_eq!(
        leader.act(30, None, &mut conditions),
        ReportPlan::Write(vec![now_is(stale)])
    );
    assert_eq!(leader.plan(31, None, &conditions), ReportPlan::Unchanged);
    assert_eq!(conditions[0], dns_false());
}

#[test]
fn patience_restarts_with_every_vote() {
    let mut leader = Leader::new();
    let conditions = [dns_true(), fresh()];
    let healthy = Some(Vote::Healthy);
    leader.plan(0, None, &conditions);
    assert_eq!(leader.plan(20, healthy, &conditions), ReportPlan::Unchanged);
    let deadline = leader.at(1_030);
    assert_eq!(
        leader.plan(1_000, None, &conditions),
        ReportPlan::Wait(deadline)
    );
}

#[test]
fn a_status_is_written_at_once_but_at_most_once_a_period() {
    let mut leader = Leader::new();
    let mut conditions = vec![dns_true(), fresh()];
    let first = leader.act(10, Some(unhealthy()), &mut conditions);
    assert_eq!(first, ReportPlan::Write(vec![now_is(dns_false())]));
    let next = leader.at(15);
    assert_eq!(
        leader.plan(11, Some(Vote::Healthy), &conditions),
        ReportPlan::Wait(next)
    );
    let second = leader.plan(15, Some(Vote::Healthy), &conditions);
    assert_eq!(second, ReportPlan::Write(vec![now_is(dns_true())]));
}

#[test]
fn a_message_written_just_before_does_not_delay_a_verdict() {
    let mut leader = Leader::new();
    let mut conditions = vec![dns_true(), fresh()];
    let mut tally = Tally::default();
    for (node, fails) in [("n1", true), ("n2", false), ("n3", false)] {
        let vote = if fails { unhealthy() } else { Vote::Healthy };
        tally.count(node, Ballot::Vote(vote));
    }
    let ReportPlan::Write(writes) = leader.plan_of(100, &tally, &conditions) else {
        panic!("one node fails, and the message does not show it");
    };
    assert_eq!(writes[0].status, TRUE);
    for write in &writes {
        leader.reporter.wrote(&write.type_, leader.at(100));
    }
    conditions = writes;
    let ReportPlan::Write(writes) = leader.plan(101, Some(unhealthy()), &conditions) else {
        panic!("all nodes fail, and the status does not show it");
    };
    assert_eq!(writes[0].status, FALSE);
}

#[test]
fn a_message_alone_is_written_at_most_once_a_minute() {
    let servfail = Some(Vote::Unhealthy(failure(DnsClass::ServFail)));
    let mut leader = Leader::new();
    let mut conditions = vec![dns_true(), fresh()];
    leader.act(100, Some(unhealthy()), &mut conditions);
    let next = leader.at(160);
    assert_eq!(
        leader.plan(110, servfail, &conditions),
        ReportPlan::Wait(next)
    );
    let ReportPlan::Write(writes) = leader.plan(160, servfail, &conditions) else {
        panic!("the message is a minute old and out of date");
    };
    assert_eq!(
        writes[0].message,
        "1 of 1 nodes fail: servfail from 10.96.0.10 (1); n1"
    );
    assert_eq!(writes[0].last_transition_time, Some(Time(time(NOW_WHOLE))));
}

#[test]
fn a_new_leader_waits_a_minute_before_it_rewords_a_message() {
    let mut leader = Leader::new();
    let worded = element(DNS_READY, TRUE, DNS_READY_REASON, "all is well");
    let next = leader.at(60);
    let healthy = Some(Vote::Healthy);
    assert_eq!(
        leader.plan(1, healthy, &[worded.clone(), fresh()]),
        ReportPlan::Wait(next)
    );
    let reworded = leader.plan(60, healthy, &[worded, fresh()]);
    assert_eq!(reworded, ReportPlan::Write(vec![dns_true()]));
}

/// Returns a tally of so many healthy, unhealthy and silent nodes.
fn nodes(healthy: usize, failing: usize, silent: usize) -> Tally {
    let mut tally = Tally::default();
    let ballots = std::iter::repeat_n(Ballot::Vote(Vote::Healthy), healthy)
        .chain(std::iter::repeat_n(Ballot::Vote(unhealthy()), failing))
        .chain(std::iter::repeat_n(Ballot::Silent, silent));
    for (number, ballot) in ballots.enumerate() {
        tally.count(&format!("n{number}"), ballot);
    }
    tally
}

#[test]
fn one_failing_node_of_five_is_named_while_the_verdict_stays() {
    let mut leader = Leader::new();
    let worded = element(DNS_READY, TRUE, DNS_READY_REASON, "no node fails");
    let voting = element(REPORTER_READY, TRUE, REPORTING_REASON, "enough nodes vote");
    let ReportPlan::Write(writes) = leader.plan_of(60, &nodes(4, 1, 0), &[worded, voting]) else {
        panic!("the message is out of date");
    };
    let [write] = writes.as_slice() else {
        panic!("{writes:?}");
    };
    assert_eq!(
        (write.status.as_str(), &write.last_transition_time),
        (TRUE, &Some(Time(time(THEN))))
    );
    assert_eq!(
        write.message,
        "1 of 5 nodes fail: timeout from 10.96.0.10 (1); n4"
    );
}

/// `kubectl patch` and writers in Go may leave null behind.
#[test]
fn a_verdict_without_a_time_counts_and_gets_a_time_with_the_next_write() {
    let mut timeless = dns_false();
    timeless.last_transition_time = None;
    let published = [timeless.clone(), fresh()];
    // The published verdict is False, so a first success does not lift it.
    let once = Some(Vote::FirstSuccess);
    assert_eq!(written(once, &published), []);
    timeless.message = "out of date".to_owned();
    let mut leader = Leader::new();
    let ReportPlan::Write(writes) = leader.plan(60, Some(unhealthy()), &[timeless, fresh()]) else {
        panic!("the message is out of date");
    };
    assert_eq!(writes, [now_is(dns_false())]);
}

#[test]
fn a_cluster_that_grows_and_shrinks_without_a_failure_costs_no_write() {
    let mut leader = Leader::new();
    let conditions = [dns_true(), fresh()];
    for (minute, healthy) in (1..).zip([1, 2, 50, 51, 700, 20, 1]) {
        let tally = nodes(healthy, 0, healthy / 3);
        let plan = leader.plan_of(60 * minute, &tally, &conditions);
        assert_eq!(plan, ReportPlan::Unchanged, "{healthy}");
    }
}

#[test]
fn between_the_two_majorities_the_leader_keeps_and_restores_its_own_verdict() {
    let mut leader = Leader::new();
    let mut conditions = vec![dns_true(), fresh()];
    let failing = nodes(1, 9, 0);
    assert!(matches!(
        leader.plan_of(1, &failing, &conditions),
        ReportPlan::Write(_)
    ));
    // The verdict remains, even if it is not written yet or has been overwritten.
    let ReportPlan::Write(writes) = leader.plan_of(2, &nodes(4, 6, 0), &conditions) else {
        panic!("the verdict is not what is published");
    };
    assert_eq!(
        (writes[0].type_.as_str(), writes[0].status.as_str()),
        (DNS_READY, FALSE)
    );
    conditions[0] = dns_false();
    // The next leader takes the published one over.
    let mut next = Leader::new();
    next.plan_of(1, &nodes(4, 6, 0), &conditions);
    assert_eq!(next.reporter.verdicts(), only(Some(false)));
}

#[test]
fn too_few_votes_make_the_verdict_stale_after_a_while() {
    let mut leader = Leader::new();
    let conditions = [dns_true(), fresh()];
    let few = nodes(0, 4, 6);
    let deadline = leader.at(30);
    assert_eq!(
        leader.plan_of(0, &few, &conditions),
        ReportPlan::Wait(deadline)
    );
    let stale = element(
        REPORTER_READY,
        FALSE,
        INSUFFICIENT_OBSERVATIONS_REASON,
        "4 of 10 nodes vote",
    );
    let then = leader.plan_of(30, &few, &conditions);
    assert_eq!(then, ReportPlan::Write(vec![now_is(stale)]));
}

#[test]
fn the_count_of_another_leader_that_also_hears_too_few_is_not_rewritten() {
    let mut conditions = vec![dns_true(), fresh()];
    let mut one = Leader::new();
    assert_eq!(one.reporter.participation(), Participation::Unknown);
    let few = nodes(0, 4, 6);
    one.plan_of(0, &few, &conditions);
    let since = one.at(0);
    assert_eq!(
        one.reporter.participation(),
        Participation::TooFew { since }
    );
    let ReportPlan::Write(writes) = one.plan_of(30, &few, &conditions) else {
        panic!("too few nodes vote, and nothing shows it");
    };
    conditions[1] = writes[0].clone();
    let mut other = Leader::new();
    let fewer = nodes(0, 3, 7);
    for second in [0, 30, 60, 10_000] {
        let plan = other.plan_of(second, &fewer, &conditions);
        assert_eq!(plan, ReportPlan::Unchanged, "{second}");
    }
    // Its own count it keeps up to date.
    one.reporter.wrote(REPORTER_READY, one.at(30));
    let ReportPlan::Write(writes) = one.plan_of(90, &fewer, &conditions) else {
        panic!("the message is out of date");
    };
    assert_eq!(writes[0].message, "3 of 10 nodes vote");
}

#[test]
fn a_failure_that_silent_nodes_could_outvote_makes_the_verdict_stale_and_keeps_it() {
    let mut leader = Leader::new();
    let conditions = [dns_true(), fresh()];
    let half = nodes(0, 1, 1);
    leader.plan_of(0, &half, &conditions);
    let ReportPlan::Write(writes) = leader.plan_of(30, &half, &conditions) else {
        panic!("too few nodes vote, and nothing shows it");
    };
    let [write] = writes.as_slice() else {
        panic!("{writes:?}");
    };
    assert_eq!(write.reason, INSUFFICIENT_OBSERVATIONS_REASON);
    assert_eq!(
        write.message,
        "1 of 2 nodes vote; 1 fail, not more than half of all"
    );
}

#[test]
fn enough_votes_on_neither_side_report_without_a_first_verdict() {
    let voting = element(REPORTER_READY, TRUE, REPORTING_REASON, "enough nodes vote");
    let plan = Leader::new().plan_of(1, &nodes(4, 6, 0), &[]);
    assert_eq!(plan, ReportPlan::Write(vec![now_is(voting)]));
}

fn votes() -> impl Strategy<Value = Option<Vote>> {
    prop_oneof![
        Just(None),
        Just(Some(Vote::FirstSuccess)),
        Just(Some(Vote::Healthy)),
        Just(Some(unhealthy())),
        Just(Some(Vote::Unhealthy(failure(DnsClass::Refused)))),
    ]
}

fn conditions() -> impl Strategy<Value = Vec<Condition>> {
    let dns = prop_oneof![
        Just(None),
        Just(Some(dns_true())),
        Just(Some(dns_false())),
        Just(Some(element(DNS_READY, "Unknown", "Odd", ""))),
    ];
    let reporter = prop_oneof![
        Just(None),
        Just(Some(fresh())),
        Just(Some(stale("ReporterSilent")))
    ];
    (dns, reporter).prop_map(|(dns, reporter)| [dns, reporter].into_iter().flatten().collect())
}

proptest! {
    #[test]
    fn a_written_condition_is_not_written_again(vote in votes(), mut conditions in conditions(), at in 0_u64..100) {
        let mut leader = Leader::new();
        leader.act(at, vote, &mut conditions);
        leader.act(at + 100, vote, &mut conditions);
        let again = leader.plan(at + 1_000, vote, &conditions);
        if vote.is_some() && vote != Some(Vote::FirstSuccess) {
            prop_assert_eq!(again, ReportPlan::Unchanged);
        }
    }

    #[test]
    fn planning_twice_plans_the_same(vote in votes(), conditions in conditions(), at in 0_u64..100) {
        let mut leader = Leader::new();
        let once = leader.plan(at, vote, &conditions);
        prop_assert_eq!(leader.plan(at, vote, &conditions), once);
    }

    #[test]
    fn a_transition_time_moves_exactly_when_the_status_does(vote in votes(), conditions in conditions(), at in 0_u64..100) {
        if let ReportPlan::Write(writes) = Leader::new().plan(at, vote, &conditions) {
            for write in writes {
                let same = find(&conditions, &write.type_).is_some_and(|c| c.status == write.status);
                let expected = if same { THEN } else { NOW_WHOLE };
                prop_assert_eq!(write.last_transition_time, Some(Time(time(expected))));
            }
        }
    }

    #[test]
    fn a_condition_is_written_at_most_once_a_period(votes in prop::collection::vec(votes(), 1..60)) {
        let mut leader = Leader::new();
        let mut conditions = Vec::new();
        let mut last: BTreeMap<String, u64> = BTreeMap::new();
        for (second, vote) in (0..).zip(votes) {
            if let ReportPlan::Write(writes) = leader.act(second, vote, &mut conditions) {
                for write in writes {
                    let before = last.insert(write.type_, second);
                    prop_assert!(before.is_none_or(|before| second - before >= 5));
                }
            }
        }
    }

    #[test]
    fn waiting_until_the_planned_moment_leads_to_a_write(vote in votes(), conditions in conditions(), at in 0_u64..29) {
        let mut leader = Leader::new();
        if let ReportPlan::Wait(until) = leader.plan(at, vote, &conditions) {
            prop_assert!(until > leader.at(at));
            let seconds = (until - leader.started).as_secs();
            let then = leader.plan(seconds, vote, &conditions);
            prop_assert!(matches!(then, ReportPlan::Write(_)));
        }
    }
}
