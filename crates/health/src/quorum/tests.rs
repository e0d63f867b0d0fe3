use std::time::{Duration, Instant};

use fastrand::Rng;
use proptest::prelude::*;

use super::*;
use crate::dns::DnsClass;
use crate::observation::{Family, Impairment, Observation, Pods, Symptom};
use crate::threshold::{Round, Threshold, Thresholds};

const QUORUM: Quorum = Quorum {
    min_answering: 50,
    failure: 80,
};

fn failure(class: DnsClass) -> Failure {
    Failure::new(class, "10.96.0.10:53".parse().unwrap())
}

fn unhealthy() -> Ballot {
    Ballot::Vote(Vote::Unhealthy(failure(DnsClass::Timeout)))
}

fn tally(ballots: &[Ballot]) -> Tally {
    let mut tally = Tally::default();
    for (number, ballot) in ballots.iter().enumerate() {
        tally.count(&format!("n{number:03}"), *ballot);
    }
    tally
}

/// Returns a tally of so many healthy, unhealthy and silent nodes.
fn nodes(healthy: usize, failing: usize, silent: usize) -> Tally {
    let mut ballots = vec![Ballot::Vote(Vote::Healthy); healthy];
    ballots.resize(healthy + failing, unhealthy());
    ballots.resize(healthy + failing + silent, Ballot::Silent);
    tally(&ballots)
}

fn verdict(tally: &Tally, current: Option<bool>) -> Option<bool> {
    let verdict = QUORUM.judge(tally, current).verdict;
    verdict.map(|verdict| verdict.healthy)
}

#[test]
fn a_large_majority_fails_a_cluster_and_half_of_the_votes_clear_it() {
    let (up, down) = (Some(true), Some(false));
    let cases = [
        ("eight of ten votes", nodes(2, 8, 0), up, down),
        ("fewer than eight of ten", nodes(3, 7, 0), up, up),
        ("more than half still fail", nodes(4, 6, 0), down, down),
        ("half fail", nodes(5, 5, 0), down, up),
        ("no failure", nodes(10, 0, 0), down, up),
        ("all fail", nodes(0, 10, 0), None, down),
        (
            "neither side, and no verdict yet",
            nodes(4, 6, 0),
            None,
            None,
        ),
        (
            "of three votes two are less than 80%",
            nodes(1, 2, 0),
            up,
            up,
        ),
        ("a node alone", nodes(0, 1, 0), up, down),
    ];
    for (sentence, tally, current, expected) in cases {
        assert_eq!(verdict(&tally, current), expected, "{sentence}");
    }
}

const PERIOD: Duration = Duration::from_secs(5);
const THRESHOLD: Duration = Duration::from_secs(30);
/// The rounds of a day.
const ROUNDS: u32 = 24 * 60 * 60 / 5;

/// At 1% of lost rounds no verdict turns, with the defaults of a declared signal: where each node asks, where the leader
/// alone does, and where a lost round is no observation, as of a Prometheus. Case S10.
#[test]
fn day_of_loss_turns_nothing() {
    let late = Observation::Failed(failure(DnsClass::Timeout));
    for (seed, voters, lost) in [(11, 5, late), (12, 1, late), (13, 1, Observation::Internal)] {
        let mut random = Rng::with_seed(seed);
        let state = Threshold::new(Thresholds {
            period: PERIOD,
            failure: THRESHOLD,
            success: THRESHOLD,
            silence: THRESHOLD,
            max_hold: Duration::from_mins(5),
        });
        let mut states = vec![state; voters];
        let (start, mut current, mut losses) = (Instant::now(), None, 0);
        for number in 0..ROUNDS {
            let scheduled = start + PERIOD * number;
            for state in &mut states {
                // Who has never seen it work has no verdict.
                let is_lost = number > 0 && random.f64() < 0.01;
                losses += u32::from(is_lost);
                let observation = if is_lost { lost } else { Observation::Success };
                let took = Duration::from_millis(if is_lost { 2_000 } else { 10 });
                state.observe(&Round {
                    scheduled,
                    finished: scheduled + took,
                    observation,
                });
            }
            let ballots = states.iter().map(Threshold::vote);
            let ballots = ballots.map(|vote| vote.map_or(Ballot::NoVote, Ballot::Vote));
            let judged = verdict(&tally(&ballots.collect::<Vec<_>>()), current);
            // Until a node has seen it work for the threshold, its vote counts only while there is no verdict.
            if PERIOD * number > THRESHOLD {
                assert_eq!(judged, Some(true), "round {number}, seed {seed}");
            }
            current = judged.or(current);
        }
        assert!(losses > ROUNDS / 200, "{losses} losses, seed {seed}");
    }
}

