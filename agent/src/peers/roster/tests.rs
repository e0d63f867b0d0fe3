use karmada_rules::health::failure::FailureClass;
use karmada_rules::health::observation::Failure;

use super::*;

const HEALTHY: Ballot = Ballot::Vote(Vote::Healthy);

fn unhealthy() -> Ballot {
    let server = "10.96.0.10:53".parse().unwrap();
    Ballot::Vote(Vote::Unhealthy(Failure::new(FailureClass::Timeout, server)))
}

/// Peers by key, with the node that the member's API tells and their addresses.
fn list(peers: &[(&str, Option<&str>, &[&str])]) -> List {
    let peer = |(key, node, addresses): &(&str, Option<&str>, &[&str])| {
        let peer = Peer {
            node: node.map(ToOwned::to_owned),
            addresses: addresses.iter().map(ToString::to_string).collect(),
        };
        ((*key).to_owned(), peer)
    };
    peers.iter().map(peer).collect()
}

fn roster(peers: &[(&str, Option<&str>, &[&str])]) -> Roster {
    let mut roster = Roster::new("n0".to_owned());
    roster.update(&list(peers));
    roster
}

/// Peers of which only the address is known.
fn addressed(addresses: &[&str]) -> Roster {
    let peer = |address: &&str| {
        let peer = Peer {
            node: None,
            addresses: vec![(*address).to_owned()],
        };
        ((*address).to_owned(), peer)
    };
    let mut roster = Roster::new("n0".to_owned());
    roster.update(&addresses.iter().map(peer).collect());
    roster
}

fn standbys(roster: &mut Roster) -> Vec<String> {
    let asks = roster.asks().into_iter();
    asks.filter(|ask| ask.standby).map(|ask| ask.peer).collect()
}

#[test]
fn every_node_counts_once_and_our_own_with_our_vote() {
    let mut roster = addressed(&["a", "b", "c", "d"]);
    roster.answered("a", "n1".to_owned(), unhealthy());
    roster.answered("b", "n1".to_owned(), HEALTHY);
    roster.answered("c", "n0".to_owned(), unhealthy());
    roster.silent("d");
    let tally = roster.tally(Some(Vote::Healthy));
    assert_eq!(
        (tally.healthy, tally.failing.len(), tally.silent),
        (1, 1, 1)
    );
    assert_eq!(tally.failing.keys().collect::<Vec<_>>(), ["n1"]);
}

#[test]
fn what_the_api_says_of_an_agents_node_counts_more_than_its_own_word() {
    let mut roster = roster(&[("n1", Some("n1"), &["a"]), ("n2", Some("n2"), &["b"])]);
    roster.answered("n1", "n2".to_owned(), unhealthy());
    roster.answered("n2", "n2".to_owned(), HEALTHY);
    let tally = roster.tally(None);
    assert_eq!((tally.healthy, tally.no_vote), (1, 1));
    assert_eq!(tally.failing.keys().collect::<Vec<_>>(), ["n1"]);
}

#[test]
fn an_agent_that_falls_silent_is_still_known_to_be_ourselves_or_another() {
    let mut roster = addressed(&["a", "b"]);
    roster.answered("a", "n0".to_owned(), HEALTHY);
    roster.answered("b", "n1".to_owned(), HEALTHY);
    assert_eq!(roster.tally(None).known(), 2);
    roster.silent("a");
    roster.silent("b");
    let tally = roster.tally(None);
    assert_eq!((tally.known(), tally.silent), (2, 1));
}

#[test]
fn one_of_two_addresses_of_a_node_that_answers_is_enough() {
    let mut roster = addressed(&["a", "b"]);
    for address in ["a", "b"] {
        roster.answered(address, "n1".to_owned(), HEALTHY);
    }
    roster.silent("a");
    let tally = roster.tally(None);
    assert_eq!((tally.healthy, tally.silent), (1, 0));
}

#[test]
fn an_agent_not_asked_yet_is_silent() {
    let mut roster = addressed(&["a"]);
    roster.answered("a", "n1".to_owned(), HEALTHY);
    let both = list(&[("a", None, &["a"]), ("b", None, &["b"])]);
    roster.update(&both);
    let tally = roster.tally(None);
    assert_eq!((tally.healthy, tally.silent), (1, 1));
    assert_eq!(roster.silent_nodes().count(), 0);
}

#[test]
fn who_leaves_the_list_is_no_longer_counted_and_who_moves_keeps_its_answer() {
    let mut roster = roster(&[("n1", Some("n1"), &["a"]), ("n2", Some("n2"), &["b"])]);
    roster.answered("n1", "n1".to_owned(), unhealthy());
    roster.answered("n2", "n2".to_owned(), HEALTHY);
    roster.update(&list(&[("n1", Some("n1"), &["c"])]));
    let tally = roster.tally(None);
    assert_eq!((tally.known(), tally.failing.len()), (2, 1));
    assert_eq!(roster.asks()[0].address, "c");
}

#[test]
fn another_address_of_an_agent_is_asked_after_silence() {
    let mut roster = roster(&[("n1", Some("n1"), &["a", "b"])]);
    let mut asked = Vec::new();
    for _ in 0..3 {
        asked.extend(roster.asks().into_iter().map(|ask| ask.address));
        roster.silent("n1");
    }
    roster.answered("n1", "n1".to_owned(), HEALTHY);
    asked.extend(roster.asks().into_iter().map(|ask| ask.address));
    assert_eq!(asked, ["a", "b", "a", "b"]);
}

#[test]
fn two_agents_stand_by_for_as_long_as_they_answer() {
    let mut roster = addressed(&["a", "b", "c", "d"]);
    assert_eq!(standbys(&mut roster), ["a", "b"]);
    for (peer, node) in [("b", "n2"), ("c", "n3"), ("d", "n4")] {
        roster.answered(peer, node.to_owned(), HEALTHY);
    }
    roster.silent("a");
    assert_eq!(standbys(&mut roster), ["b", "c"]);
    roster.answered("a", "n1".to_owned(), HEALTHY);
    assert_eq!(standbys(&mut roster), ["b", "c"]);
    for peer in ["b", "c", "d"] {
        roster.silent(peer);
    }
    assert_eq!(standbys(&mut roster), ["a"]);
}

#[test]
fn nobody_stands_by_for_itself() {
    let mut roster = addressed(&["a"]);
    roster.answered("a", "n0".to_owned(), HEALTHY);
    assert_eq!(standbys(&mut roster), [""; 0]);
}
