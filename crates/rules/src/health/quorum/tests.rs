use proptest::prelude::*;

use super::*;
use crate::health::failure::FailureClass;

const QUORUM: Quorum = Quorum {
    min_answering: 50,
    failure: 80,
};

fn failure(class: FailureClass) -> Failure {
    Failure::new(class, "10.96.0.10:53".parse().unwrap())
}

fn unhealthy() -> Ballot {
    Ballot::Vote(Vote::Unhealthy(failure(FailureClass::Timeout)))
}

fn tally(answers: &[Ballot]) -> Tally {
    let mut tally = Tally::default();
    for (number, answer) in answers.iter().enumerate() {
        tally.count(&format!("n{number:03}"), *answer);
    }
    tally
}

/// So many nodes that vote healthy, vote unhealthy, and are silent.
fn nodes(healthy: usize, failing: usize, silent: usize) -> Tally {
    let mut answers = vec![Ballot::Vote(Vote::Healthy); healthy];
    answers.resize(healthy + failing, unhealthy());
    answers.resize(healthy + failing + silent, Ballot::Silent);
    tally(&answers)
}

fn verdict(tally: &Tally, standing: Option<bool>) -> Option<bool> {
    let verdict = QUORUM.judge(tally, standing).verdict;
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
            "neither side, and no verdict stands",
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
    for (sentence, tally, standing, expected) in cases {
        assert_eq!(verdict(&tally, standing), expected, "{sentence}");
    }
}

#[test]
fn silent_nodes_neither_vote_nor_veto() {
    // One in five silent: as without them.
    assert_eq!(verdict(&nodes(0, 8, 2), Some(true)), Some(false));
    assert_eq!(verdict(&nodes(8, 0, 2), Some(false)), Some(true));
    // Half of the nodes vote: enough.
    assert_eq!(verdict(&nodes(0, 5, 5), Some(true)), Some(false));
    // Three in five silent: no verdict, whatever the others say.
    for standing in [None, Some(true), Some(false)] {
        let judgement = QUORUM.judge(&nodes(0, 4, 6), standing);
        assert_eq!((judgement.verdict, judgement.sufficient), (None, false));
    }
    assert_eq!(verdict(&nodes(0, 0, 0), Some(true)), None);
}

#[test]
fn a_first_success_counts_only_while_no_verdict_stands() {
    let first = tally(&[Ballot::Vote(Vote::FirstSuccess); 4]);
    assert_eq!(verdict(&first, None), Some(true));
    for standing in [true, false] {
        let judgement = QUORUM.judge(&first, Some(standing));
        assert_eq!((judgement.verdict, judgement.sufficient), (None, false));
        assert_eq!(judgement.message, "0 of 4 nodes vote");
    }
}

#[test]
fn a_judgement_says_how_many_vote_even_when_neither_side_has_enough() {
    let judgement = QUORUM.judge(&nodes(4, 6, 3), None);
    assert!(judgement.sufficient);
    assert_eq!(judgement.verdict, None);
    assert_eq!(judgement.message, "10 of 13 nodes vote");
}

#[test]
fn a_message_counts_nodes_and_kinds_of_failure_and_names_three_of_each() {
    let vote = |class| Ballot::Vote(Vote::Unhealthy(failure(class)));
    let timeout = vote(FailureClass::Timeout);
    let refused = vote(FailureClass::Refused);
    let nodata = vote(FailureClass::NoData);
    let servfail = vote(FailureClass::ServFail);
    let cases = [
        (vec![], "0 of 5 nodes fail"),
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

fn answers() -> impl Strategy<Value = Vec<Ballot>> {
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

fn standing() -> impl Strategy<Value = Option<bool>> {
    prop_oneof![Just(None), Just(Some(true)), Just(Some(false))]
}

/// The verdict after these answers: what stands when there is none.
fn after(quorum: Quorum, answers: &[Ballot], standing: Option<bool>) -> Option<bool> {
    let judged = quorum.judge(&tally(answers), standing).verdict;
    judged.map_or(standing, |verdict| Some(verdict.healthy))
}

proptest! {
    #[test]
    fn a_node_that_does_not_vote_can_only_take_the_verdict_away(
        quorum in quorums(), mut answers in answers(), standing in standing(), silent in any::<bool>(),
    ) {
        let before = quorum.judge(&tally(&answers), standing).verdict.map(|verdict| verdict.healthy);
        answers.push(if silent { Ballot::Silent } else { Ballot::NoVote });
        let with = quorum.judge(&tally(&answers), standing).verdict.map(|verdict| verdict.healthy);
        prop_assert!(with.is_none() || with == before);
    }

    #[test]
    fn a_vote_that_turns_healthy_never_turns_the_verdict_unhealthy(
        quorum in quorums(), answers in answers(), standing in standing(), turned in any::<prop::sample::Index>(),
    ) {
        let failing: Vec<usize> = (0..answers.len()).filter(|at| answers[*at] == unhealthy()).collect();
        prop_assume!(!failing.is_empty());
        let mut better = answers.clone();
        better[failing[turned.index(failing.len())]] = Ballot::Vote(Vote::Healthy);
        // None is between the two.
        let rank = |verdict| match verdict { Some(false) => 0, None => 1, Some(true) => 2 };
        prop_assert!(rank(after(quorum, &better, standing)) >= rank(after(quorum, &answers, standing)));
    }

    #[test]
    fn the_same_answers_again_change_nothing(
        quorum in quorums(), answers in answers(), standing in standing(),
    ) {
        let settled: Vec<Ballot> = answers.iter().copied()
            .filter(|answer| *answer != Ballot::Vote(Vote::FirstSuccess)).collect();
        let once = after(quorum, &settled, standing);
        prop_assert_eq!(after(quorum, &settled, once), once);
    }

    #[test]
    fn no_order_of_the_nodes_matters(quorum in quorums(), answers in answers(), standing in standing()) {
        let reversed: Vec<Ballot> = answers.iter().rev().copied().collect();
        prop_assert_eq!(after(quorum, &answers, standing), after(quorum, &reversed, standing));
    }

    #[test]
    fn a_verdict_turns_only_with_the_votes_it_takes(
        quorum in quorums(), answers in answers(), standing in standing(),
    ) {
        let tally = tally(&answers);
        let votes = tally.healthy + tally.failing.len();
        let turned = quorum.judge(&tally, standing).verdict.map(|verdict| verdict.healthy);
        match (standing, turned) {
            (Some(true), Some(false)) => {
                prop_assert!(tally.failing.len() * 100 >= votes * usize::from(quorum.failure));
            }
            (Some(false), Some(true)) => prop_assert!(tally.failing.len() * 2 <= votes),
            _ => {}
        }
    }
}