#[test]
fn silent_nodes_neither_vote_nor_veto() {
    // One in five is silent: the verdict is as without them.
    assert_eq!(verdict(&nodes(0, 8, 2), Some(true)), Some(false));
    assert_eq!(verdict(&nodes(8, 0, 2), Some(false)), Some(true));
    // Half of the nodes vote, which is enough.
    assert_eq!(verdict(&nodes(5, 0, 5), Some(false)), Some(true));
    assert_eq!(verdict(&nodes(0, 5, 5), Some(false)), Some(false));
    // Three in five are silent: there is no verdict, however the others vote.
    for current in [None, Some(true), Some(false)] {
        let judgement = QUORUM.judge(&nodes(0, 4, 6), current);
        assert_eq!((judgement.verdict, judgement.sufficient), (None, false));
    }
    assert_eq!(verdict(&nodes(0, 0, 0), Some(true)), None);
}

/// With two nodes, one of them silent, the other alone must not fail the whole cluster.
#[test]
fn silence_is_not_agreement_a_failure_takes_more_than_half_of_all_nodes() {
    for current in [None, Some(true)] {
        for (failing, silent, message) in [
            (1, 1, "1 of 2 nodes vote; 1 fail, not more than half of all"),
            (
                5,
                5,
                "5 of 10 nodes vote; 5 fail, not more than half of all",
            ),
        ] {
            let judgement = QUORUM.judge(&nodes(0, failing, silent), current);
            assert_eq!((judgement.verdict, judgement.sufficient), (None, false));
            assert_eq!(judgement.message, message);
        }
        assert_eq!(verdict(&nodes(0, 6, 4), current), Some(false));
        // Most nodes fail, but silent ones could not outvote those that work.
        assert_eq!(verdict(&nodes(1, 4, 4), Some(true)), None);
        assert_eq!(verdict(&nodes(2, 4, 3), Some(true)), Some(true));
    }
    // With fewer votes than `min_answering` demands, the message does not depend on their failures.
    let judgement = QUORUM.judge(&nodes(0, 1, 2), Some(true));
    assert_eq!(judgement.message, "1 of 3 nodes vote");
}

#[test]
fn a_first_success_counts_only_while_there_is_no_verdict() {
    let first = tally(&[Ballot::Vote(Vote::FirstSuccess); 4]);
    assert_eq!(verdict(&first, None), Some(true));
    for current in [true, false] {
        let judgement = QUORUM.judge(&first, Some(current));
        assert_eq!((judgement.verdict, judgement.sufficient), (None, false));
        assert_eq!(judgement.message, "0 of 4 nodes vote");
    }
}

#[test]
fn a_judgement_counts_votes_even_when_neither_side_has_enough() {
    let judgement = QUORUM.judge(&nodes(4, 6, 3), None);
    assert!(judgement.sufficient);
    assert_eq!(judgement.verdict, None);
    assert_eq!(judgement.message, "enough nodes vote");
    let judgement = QUORUM.judge(&nodes(4, 1, 6), None);
    assert!(!judgement.sufficient);
    assert_eq!(judgement.message, "5 of 11 nodes vote");
}

