use karmada_rules::health::failure::FailureClass;
use karmada_rules::health::observation::Failure;

use super::*;

const HEALTHY: Ballot = Ballot::Vote(Vote::Healthy);

fn unhealthy() -> Ballot {
    let server = "10.96.0.10:53".parse().unwrap();
    Ballot::Vote(Vote::Unhealthy(Failure::new(FailureClass::Timeout, server)))
}

/// Returns peers by key, with the node that the member's API names and their addresses.
fn list(peers: &[(&str, Option<&str>, &[&str])]) -> PeerList {
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

/// Returns a roster of peers of which only the address is known.
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
    let requests = roster.requests().into_iter();
    let standbys = requests.filter(|request| request.standby);
    standbys.map(|request| request.peer).collect()
}

#[test]
fn every_node_counts_once_and_our_own_with_our_vote() {
    let mut roster = addressed(&["a", "b", "c", "d"]);
    roster.record("a", "n1".to_owned(), unhealthy());
    roster.record("b", "n1".to_owned(), HEALTHY);
    roster.record("c", "n0".to_owned(), unhealthy());
    roster.record_silence("d");
    let tally = roster.tally(Some(Vote::Healthy));
    assert_eq!(
        (tally.healthy, tally.failing.len(), tally.silent),
        (1, 1, 1)
    );
    assert_eq!(tally.failing.keys().collect::<Vec<_>>(), ["n1"]);
}

#[test]
fn the_node_in_the_api_takes_precedence_over_the_one_an_agent_claims() {
    let mut roster = roster(&[("n1", Some("n1"), &["a"]), ("n2", Some("n2"), &["b"])]);
    roster.record("n1", "n2".to_owned(), unhealthy());
    roster.record("n2", "n2".to_owned(), HEALTHY);
    let tally = roster.tally(None);
    assert_eq!((tally.healthy, tally.no_vote), (1, 1));
    assert_eq!(tally.failing.keys().collect::<Vec<_>>(), ["n1"]);
}

#[test]
fn an_agent_that_falls_silent_is_still_known_to_be_ourselves_or_another() {
    let mut roster = addressed(&["a", "b"]);
    roster.record("a", "n0".to_owned(), HEALTHY);
    roster.record("b", "n1".to_owned(), HEALTHY);
    assert_eq!(roster.tally(None).known(), 2);
    roster.record_silence("a");
    roster.record_silence("b");
    let tally = roster.tally(None);
    assert_eq!((tally.known(), tally.silent), (2, 1));
}

#[test]
fn one_address_of_a_node_that_responds_is_enough() {
    let mut roster = addressed(&["a", "b"]);
    for address in ["a", "b"] {
        roster.record(address, "n1".to_owned(), HEALTHY);
    }
    roster.record_silence("a");
    let tally = roster.tally(None);
    assert_eq!((tally.healthy, tally.silent), (1, 0));
}

#[test]
fn an_agent_without_a_request_yet_is_silent() {
    let mut roster = addressed(&["a"]);
    roster.record("a", "n1".to_owned(), HEALTHY);
    let both = list(&[("a", None, &["a"]), ("b", None, &["b"])]);
    roster.update(&both);
    let tally = roster.tally(None);
    assert_eq!((tally.healthy, tally.silent), (1, 1));
    assert_eq!(roster.silent_nodes().count(), 0);
}

#[test]
fn an_agent_that_leaves_the_list_is_not_counted_and_one_that_moves_keeps_its_ballot() {
    let mut roster = roster(&[("n1", Some("n1"), &["a"]), ("n2", Some("n2"), &["b"])]);
    roster.record("n1", "n1".to_owned(), unhealthy());
    roster.record("n2", "n2".to_owned(), HEALTHY);
    roster.update(&list(&[("n1", Some("n1"), &["c"])]));
    let tally = roster.tally(None);
    assert_eq!((tally.known(), tally.failing.len()), (2, 1));
    assert_eq!(roster.requests()[0].address, "c");
}

#[test]
fn the_request_after_silence_goes_to_another_address() {
    let mut roster = roster(&[("n1", Some("n1"), &["a", "b"])]);
    let mut addresses = Vec::new();
    for _ in 0..3 {
        addresses.extend(roster.requests().into_iter().map(|request| request.address));
        roster.record_silence("n1");
    }
    roster.record("n1", "n1".to_owned(), HEALTHY);
    addresses.extend(roster.requests().into_iter().map(|request| request.address));
    assert_eq!(addresses, ["a", "b", "a", "b"]);
}

#[test]
fn two_agents_stand_by_for_as_long_as_they_respond() {
    let mut roster = addressed(&["a", "b", "c", "d"]);
    assert_eq!(standbys(&mut roster), ["a", "b"]);
    for (peer, node) in [("b", "n2"), ("c", "n3"), ("d", "n4")] {
        roster.record(peer, node.to_owned(), HEALTHY);
    }
    roster.record_silence("a");
    assert_eq!(standbys(&mut roster), ["b", "c"]);
    roster.record("a", "n1".to_owned(), HEALTHY);
    assert_eq!(standbys(&mut roster), ["b", "c"]);
    for peer in ["b", "c", "d"] {
        roster.record_silence(peer);
    }
    assert_eq!(standbys(&mut roster), ["a"]);
}

#[test]
fn nobody_stands_by_for_itself() {
    let mut roster = addressed(&["a"]);
    roster.record("a", "n0".to_owned(), HEALTHY);
    assert_eq!(standbys(&mut roster), [""; 0]);
}