#[test]
fn a_message_counts_nodes_and_kinds_of_failure_and_names_three_of_each() {
    let [timeout, refused, nodata, servfail] = [
        DnsClass::Timeout,
        DnsClass::Refused,
        DnsClass::NoData,
        DnsClass::ServFail,
    ]
    .map(|class| Ballot::Vote(Vote::Unhealthy(failure(class))));
    let cases = [
        (vec![], "no node fails"),
        (
            vec![("n2", timeout), ("n1", timeout)],
            "2 of 5 nodes fail: timeout from 10.96.0.10 (2); n1, n2",
        ),
        (
            vec![
                ("a", timeout),
                ("b", refused),
                ("c", refused),
                ("d", nodata),
                ("e", servfail),
            ],
            "5 of 5 nodes fail: refused from 10.96.0.10 (2), nodata from 10.96.0.10 (1), \
             servfail from 10.96.0.10 (1), …; a, b, c, …",
        ),
    ];
    for (failing, expected) in cases {
        let mut tally = Tally::default();
        for number in failing.len()..5 {
            tally.count(&format!("well{number}"), Ballot::NoVote);
        }
        for (node, answer) in failing {
            tally.count(node, answer);
        }
        assert_eq!(tally.message(), expected);
    }
}

/// Returns the messages of both conditions.
fn messages(tally: &Tally) -> (String, String) {
    let judgement = QUORUM.judge(tally, Some(true));
    (judgement.verdict.unwrap().message, judgement.message)
}

#[test]
fn while_nothing_fails_the_messages_do_not_change_with_the_number_of_nodes() {
    let same = messages(&nodes(3, 0, 0));
    assert_eq!(
        same,
        ("no node fails".to_owned(), "enough nodes vote".to_owned())
    );
    for others in [nodes(4, 0, 0), nodes(30, 0, 0), nodes(30, 0, 2)] {
        assert_eq!(messages(&others), same);
    }
    let (failures, votes) = messages(&nodes(9, 1, 3));
    assert!(failures.starts_with("1 of 13 nodes fail: "), "{failures}");
    assert_eq!(votes, "enough nodes vote");
}

#[test]
fn a_family_without_responses_is_named_and_counts_as_healthy() {
    let [a, aaaa] = Family::ALL.map(|family| {
        Ballot::Vote(Vote::Partial(Partial {
            silent: Some(family),
            pods: Pods::default(),
        }))
    });
    let healthy = Ballot::Vote(Vote::Healthy);
    let cases = [
        (
            vec![healthy, aaaa],
            "no node fails; AAAA queries get no response on n001",
        ),
        (
            vec![aaaa, aaaa, aaaa, aaaa, healthy],
            "no node fails; AAAA queries get no response on n000, n001, n002, …",
        ),
        (
            vec![aaaa, aaaa, aaaa, aaaa],
            "no node fails; AAAA queries get no response on any node",
        ),
        (
            vec![a, aaaa],
            "no node fails; A queries get no response on n000; AAAA queries get no response on n001",
        ),
        (
            vec![aaaa, unhealthy(), Ballot::NoVote],
            "1 of 3 nodes fail: timeout from 10.96.0.10 (1); n001; AAAA queries get no response on any node",
        ),
    ];
    for (ballots, expected) in cases {
        let tally = tally(&ballots);
        assert_eq!(tally.message(), expected);
        assert_eq!(verdict(&tally, Some(true)), Some(true), "{expected}");
    }
}

#[test]
fn impaired_pods_are_named() {
    let fails = |class| {
        Some(Impairment {
            symptom: Symptom::Fails,
            failure: failure(class),
        })
    };
    let waits = Some(Impairment {
        symptom: Symptom::Waits,
        failure: failure(DnsClass::Timeout),
    });
    let partial = |silent, pods: [_; 3]| {
        let pods = pods.into();
        Ballot::Vote(Vote::Partial(Partial { silent, pods }))
    };
    let musl = partial(None, [None, fails(DnsClass::NxDomain), None]);
    let stranger = partial(None, [fails(DnsClass::Mismatch); 3]);
    let silent = partial(Some(Family::Aaaa), [waits, fails(DnsClass::Timeout), waits]);
    let cases = [
        (
            vec![musl, musl],
            "no node fails; pods with musl fail (nxdomain from 10.96.0.10) on any node",
        ),
        (
            vec![Ballot::Vote(Vote::Healthy), stranger],
            "no node fails; pods with glibc and musl and Go fail by a stranger's address (mismatch from 10.96.0.10) on n001",
        ),
        (
            vec![silent],
            "no node fails; AAAA queries get no response on any node; pods with glibc and Go wait (timeout from 10.96.0.10) on any node; pods with musl fail (timeout from 10.96.0.10) on any node",
        ),
    ];
    for (ballots, expected) in cases {
        let tally = tally(&ballots);
        assert_eq!(tally.message(), expected);
        assert_eq!(verdict(&tally, Some(true)), Some(true), "{expected}");
    }
}

fn ballots() -> impl Strategy<Value = Vec<Ballot>> {
    let answer = prop_oneof![
        Just(Ballot::Vote(Vote::Healthy)),
        Just(Ballot::Vote(Vote::FirstSuccess)),
        Just(unhealthy()),
        Just(Ballot::NoVote),
        Just(Ballot::Silent),
    ];
    prop::collection::vec(answer, 0..60)
}

fn quorums() -> impl Strategy<Value = Quorum> {
    (1_u8..=100, 51_u8..=100).prop_map(|(min_answering, failure)| Quorum {
        min_answering,
        failure,
    })
}

fn verdicts() -> impl Strategy<Value = Option<bool>> {
    prop_oneof![Just(None), Just(Some(true)), Just(Some(false))]
}

/// Returns the verdict after these ballots, or the current one if they bring none.
fn after(quorum: Quorum, ballots: &[Ballot], current: Option<bool>) -> Option<bool> {
    let judged = quorum.judge(&tally(ballots), current).verdict;
    judged.map_or(current, |verdict| Some(verdict.healthy))
}

proptest! {
    #[test]
    fn a_node_that_does_not_vote_can_only_take_the_verdict_away(
        quorum in quorums(), mut ballots in ballots(), current in verdicts(), silent in any::<bool>(),
    ) {
        let before = quorum.judge(&tally(&ballots), current).verdict.map(|verdict| verdict.healthy);
        ballots.push(if silent { Ballot::Silent } else { Ballot::NoVote });
        let with = quorum.judge(&tally(&ballots), current).verdict.map(|verdict| verdict.healthy);
        prop_assert!(with.is_none() || with == before);
    }

    #[test]
    fn a_vote_that_becomes_healthy_never_makes_the_verdict_unhealthy(
        quorum in quorums(), ballots in ballots(), current in verdicts(), changed in any::<prop::sample::Index>(),
    ) {
        let failing: Vec<usize> = (0..ballots.len()).filter(|at| ballots[*at] == unhealthy()).collect();
        prop_assume!(!failing.is_empty());
        let mut better = ballots.clone();
        better[failing[changed.index(failing.len())]] = Ballot::Vote(Vote::Healthy);
        // No verdict is between the two.
        let rank = |verdict| match verdict { Some(false) => 0, None => 1, Some(true) => 2 };
        prop_assert!(rank(after(quorum, &better, current)) >= rank(after(quorum, &ballots, current)));
    }

    #[test]
    fn the_same_ballots_again_change_nothing(
        quorum in quorums(), ballots in ballots(), current in verdicts(),
    ) {
        let settled: Vec<Ballot> = ballots.iter().copied()
            .filter(|ballot| *ballot != Ballot::Vote(Vote::FirstSuccess)).collect();
        let once = after(quorum, &settled, current);
        prop_assert_eq!(after(quorum, &settled, once), once);
    }

    #[test]
    fn no_order_of_the_nodes_matters(quorum in quorums(), ballots in ballots(), current in verdicts()) {
        let reversed: Vec<Ballot> = ballots.iter().rev().copied().collect();
        prop_assert_eq!(after(quorum, &ballots, current), after(quorum, &reversed, current));
    }

    #[test]
    fn a_verdict_changes_only_with_the_votes_it_takes(
        quorum in quorums(), ballots in ballots(), current in verdicts(),
    ) {
        let tally = tally(&ballots);
        let votes = tally.healthy + tally.failing.len();
        let after = quorum.judge(&tally, current).verdict.map(|verdict| verdict.healthy);
        match (current, after) {
            (Some(true), Some(false)) => {
                prop_assert!(tally.failing.len() * 100 >= votes * usize::from(quorum.failure));
                prop_assert!(tally.failing.len() * 2 > tally.known());
            }
            (Some(false), Some(true)) => prop_assert!(tally.failing.len() * 2 <= votes),
            _ => {}
        }
    }
}
